"""Grade the findings of a student against the faults of the patient."""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hookviz.course.fault_draw import PLACES, Fault

POINTS_EXACT, POINTS_KIND, POINTS_PLACE, COST_OF_WRONG = 1.0, 0.3, 0.1, 0.3
COST_OF_A_TRY = 0.4
"""What each earlier try costs."""
PASS_POINTS = 2.0
"""The points that pass: two faults in their places, and no wrong finding.

Whoever hands in two measured faults passes. With 1.7 points, two hits and a wrong finding, two or three of 1,000
random tries would pass, too."""


class Finding(NamedTuple):
    """What a student claims: a fault of this kind is at this place."""

    kind: str
    place: str


@dataclass(frozen=True)
class Grade:
    """How many findings are right, and what that is worth."""

    exact: int
    """Findings with the right kind and the right place."""
    kind: int
    """Findings with the right kind at another place."""
    place: int
    """Findings with another kind at the right place."""
    wrong: int
    most: int
    """The number of faults, which is the number of points that one can get."""
    cost: float = 0.0
    """The points that hints and tries cost."""

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of findings that are right, partly right and wrong."""
        return {"exact": self.exact, "kind": self.kind, "place": self.place, "wrong": self.wrong}

    @property
    def points(self) -> float:
        """The points, from 0 to the number of faults."""
        earned = POINTS_EXACT * self.exact + POINTS_KIND * self.kind + POINTS_PLACE * self.place
        return max(0.0, round(earned - COST_OF_WRONG * self.wrong - self.cost, 6))

    @property
    def score(self) -> float:
        """The share of the points, from 0 to 1."""
        return round(self.points / self.most, 6)

    @property
    def passed(self) -> bool:
        """Whether the points are enough to pass."""
        return self.points >= PASS_POINTS


def read_place(place: Any) -> str | None:
    """Read the name of a place or of something in it; None for anything else.

    >>> read_place("net.stage2.mix.weight"), read_place("Head"), read_place("stage9")
    ('stage2', 'head', None)
    """
    if not isinstance(place, str):
        return None
    found = re.fullmatch(rf"(?:\w+\.)?({'|'.join(PLACES)})(?:\.\w+)*", place.strip().lower())
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


def grade_findings(faults: Sequence[Fault], findings: Iterable[Any], kinds: Container[str], cost: float = 0.0) -> Grade:
    """Grade findings: each counts for one fault at most, and each fault counts once. What cannot be read is wrong."""
    read = [read_finding(finding, kinds) for finding in findings]
    claims = sorted({claim for claim in read if claim is not None})
    left = list(faults)
    exact = _match(claims, left, _fits_exactly)
    kind = _match(claims, left, _fits_in_kind)
    place = _match(claims, left, _fits_in_place)
    return Grade(exact, kind, place, len(claims) + read.count(None), len(faults), cost)


def _match(claims: list[Finding], left: list[Fault], fits: Callable[[Finding, Fault], bool]) -> int:
    """Match claims with the faults that are left, take both away, and return how many fit."""
    matched = 0
    for claim in claims.copy():
        fault = next((fault for fault in left if fits(claim, fault)), None)
        if fault is not None:
            left.remove(fault)
            claims.remove(claim)
            matched += 1
    return matched


def _fits_exactly(claim: Finding, fault: Fault) -> bool:
    return claim.kind == fault.kind and claim.place in fault.places


def _fits_in_kind(claim: Finding, fault: Fault) -> bool:
    return claim.kind == fault.kind


def _fits_in_place(claim: Finding, fault: Fault) -> bool:
    return claim.place in fault.places
