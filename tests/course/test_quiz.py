"""A quiz asks the questions of the player and grades answers in the same way."""

from typing import Any

import pytest
import torch
from scenes import c_hook, scene
from torch import nn

import hookviz as hv
from hookviz.analysis.questions.prediction import make_questions
from hookviz.course import quiz
from hookviz.course.trace_quiz import Quiz
from tests.requirements import warns_of_early_hook


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


def number_of(asked: Quiz, text: str) -> int:
    return next(entry.number for entry in asked if text in entry.text)


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


@pytest.mark.parametrize("answer", [18, " tensor(18.) ", torch.tensor([18])])
def test_a_right_number_is_accepted_in_several_types(asked: Quiz, answer: Any) -> None:
    verdict = asked.check(number_of(asked, "run on c"), answer)
    assert verdict.right and repr(verdict) == "Question 3: right. That is the value in the trace."


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        ("run on c", 6, "6 is the gradient before λ"),
        ("run on c", 12, "You used the old gradient, 4: c_hook has already changed it to 6."),
        ("run on c", 99, "Read the hook"),
        ("run on c", [6, 6], "Numbers to type: 1."),
        ("run on c", "six", "Type numbers such as 1.5, or None."),
        ("run on c", None, "Nothing was entered yet"),
        ("Which hook runs next?", 9, "number of one of the"),
    ],
)
def test_a_wrong_answer_gets_its_reason(asked: Quiz, text: str, answer: Any, reason: str) -> None:
    verdict = asked.check(number_of(asked, text), answer)
    assert not verdict.right and reason in verdict.reason


def test_a_wrong_choice_gets_its_reason(asked: Quiz) -> None:
    number = number_of(asked, "Which hook runs next?")
    verdicts = [asked.check(number, place) for place in range(1, len(asked[number - 1].choices) + 1)]
    assert sum(verdict.right for verdict in verdicts) == 1 and len({verdict.reason for verdict in verdicts}) >= 2
    assert asked.check(number, "\uff11") == verdicts[0]


@pytest.mark.parametrize("number", [0, 4, "1"])
def test_an_unknown_question_number_raises_a_value_error(asked: Quiz, number: Any) -> None:
    with pytest.raises(ValueError, match=r"There is no question .*: they are numbered from 1 to 3\."):
        asked.check(number, 1)


def test_none_in_quotation_marks_or_a_list_is_the_answer_that_there_is_no_gradient() -> None:
    layer = nn.Linear(1, 1)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    with warns_of_early_hook(), hv.record(layer) as trace:
        layer(torch.ones(1)).backward()
    asked = quiz(trace)
    assert asked.check(1, "None").right and asked.check(1, [None]).right and not asked.check(1, 0).right


def test_a_quiz_is_shown_as_a_table(asked: Quiz) -> None:
    lines = asked.lines(1_000)
    assert lines[0].split() == ["Question", "Before", "step", "What", "is", "asked", "Choices"]
    assert len(lines) == 4 and "(1) " in repr(asked) and "(2) " in repr(asked)
    assert "<table" in asked._repr_html_()


def test_an_empty_quiz_has_a_message() -> None:
    with hv.record() as trace:
        torch.rand(100, requires_grad=True).sum().backward()
    assert list(quiz(trace)) == []
    assert repr(quiz(trace)) == "There is nothing to predict here."
