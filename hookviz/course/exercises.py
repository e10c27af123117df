"""Checking an answer to a lesson's question: right, or why not, in the lesson's terms."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

import torch

from hookviz.analysis.questions.answer_verdict import Verdict
from hookviz.course.judges import Found, Judge
from hookviz.support.messages import fill_text, read_texts, say

LESSONS = [import_module(f"hookviz.course.lesson{number:02}") for number in range(1, 13)]
JUDGES: dict[str, Judge] = {exercise: judge for lesson in LESSONS for exercise, judge in lesson.JUDGES.items()}
"""An exercise's number → what judges its answers."""

NO_FUNCTION = ("function_text", "function_result", "function_handle")
SHARED = ("none", "number", "close", "name", "names", *NO_FUNCTION, "raised", "in_place", "nothing", "shape")
"""What can be said about answers to several exercises."""


@cache
def texts(language: str = "en") -> Mapping[str, str]:
    """What can be said of answers in one language: ``exercise.finding``, or a finding that many share → text."""
    return read_texts(files(__package__).joinpath(f"{language}.json"))


def judged(exercise: str, answer: Any) -> Verdict:
    """As ``hookviz.check``."""
    if exercise not in JUDGES:
        raise ValueError(say("error.check.unknown", exercise=exercise, known=", ".join(JUDGES)))
    with torch.enable_grad():
        found = Found("none") if answer is None or answer is ... else JUDGES[exercise](answer)
    text = texts()[found.name if found.name in SHARED else f"{exercise}.{found.name}"]
    return Verdict(exercise, found.name == "right", fill_text(text, detail=found.detail, of=found.of))
