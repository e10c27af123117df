"""Judge the answers to all exercises, and explain mistakes in the terms of the lesson."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import torch

from hookviz.course.answer_log import log_attempt
from hookviz.course.judges import Judge
from hookviz.course.texts import read_texts
from hookviz.course.verdict import Verdict
from hookviz.support.messages import _
from hookviz.support.messages.languages import current_language

_FILES = (module.name for module in iter_modules([str(Path(__file__).parent)]))
LESSONS = [import_module(f"hookviz.course.{name}") for name in sorted(_FILES) if re.fullmatch(r"lesson\d+", name)]
JUDGES: dict[str, Judge] = {exercise: judge for lesson in LESSONS for exercise, judge in lesson.JUDGES.items()}
"""Number of an exercise → function that judges an answer."""

NOT_CALLABLE = ("function_text", "function_result", "function_handle")
SHARED_FEEDBACK = ("none", "number", "close", "name", *NOT_CALLABLE, "raised", "in_place", "nothing", "shape")
"""The names of feedback that several exercises share."""


def feedback_texts() -> Mapping[str, str]:
    """The texts of feedback in the current language, by ``exercise.name``, or by ``name`` alone if shared."""
    return read_texts(f"{current_language()}.json")


def judge_answer(exercise: str, answer: Any) -> Verdict:
    """As ``hookviz.course.check``: judge an answer, and remember the verdict for ``report``."""
    exercise = str(exercise)  # 12.1 without quotation marks is clear, too
    if exercise not in JUDGES:
        raise ValueError(explain_unknown_exercise(exercise))
    if answer is None or answer is ...:
        return Verdict(exercise, False, feedback_texts()["none"])
    with torch.enable_grad():
        feedback = JUDGES[exercise](answer)
    text = feedback_texts()[feedback.name if feedback.name in SHARED_FEEDBACK else f"{exercise}.{feedback.name}"]
    reason = text.format(detail=feedback.detail, of=feedback.reference)
    verdict = Verdict(exercise, feedback.name == "right", reason, credit=feedback.credit)
    log_attempt(verdict, answer)
    return verdict


def explain_unknown_exercise(name: str) -> str:
    """Say in one line which exercise ``name`` probably means or, if that is not clear, which exercises there are.

    >>> explain_unknown_exercise("1-1")
    'There is no exercise "1-1": do you mean 01.1?'
    """
    numbers = [int(digits) for digits in re.findall(r"\d+", name)]
    lesson = f"{numbers[0]:02}" if numbers else ""
    of_lesson = sorted(exercise for exercise in JUDGES if exercise.startswith(f"{lesson}."))
    near = [f"{lesson}.{numbers[1]}"] if len(numbers) == 2 else get_close_matches(name, JUDGES, n=1, cutoff=0.8)
    if near and near[0] in JUDGES:
        return _('There is no exercise "{exercise}": do you mean {near}?').format(exercise=name, near=near[0])
    if of_lesson:
        return _('There is no exercise "{exercise}". Lesson {lesson} has {known}.').format(
            exercise=name, lesson=lesson, known=", ".join(of_lesson)
        )
    return _('There is no exercise "{exercise}". The exercises are numbered from {first} to {last}.').format(
        exercise=name, first=min(JUDGES), last=max(JUDGES)
    )
