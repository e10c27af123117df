"""Checking an answer to a lesson's question: right, or why not, in the lesson's terms."""

from importlib import import_module
from typing import Any

import torch

from hookviz.analysis.questions.verdict import Verdict
from hookviz.course.judges import Found, Judge
from hookviz.support.messages import say

LESSONS = [import_module(f"hookviz.course.lesson{number:02}") for number in range(1, 13)]
JUDGES: dict[str, Judge] = {exercise: judge for lesson in LESSONS for exercise, judge in lesson.JUDGES.items()}
"""An exercise's number → what judges its answers."""

NO_FUNCTION = ("function_text", "function_result", "function_handle")
SHARED = ("none", "number", "close", "name", "names", *NO_FUNCTION, "raised", "in_place", "nothing", "shape")
"""What can be said about answers to several exercises."""


def check(exercise: str, answer: Any) -> Verdict:
    """Whether ``answer`` answers ``exercise``, and if not, why not.

    Args:
        exercise: its number in the lesson, such as ``"02.1"``.
        answer: a number, a name or a function, as the exercise asks; None for no answer yet.

    Raises:
        ValueError: there is no such exercise.

    >>> check("02.1", 8)
    Exercise 02.1, not yet: That is what arrives at c. Two hooks of c then work on it, before it is kept.
    """
    if exercise not in JUDGES:
        raise ValueError(say("error.check.unknown", exercise=exercise, known=", ".join(JUDGES)))
    with torch.enable_grad():
        found = Found("none") if answer is None or answer is ... else JUDGES[exercise](answer)
    key = f"check.{found.name}" if found.name in SHARED else f"check.{exercise}.{found.name}"
    return Verdict(exercise, found.name == "right", say(key, detail=found.detail, of=found.of))
