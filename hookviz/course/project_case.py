"""What a student has spent on a patient and handed in about it, kept in the file of answers."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hookviz.course.answer_log import read_notes, write_notes
from hookviz.course.fault_draw import COUNT
from hookviz.course.project_grading import COST_OF_A_TRY, PASS_POINTS, Finding

HINT_COSTS = (0.1, 0.2, 0.3)
"""What the first, second and third hint about a fault cost, in points of three."""
MOST_COST = COUNT - PASS_POINTS
"""What hints and earlier tries may cost together: with more, even three right findings do not pass."""


class Try(NamedTuple):
    """Findings that were handed in."""

    findings: list[Finding]
    """The findings, sorted."""
    cost: float
    """What hints and earlier tries cost at that time."""


@dataclass
class Case:
    """The hints that were read about a patient, and the tries."""

    hints: list[tuple[int, int]]
    """For each hint the number of the fault, and 1, 2 or 3."""
    tries: list[Try]

    @property
    def cost(self) -> float:
        """What the hints and the tries so far cost the next try."""
        hints = sum(HINT_COSTS[level - 1] for _, level in self.hints)
        return round(hints + COST_OF_A_TRY * len(self.tries), 6)

    @property
    def is_closed(self) -> bool:
        """Whether no try can pass any more."""
        return self.cost > MOST_COST

    def find_try(self, findings: list[Finding]) -> Try | None:
        """Return the earlier try with these findings; None if there is none."""
        return next((earlier for earlier in self.tries if earlier.findings == findings), None)


def read_case(path: str | Path, exercise: str) -> Case:
    """Read from a file of answers what was spent on a patient."""
    notes = read_notes(path, exercise)
    tries = [Try([Finding(*finding) for finding in findings], cost) for findings, cost in notes.get("tries", [])]
    return Case([(number, level) for number, level in notes.get("hints", [])], tries)


def write_case(path: str | Path, exercise: str, case: Case) -> None:
    """Write into a file of answers what was spent on a patient."""
    write_notes(path, exercise, {"hints": case.hints, "tries": case.tries})
