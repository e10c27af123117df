"""Grade the findings of a student against the faults of the patient."""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hookviz.course.fault_draw import COUNT, STAGES, Fault

TRIES = 3
"""How many tries there are for each patient; a hint counts as one."""
ENOUGH = 2
"""How many of three findings must be right to pass."""


class Finding(NamedTuple):
    """What a student claims: a fault of this kind is at this place."""

    kind: str
    place: str


@dataclass(frozen=True)
class Grade:
    """Which findings are right, whether that passes, and what it is worth."""

    findings: tuple[Finding, ...]
    """What was handed in."""
    right: tuple[Finding, ...]
    """The findings of which kind and place are right. Each fault counts once."""

    @property
    def passed(self) -> bool:
        """Whether enough findings are right."""
        return len(self.right) >= ENOUGH

    @property
    def score(self) -> float:
        """The right findings as a share of the faults."""
        return round(len(self.right) / COUNT, 6)


def read_place(place: Any) -> str | None:
    """Read the name of a place or of something in it; None for anything else.

    >>> read_place("net.stage2.mix.weight"), read_place("Stage3"), read_place("stage9")
    ('stage2', 'stage3', None)
    """
    if not isinstance(place, str):
        return None
    found = re.fullmatch(rf"(?:\w+\.)?({'|'.join(STAGES)})(?:\.\w+)*", place.strip().lower())
    return found[1] if found else None


def read_finding(finding: Any, kinds: Container[str]) -> Finding | None:
    """Read a pair of a kind and a place, such as ``("leak", "net.stage2.mix")``; None for anything else.

    >>> read_finding(["Leak ", "net.stage2.mix"], {"leak"})
    Finding(kind='leak', place='stage2')
    >>> read_finding(("leak", "stage2 or stage3"), {"leak"})
    """
    if not isinstance(finding, tuple | list) or len(finding) != 2 or not all(isinstance(part, str) for part in finding):
        return None
    kind = re.sub(r"[\s-]+", "_", finding[0].strip().lower())
    place = read_place(finding[1])
    return Finding(kind, place) if place and kind in kinds else None


def list_findings(findings: Any) -> list[Any]:
    """List findings that are given as a list, as a dict of kinds and places, or as a single pair.

    >>> list_findings({"leak": "stage2"}) == list_findings(("leak", "stage2")) == list_findings([("leak", "stage2")])
    True
    """
    if findings is None:
        return []
    if isinstance(findings, Mapping):
        return list(findings.items())
    if isinstance(findings, str) or not isinstance(findings, Iterable):
        return [findings]
    listed = list(findings)
    is_pair = len(listed) == 2 and all(isinstance(part, str) for part in listed)
    return [tuple(listed)] if is_pair else listed


def grade_findings(faults: Iterable[Fault], findings: Iterable[Finding]) -> Grade:
    """Grade findings."""
    claims, left, right = tuple(sorted(set(findings))), list(faults), []
    for claim in claims:
        fault = next((fault for fault in left if fault.kind == claim.kind and claim.place in fault.places), None)
        if fault is not None:
            left.remove(fault)
            right.append(claim)
    return Grade(claims, tuple(right))
