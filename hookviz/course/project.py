"""The final project: a network with three hidden faults. If you take the course, do not read on before you passed.

``make_patient`` builds the network of a student and hides three faults in it. ``hand_in`` grades what the student
found, and ``hand_in_detectors`` tries the student's functions on other patients.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hookviz.course.answer_log import log_attempt, write_report
from hookviz.course.fault_draw import COUNT, PLACES, Fault, draw_faults, find_in_trial, region
from hookviz.course.project_case import HINT_COSTS, Case, Try, read_case, write_case
from hookviz.course.project_detectors import grade_detectors
from hookviz.course.project_grading import (
    COST_OF_A_TRY,
    PASS_POINTS,
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
from hookviz.course.project_reasons import (
    explain_closed,
    explain_grade,
    explain_next_try,
    project_texts,
    show_faults,
    sort_by_place,
)
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

_closed: set[str] = set()
"""Numbers of patients whose faults were told in this session because nobody could pass them any more."""

KINDS: Mapping[str, str] = {
    key.removeprefix("kind."): text for key, text in project_texts().items() if key.startswith("kind.")
}
"""The kinds of faults, each with a description."""


def hint(patient: Patient, number: int, level: int, answers: str | Path = "answers.json") -> str:
    """Give a hint about a fault; the first costs 0.1, the second 0.2 and the third 0.3 points, once.

    A hint after which nobody could pass is not given.

    Args:
        patient: the patient.
        number: 1, 2 or 3: which of the three faults, from the first stage to the head.
        level: 1, 2 or 3: where to look, what to measure, or three places of which one is right.
        answers: the file of answers, which notes the hints.

    Raises:
        ValueError: there is no such fault or no such hint, or the patient belongs to a trial.

    >>> hint(make_patient("doctest"), 4, 1)
    Traceback (most recent call last):
    ValueError: There is no fault 4 with a hint 1: the faults are 1, 2 and 3, and each has the hints 1, 2 and 3.
    """
    faults, texts, exercise = sort_by_place(draw_faults(patient.seed)), project_texts(), f"project.{patient.seed}"
    if find_in_trial(patient.seed):
        raise ValueError(texts["trial.patient"].format(seed=patient.seed))
    if number not in range(1, len(faults) + 1) or level not in range(1, len(HINT_COSTS) + 1):
        raise ValueError(texts["hint.number"].format(number=number, level=level))
    case = read_case(answers, exercise)
    if (number, level) not in case.hints:
        case.hints.append((number, level))
        if case.is_closed:
            return texts["hint.too_much"].format(number=number, level=level, pass_mark=f"{PASS_POINTS:g}")
        write_case(answers, exercise, case)
    text = write_hint(faults[number - 1], level)
    return texts["hint.text"].format(number=number, level=level, price=HINT_COSTS[level - 1], text=text)


def write_hint(fault: Fault, level: int) -> str:
    """Write a hint about a fault: what to look at, how to look at it, and in which places."""
    if level == len(HINT_COSTS):
        return project_texts()["hint.region"].format(places=", ".join(region(fault)))
    return project_texts()[f"hint.{fault.kind}.{level}"]


def hand_in(patient: Patient, findings: Any, answers: str | Path = "answers.json") -> Verdict:
    """Grade at most three findings, and write the try and its score into your file of answers, as ``hookviz.report``.

    A finding is worth 1 point if kind and place are right, 0.3 if only the kind is, and 0.1 if only the place is. A
    wrong one costs 0.3 points. Each hint costs points, and each earlier try costs 0.4. You need 2 of 3 points. The last
    try counts, and after a try that passes nothing changes any more. The same findings again are no new try. When
    hints and tries have cost so much that nobody could pass, the faults are told.

    Args:
        patient: the patient.
        findings: a list of up to three pairs of a kind (one of ``KINDS``) and a place (such as ``"stage3"``).
        answers: the file of answers. It is made if there is none.

    >>> hand_in(make_patient(1), [("leak", "the third one")]).right
    False
    """
    texts, exercise, seed = project_texts(), f"project.{patient.seed}", patient.seed
    listed = list_findings(findings)
    problem = texts["trial.patient"].format(seed=seed) if find_in_trial(seed) else _find_problem(listed)
    if problem is not None:
        return Verdict(exercise, False, problem)
    case, faults = read_case(answers, exercise), draw_faults(seed)
    last = grade_findings(faults, case.tries[-1].findings, KINDS, case.tries[-1].cost) if case.tries else None
    if last is not None and last.passed:
        reason = texts["verdict.before"].format(points=f"{last.points:.1f}") + show_faults(faults)
        return Verdict(exercise, True, reason, credit=last.score)
    if case.is_closed or seed in _closed:
        return Verdict(exercise, False, explain_closed(seed, faults), credit=last.score if last else 0.0)
    read = sorted({finding for finding in (read_finding(given, KINDS) for given in listed) if finding is not None})
    again = case.find_try(read)
    cost = case.cost if again is None else again.cost
    grade = grade_findings(faults, read, KINDS, cost)
    if again is None:
        case.tries.append(Try(read, cost))
        write_case(answers, exercise, case)
    reason = explain_grade(grade) + (texts["verdict.again"] if again else "")
    verdict = Verdict(exercise, grade.passed, reason + _explain_rest(grade, case, seed), credit=grade.score)
    if again is None:
        log_attempt(verdict, listed, last_counts=True)
        write_report(answers)
    return verdict


def _explain_rest(grade: Grade, case: Case, seed: str) -> str:
    """Say after a try what the faults were, or what the next try can reach."""
    faults = draw_faults(seed)
    if grade.passed:
        return show_faults(faults)
    if not case.is_closed:
        return explain_next_try(case)
    _closed.add(seed)
    return " " + explain_closed(seed, faults)


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


def grade(seed: int | str, findings: Any, tries: int = 0) -> Grade:
    """Grade findings about a patient without hints: for lecturers, who have a file of findings.

    Args:
        seed: the number of the patient.
        findings: as for ``hand_in``.
        tries: how many tries were made before.

    >>> grade(1, [("leak", "stage2")]).passed
    False
    """
    return grade_findings(draw_faults(read_seed(seed)), list_findings(findings), KINDS, COST_OF_A_TRY * tries)


def hand_in_detectors(
    detectors: Mapping[str, Callable[[Patient], Any]], answers: str | Path = "answers.json"
) -> Verdict:
    """Try each detector on 20 patients that nobody has seen, and write the score into your file of answers.

    Ten of the patients have the kind of the detector and two other faults; ten have three others. They are drawn anew
    each time. A detector is right on a patient if it names a place of its kind and no other place, or no place if the
    patient does not have its kind. It passes if it is right on 18 of 20. You need two detectors that pass. Kinds that
    can be read off without a hook do not count. Tries cost nothing, and the best one counts. For each way in which a
    detector was wrong you learn the first such patient: ``make_patient`` makes it again.

    Args:
        detectors: kind → a function that takes a patient and returns the places where it finds this kind, as a set, a
            list or a name; empty or None if there is none.
        answers: the file of answers. It is made if there is none.

    >>> hand_in_detectors({"leaks": print})
    Exercise project.detectors, not yet: There is no kind 'leaks'. It was not counted. Choose from these: ...
    """
    verdict, answer = grade_detectors(detectors)
    if answer is not None:
        log_attempt(verdict, answer, most=len(answer))
        write_report(answers)
    return verdict
