"""The final project: a network with three hidden faults. If you take the course, do not read on before you passed.

``make_patient`` builds the network of a student and hides three faults in it. ``hand_in`` grades what the student
found, and ``hand_in_detectors`` tries the student's functions on other patients.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hookviz.course.answer_log import log_attempt, mark_right, read_score, write_report
from hookviz.course.fault_draw import COUNT, PLACES, Fault, draw_faults, region
from hookviz.course.project_detectors import EXERCISE, grade_detectors
from hookviz.course.project_grading import (
    COST_OF_A_TRY,
    PASS_POINTS,
    PASS_POINTS_WITH_DETECTORS,
    Grade,
    grade_findings,
    list_findings,
    read_finding,
)
from hookviz.course.project_patient import (
    HIDE,
    Network,
    Patient,
    Stage,
    build_patient,
    make_patient,
    make_twin,
    read_seed,
)
from hookviz.course.project_reasons import explain_grade, project_texts, show_faults, sort_by_place
from hookviz.course.verdict import Verdict

__all__ = [
    "HIDE",
    "KINDS",
    "Network",
    "Patient",
    "Stage",
    "build_patient",
    "grade",
    "hand_in",
    "hand_in_detectors",
    "hint",
    "make_patient",
    "make_twin",
    "project_texts",
]

HINT_COSTS = (0.1, 0.2, 0.3)
"""What the first, second and third hint about a fault cost, in points of three."""

_hints: dict[str, dict[int, int]] = {}
"""Number of a patient → number of a fault → how many hints were read about it."""


KINDS: Mapping[str, str] = {
    key.removeprefix("kind."): text for key, text in project_texts().items() if key.startswith("kind.")
}
"""The kinds of faults, each with a description."""


def hint(patient: Patient, number: int) -> str:
    """Give the next hint about a fault, of three; each costs points.

    Args:
        patient: the patient.
        number: 1, 2 or 3: which of the three faults, from the first stage to the head.

    Raises:
        ValueError: there is no such fault.

    >>> hint(make_patient("doctest"), 1)
    'Fault 1, hint 1 (cost 0.1 points so far): Look at the forward pass.'
    """
    faults, texts = sort_by_place(draw_faults(patient.seed)), project_texts()
    if number not in range(1, len(faults) + 1):
        raise ValueError(texts["hint.number"].format(number=number, count=len(faults)))
    read = _hints.setdefault(patient.seed, {})
    read[number] = min(read.get(number, 0) + 1, len(HINT_COSTS))
    text = write_hint(faults[number - 1], read[number])
    cost = f"{sum(HINT_COSTS[: read[number]]):.1f}"
    return texts["hint.text"].format(number=number, level=read[number], cost=cost, text=text)


def write_hint(fault: Fault, level: int) -> str:
    """Write a hint about a fault: what to look at, how to look at it, and in which places."""
    if level == len(HINT_COSTS):
        return project_texts()["hint.region"].format(places=", ".join(region(fault)))
    return project_texts()[f"hint.{fault.kind}.{level}"]


def hand_in(patient: Patient, findings: Any, answers: str | Path = "answers.json") -> Verdict:
    """Grade at most three findings, and write the try and its score into your file of answers, as ``hookviz.report``.

    A finding is worth 1 point if kind and place are right, 0.3 if only the kind is, and 0.1 if only the place is. A
    wrong one costs 0.3 points. Each hint costs points, and each earlier try in the file costs 0.4. You need 1.7 of 3
    points if two of your detectors have passed, and 2.4 before that. The last try counts, and after a try that passes
    nothing changes any more.

    Args:
        patient: the patient.
        findings: a list of up to three pairs of a kind (one of ``KINDS``) and a place (such as ``"stage3"``).
        answers: the file of answers. It is made if there is none.

    >>> hand_in(make_patient(1), [("leak", "the third one")]).right
    False
    """
    texts, exercise = project_texts(), f"project.{patient.seed}"
    listed = list_findings(findings)
    problem = _find_problem(listed)
    if problem is not None:
        return Verdict(exercise, False, problem)
    score, tries = read_score(answers, exercise)
    faults = draw_faults(patient.seed)
    needed = points_needed(answers)
    if round(score * COUNT, 4) >= needed:
        mark_right(answers, exercise)
        reason = texts["verdict.before"].format(points=f"{score * COUNT:.1f}") + show_faults(faults)
        return Verdict(exercise, True, reason, credit=score)
    cost = hint_cost(patient.seed) + COST_OF_A_TRY * tries
    grade = grade_findings(faults, listed, KINDS, cost, needed)
    reason = explain_grade(grade) + (show_faults(faults) if grade.passed else "")
    verdict = Verdict(exercise, grade.passed, reason, credit=grade.score)
    log_attempt(verdict, listed, last_counts=True)
    write_report(answers)
    return verdict


def _find_problem(findings: list[Any]) -> str | None:
    """Say why findings cannot be graded; None if they can."""
    texts = project_texts()
    if not findings:
        return texts["verdict.none"]
    if len(findings) > COUNT:
        return texts["verdict.many"].format(count=len(findings), most=COUNT)
    unread = next((finding for finding in findings if read_finding(finding, KINDS) is None), None)
    if unread is None:
        return None
    return texts["verdict.unread"].format(finding=repr(unread), kinds=", ".join(KINDS), places=", ".join(PLACES))


def points_needed(answers: str | Path) -> float:
    """The points that pass: fewer once the detectors have passed, since nobody writes those by luck."""
    return PASS_POINTS_WITH_DETECTORS if read_score(answers, EXERCISE)[0] == 1 else PASS_POINTS


def hint_cost(seed: str) -> float:
    """The points that the hints about a patient have cost in this session."""
    return sum(sum(HINT_COSTS[:level]) for level in _hints.get(seed, {}).values())


def grade(seed: int | str, findings: Any, tries: int = 0, *, detectors: bool = False) -> Grade:
    """Grade findings about a patient without hints: for lecturers, who have a file of findings.

    Args:
        seed: the number of the patient.
        findings: as for ``hand_in``.
        tries: how many tries were made before.
        detectors: whether the detectors of the student have passed.

    >>> grade(1, [("leak", "stage2")]).passed
    False
    """
    needed = PASS_POINTS_WITH_DETECTORS if detectors else PASS_POINTS
    faults = draw_faults(read_seed(seed))
    return grade_findings(faults, list_findings(findings), KINDS, COST_OF_A_TRY * tries, needed)


def hand_in_detectors(
    detectors: Mapping[str, Callable[[Patient], Any]], answers: str | Path = "answers.json"
) -> Verdict:
    """Try each detector on 20 patients that nobody has seen, and write the score into your file of answers.

    Ten of the patients have the kind of the detector and two other faults; ten have three others. They are drawn anew
    each time. A detector is right on a patient if it names a place of its kind and no other place, or no place if the
    patient does not have its kind. It passes if it is right on 18 of 20. You need two detectors that pass. Tries cost
    nothing, and the best one counts.

    Args:
        detectors: kind → a function that takes a patient and returns the places where it finds this kind, as a set, a
            list or a name; empty or None if there is none.
        answers: the file of answers. It is made if there is none.

    >>> hand_in_detectors({"leaks": print})
    Exercise project.detectors, not yet: There is no kind 'leaks'. It was not counted. The kinds are: ...
    """
    verdict, answer = grade_detectors(detectors)
    if answer is not None:
        log_attempt(verdict, answer)
        write_report(answers)
    return verdict
