"""An exercise's check says right, or why not, and never gives the answer away."""

import re
from typing import Any

import pytest
import torch

import hookviz as hv
from hookviz.words import table


def clip(grad: torch.Tensor) -> torch.Tensor:
    return grad.clamp(-3, 3)


def clip_in_place(grad: torch.Tensor) -> torch.Tensor:
    return grad.clamp_(-3, 3)


def forgets_to_return(grad: torch.Tensor) -> None:
    grad.clamp(-3, 3)


def raises(grad: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("no")


RIGHT: dict[str, Any] = {"01.1": "a", "01.2": 12, "01.3": torch.tensor(120.0), "02.1": clip, "02.2": 18.0}
WRONG: dict[str, list[Any]] = {
    "01.1": ["b", "d", "c", "e"],
    "01.2": [6, 36, 1, 2, 7],
    "01.3": [12, 22, 10, 7],
    "02.1": [forgets_to_return, clip_in_place, lambda g: g.clamp(max=3), lambda g: g.sum(), raises, lambda g: g],
    "02.2": [14, 6, 12, 4, 7],
}


@pytest.mark.parametrize("exercise", RIGHT)
def test_the_right_answer_is_right(exercise: str) -> None:
    verdict = hv.check(exercise, RIGHT[exercise])
    assert verdict.right, verdict
    assert repr(verdict).startswith(f"Exercise {exercise}: right.")


@pytest.mark.parametrize("exercise", WRONG)
def test_each_usual_mistake_gets_a_reason_of_its_own(exercise: str) -> None:
    verdicts = [hv.check(exercise, answer) for answer in WRONG[exercise]]
    assert not any(verdict.right for verdict in verdicts)
    assert len({verdict.reason for verdict in verdicts}) == len(WRONG[exercise]) >= 3


@pytest.mark.parametrize(("exercise", "answer"), [("01.2", "12"), ("01.3", "120"), ("02.2", "18")])
def test_no_reason_gives_the_number_away(exercise: str, answer: str) -> None:
    texts = [text for key, text in table().items() if key.startswith(f"check.{exercise}")]
    assert texts
    assert not any(answer in re.findall(r"\d+", text) for text in texts)


@pytest.mark.parametrize("exercise", RIGHT)
def test_no_answer_yet_is_said_kindly(exercise: str) -> None:
    assert "Nothing was entered yet" in hv.check(exercise, None).reason


@pytest.mark.parametrize(
    ("exercise", "answer", "reason"),
    [
        ("01.1", 3, "name of one of the tensors"),
        ("01.1", "x", "name of one of the tensors"),
        ("01.2", "many", "should be a number"),
        ("01.2", torch.ones(2), "should be a number"),
        ("02.1", 3, "should be a function"),
    ],
)
def test_an_answer_of_another_kind_gets_a_sentence(exercise: str, answer: Any, reason: str) -> None:
    assert reason in hv.check(exercise, answer).reason


def test_a_name_may_be_given_as_its_gradient() -> None:
    assert hv.check("01.1", " a.grad ").right


def test_an_unknown_exercise_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"There is no exercise 09\.9: there are 01\.1, 01\.2"):
        hv.check("09.9", 1)


def test_every_check_text_is_used() -> None:
    reached = {
        hv.check(exercise, answer).reason for exercise in WRONG for answer in [*WRONG[exercise], RIGHT[exercise]]
    }
    shared = {"check.right", "check.wrong", "check.none", "check.number", "check.name", "check.function"}
    texts = {text for key, text in table().items() if key.startswith("check.") and key not in shared}
    assert texts == reached


def test_a_verdict_is_escaped_in_jupyter() -> None:
    assert "&lt;b&gt;" in hv.quiz.Verdict("01.1", False, "<b>")._repr_html_()
