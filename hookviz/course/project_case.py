"""What a student has spent on a patient and handed in about it, kept in the file of answers."""

from dataclasses import dataclass
from typing import NamedTuple

from hookviz.course.answer_log import read_notes, write_notes
from hookviz.course.project_grading import TRIES, Finding

ANSWERS = "answers.json"
"""The file of answers, in the working directory."""


class Try(NamedTuple):
    """Findings that were handed in."""

    findings: list[Finding]
    """The findings, sorted."""
    used: int
    """How many tries were used up before it, by findings and hints."""


@dataclass
class Case:
    """The hints that were read about a patient, and the tries."""

    hints: list[int]
    """The numbers of the faults."""
    tries: list[Try]

    @property
    def used(self) -> int:
        """How many tries are used up, by findings and hints."""
        return len(self.hints) + len(self.tries)

    @property
    def left(self) -> int:
        """How many tries are left."""
        return TRIES - self.used

    def find_try(self, findings: list[Finding]) -> Try | None:
        """Return the earlier try with these findings; None if there is none."""
        return next((earlier for earlier in self.tries if earlier.findings == findings), None)


def read_case(seed: str) -> Case:
    """Read from the file of answers what was spent on a patient."""
    notes = read_notes(ANSWERS, name_exercise(seed))
    tries = [Try([Finding(*finding) for finding in findings], used) for findings, used in notes.get("tries", [])]
    return Case(list(notes.get("hints", [])), tries)


def write_case(seed: str, case: Case) -> None:
    """Write into the file of answers what was spent on a patient."""
    write_notes(ANSWERS, name_exercise(seed), {"hints": case.hints, "tries": case.tries})


def name_exercise(seed: str) -> str:
    """Name the exercise that a patient is in the file of answers."""
    return f"project.{seed}"
