"""A quiz asks the questions of the player and grades answers in the same way."""

from typing import Any

import pytest
import torch
from scenes import c_hook, scene

import hookviz as hv
from hookviz.analysis.questions.prediction import make_questions
from hookviz.course import quiz
from hookviz.course.trace_quiz import Quiz


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    tensors = scene()
    tensors.c.register_hook(c_hook)
    tensors.c.register_hook(lambda grad: grad * 3)
    tensors.d.register_hook(lambda grad: None)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    return trace


@pytest.fixture(scope="module")
def asked(trace: hv.Trace) -> Quiz:
    return quiz(trace)


def test_a_quiz_has_the_questions_of_the_player(trace: hv.Trace, asked: Quiz) -> None:
    questions = make_questions(trace.steps)
    assert [entry.step for entry in asked] == sorted(questions)
    assert [entry.text for entry in asked] == [questions[step]["text"] for step in sorted(questions)]
    assert [entry.number for entry in asked] == [1, 2, 3]


def test_the_right_answer_to_each_question_is_accepted(trace: hv.Trace, asked: Quiz) -> None:
    for entry, (_, question) in zip(asked, sorted(make_questions(trace.steps).items()), strict=True):
        answers = (
            [question["right"] + 1, question["choices"][question["right"]]] if entry.choices else [question["answer"]]
        )
        for answer in answers:
            assert asked.check(entry.number, answer).right, (entry, answer)


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        ("run on c", 12, "You used the old gradient, 4: c_hook has already changed it to 6."),
        ("run on c", 99, "Read the hook"),
        ("run on c", None, "Nothing was entered yet"),
        ("Which hook runs next?", 9, "number of one of the"),
    ],
)
def test_a_wrong_answer_gets_its_reason(asked: Quiz, text: str, answer: Any, reason: str) -> None:
    number = next(entry.number for entry in asked if text in entry.text)
    verdict = asked.check(number, answer)
    assert not verdict.right and reason in verdict.reason


def test_an_unknown_question_number_raises_a_value_error(asked: Quiz) -> None:
    with pytest.raises(ValueError, match=r"There is no question .*: they are numbered from 1 to 3\."):
        asked.check(4, 1)


def test_a_quiz_is_a_table_and_an_empty_one_has_a_message(asked: Quiz) -> None:
    assert "<table" in asked._repr_html_() and "(2) " in repr(asked)
    with hv.record() as trace:
        torch.rand(100, requires_grad=True).sum().backward()
    assert repr(quiz(trace)) == "There is nothing to predict here."
