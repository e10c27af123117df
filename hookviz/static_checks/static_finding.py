"""``StaticFinding``: one row of what ``doctor`` finds."""

from dataclasses import dataclass
from typing import Any

from hookviz.analysis.findings import SEVERITIES
from hookviz.static_checks.finding_texts import SENTENCES
from hookviz.support.messages import _


@dataclass(frozen=True)
class StaticFinding:
    """What one rule finds in a model or a hook function, without running it.

    - ``error``: certainly broken, such as a hook on a module that is never called.
    - ``warning``: a known mistake, such as an edit of a gradient in place.
    - ``remark``: worth knowing, and perhaps intended.
    """

    on: str
    """The name of the module, parameter or function that it is about."""
    severity: str
    """``error``, ``warning`` or ``remark``."""
    kind: str
    """A short name of the rule, such as ``late_binding``."""
    sentence: str
    """What was found, and what to do."""


def make_finding(kind: str, severity: str, on: str, **parts: Any) -> StaticFinding:
    """Make a finding with the sentence of its kind; ``parts`` fill its placeholders besides ``on``."""
    return StaticFinding(on, severity, kind, _(SENTENCES[kind]).format(on=on, **parts))


def rank_finding(finding: StaticFinding) -> int:
    """Rank a finding by its severity, the worst first."""
    return SEVERITIES.index(finding.severity)
