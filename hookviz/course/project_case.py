"""What a student has spent on a patient and handed in about it, kept in the file of answers."""

from dataclasses import dataclass

from hookviz.course.answer_log import read_notes, write_notes
from hookviz.course.project_grading import TRIES, Finding

ANSWERS = "answers.json"
"""The file of answers, in the working directory."""


@dataclass
class Case:
    """The hints that were read about a patient, and the tries."""

    hints: list[int]
    """The numbers of the faults."""
    tries: list[list[Finding]]
    """The findings of each try, sorted."""

    @property
    def left(self) -> int:
        """How many tries are left: findings and hints use them up."""
        return TRIES - len(self.tries) - len(self.hints)


def read_case(seed: str) -> Case:
    """Read from the file of answers what was spent on a patient."""
    notes = read_notes(ANSWERS, name_exercise(seed))
    tries = [[Finding(*finding) for finding in findings] for findings in notes.get("tries", [])]
    return Case(list(notes.get("hints", [])), tries)


def write_case(seed: str, case: Case) -> None:
    """Write into the file of answers what was spent on a patient."""
    write_notes(ANSWERS, name_exercise(seed), {"hints": case.hints, "tries": case.tries})


def name_exercise(seed: str) -> str:
    """Name the exercise that a patient is in the file of answers."""
    return f"project.{seed}"
