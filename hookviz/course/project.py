"""The final project: a network with three hidden faults. If you take the course, do not read on before you passed.

``make_patient`` builds the network of a student and hides three faults in it. ``hand_in`` grades what the student
found, and ``hand_in_detectors`` tries the student's functions on other patients.
"""

from collections.abc import Callable, Mapping
from typing import Any

from hookviz.course.answer_log import log_attempt, write_report
from hookviz.course.fault_draw import (
    COUNT,
    STAGES,
    draw_faults,
    find_in_trial,
    is_practice,
    next_number,
    previous_number,
)
from hookviz.course.project_case import ANSWERS, name_exercise, read_case, write_case
from hookviz.course.project_detectors import grade_detectors
from hookviz.course.project_grading import TRIES, Finding, Grade, grade_findings, list_findings, read_finding
from hookviz.course.project_patient import (
    HIDE,
    Network,
    Patient,
    Stage,
    build_patient,
    make_patient,
    make_twin,
)
from hookviz.course.project_reasons import (
    explain_best,
    list_right_and_wrong,
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
    "hand_in",
    "hand_in_detectors",
    "hint",
    "make_patient",
    "make_twin",
    "project_texts",
]

KINDS: Mapping[str, str] = {
    key.removeprefix("kind."): text for key, text in project_texts().items() if key.startswith("kind.")
}
"""The kinds of faults, each with a description."""


def hint(patient: Patient, number: int) -> str:
    """Say what to measure for one of the faults. A hint counts as a try, once, and the last try is never a hint.

    For practice, hints count for nothing.

    Args:
        patient: the patient.
        number: 1, 2 or 3: which of the three faults, from the first stage to the last.

    Raises:
        ValueError: there is no such fault, or ``hand_in`` does not grade the patient.

    >>> hint(make_patient("doctest"), 4)
    Traceback (most recent call last):
    ValueError: There is no fault 4: the faults are 1, 2 and 3.
    """
    seed, texts = patient.seed, project_texts()
    problem = _find_problem_of_patient(patient)
    if problem is not None:
        raise ValueError(problem)
    if number not in range(1, COUNT + 1):
        raise ValueError(texts["hint.number"].format(number=number))
    text = texts[f"hint.{sort_by_place(draw_faults(seed))[number - 1].kind}"]
    if is_practice(seed):
        return texts["hint.practice"].format(number=number, text=text)
    case = read_case(seed)
    if number not in case.hints:
        if case.left < 2:
            return texts["hint.last"]
        case.hints.append(number)
        write_case(seed, case)
    return texts["hint.text"].format(number=number, left=case.left, text=text)


def hand_in(patient: Patient, findings: Any) -> Verdict:
    """Grade three findings about a patient, and write the score into the file ``answers.json``.

    Two right ones pass. Each right finding is a point of three, and the best try counts. There are three tries, and a
    hint costs one. The same findings again are no new try. The verdict is about the findings that are handed in now.
    Then it says what counts and, when no try is left, which of these findings are right.

    With a patient for practice, such as ``make_patient("practice-5")``, nothing is counted or written, and the verdict
    tells the faults.

    Args:
        patient: the patient.
        findings: a list of three pairs of a kind (one of ``KINDS``) and a place (such as ``"stage3"``).

    >>> hand_in(make_patient("practice-1"), [("leak", "the third one")]).right
    False
    """
    seed, listed = patient.seed, list_findings(findings)
    read = sorted({finding for finding in (read_finding(given, KINDS) for given in listed) if finding is not None})
    problem = _find_problem_of_patient(patient) or _find_problem(listed, read)
    if problem is not None:
        return Verdict(name_exercise(seed), False, problem)
    if is_practice(seed):
        faults, texts = draw_faults(seed), project_texts()
        grade = grade_findings(faults, read)
        counts = texts["verdict.counts"].format(right=len(grade.right))
        reason = f"{counts}{texts['verdict.practice']}{list_right_and_wrong(grade)}\n{show_faults(faults)}"
        return Verdict(name_exercise(seed), grade.passed, reason, credit=grade.score)
    return _grade_try(seed, read, listed)


def _grade_try(seed: str, read: list[Finding], listed: list[Any]) -> Verdict:
    """Grade findings, and count them as a try unless none is left, or they were handed in before."""
    faults, case = draw_faults(seed), read_case(seed)
    is_new = read not in case.tries and case.left > 0
    if is_new:
        case.tries.append(read)
        write_case(seed, case)
    best = max((grade_findings(faults, findings) for findings in case.tries), key=lambda grade: grade.score)
    reason = _explain_try(seed, grade_findings(faults, read), best, is_new=is_new)
    verdict = Verdict(name_exercise(seed), best.passed, reason, credit=best.score)
    if is_new:
        log_attempt(verdict, listed)
        write_report(ANSWERS)
    return verdict


def _explain_try(seed: str, grade: Grade, best: Grade, *, is_new: bool) -> str:
    """Say what is right in these findings, what counts, and what comes next."""
    texts, case = project_texts(), read_case(seed)
    is_over = case.left == 0 or best.score == 1
    if list(grade.findings) in case.tries:
        reason = texts["verdict.counts"].format(right=len(grade.right)) + ("" if is_new else texts["verdict.again"])
    else:
        reason, grade = texts["verdict.used_up"].format(tries=TRIES), Grade((), ())
    reason += explain_best(best)
    if not is_over:
        return reason + texts["verdict.left"].format(left=case.left)
    if not best.passed:
        reason += texts["verdict.closed"].format(next=next_number(seed))
    return reason + list_right_and_wrong(grade)


def _find_problem_of_patient(patient: Patient) -> str | None:
    """Say why findings about a patient are not graded; None if they are."""
    texts, seed, previous = project_texts(), patient.seed, previous_number(patient.seed)
    if patient.is_twin:
        return texts["twin.graded"].format(seed=seed)
    if find_in_trial(seed):
        return texts["trial.patient"].format(seed=seed)
    if previous is None:
        return None
    case, faults = read_case(previous), draw_faults(previous)
    if case.left == 0 and not any(grade_findings(faults, findings).passed for findings in case.tries):
        return None
    return texts["letter"].format(seed=seed, previous=previous, tries=TRIES, file=ANSWERS)


def _find_problem(findings: list[Any], read: list[Finding]) -> str | None:
    """Say why findings cannot be graded; None if they can."""
    texts = project_texts()
    if not findings:
        return texts["verdict.none"]
    unread = next((finding for finding in findings if read_finding(finding, KINDS) is None), None)
    if unread is not None:
        return texts["verdict.unread"].format(finding=repr(unread), kinds=", ".join(KINDS), places=", ".join(STAGES))
    return None if len(read) == len(findings) == COUNT else texts["verdict.three"].format(count=len(read))


def hand_in_detectors(detectors: Mapping[str, Callable[[Patient], Any]]) -> Verdict:
    """Try each detector on 20 patients that nobody has seen, and write the score into the file ``answers.json``.

    Ten of the patients have the kind of the detector and two other faults; ten have three others. They are drawn anew
    each time. A detector is right on a patient if it names a place of its kind and no other place, or no place if the
    patient does not have its kind. It is wrong on a patient if it registers no hook. It passes if it is right on 18 of
    20. You need two detectors that pass in the same try. Each call is a try: tries cost nothing, and the best counts.
    Kinds that one line reads off without a hook do not count, nor those that hooks alone do not show. A detector that
    uses ``hookviz``, ``weakref``, ``gc``, ``inspect`` or private attributes is not tried. For each way in which a
    detector was wrong you learn the first such patient and its faults: ``make_patient`` makes it again.

    Args:
        detectors: kind → a function that takes a patient and returns the places where it finds this kind, as a set, a
            list or a name; empty or None if there is none.

    >>> hand_in_detectors({"leaks": print})
    Exercise project.detectors, not yet: There is no kind 'leaks'. It was not counted. Choose from these: ...
    """
    verdict, answer = grade_detectors(detectors)
    if answer is not None:
        log_attempt(verdict, answer, most=len(answer))
        write_report(ANSWERS)
    return verdict
