"""A quiz asks the questions of the player and grades answers in the same way."""

import copy
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scenes import c_hook, leaf, scene
from torch import nn

import hookviz as hv
from hookviz.analysis.questions.prediction import make_questions
from hookviz.analysis.questions.quiz import Quiz
from hookviz.support.messages import say
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
def quiz(trace: hv.Trace) -> Quiz:
    return trace.quiz()


def number_of(quiz: Quiz, text: str) -> int:
    return next(entry.number for entry in quiz if text in entry.text)


def test_a_quiz_has_the_questions_of_the_player(trace: hv.Trace, quiz: Quiz) -> None:
    questions = make_questions(trace.steps)
    assert [entry.step for entry in quiz] == sorted(questions)
    assert [entry.text for entry in quiz] == [questions[step]["text"] for step in sorted(questions)]
    assert [entry.number for entry in quiz] == [1, 2, 3]


def test_the_right_answer_to_each_question_is_accepted(trace: hv.Trace, quiz: Quiz) -> None:
    for entry, (_, question) in zip(quiz, sorted(make_questions(trace.steps).items()), strict=True):
        answers = (
            [question["right"] + 1, question["choices"][question["right"]]] if entry.choices else [question["answer"]]
        )
        for answer in answers:
            assert quiz.check(entry.number, answer).right, (entry, answer)


VERDICTS = json.loads((Path(__file__).parents[1] / "js" / "verdicts.json").read_text(encoding="utf-8"))
"""(recorded answer, verdict, answers with that verdict): the player's JavaScript tests use the same table."""


def verdict_on(quiz: Quiz, recorded: str, answer: Any) -> str:
    """The verdict on ``answer`` to a question whose answer is ``recorded``: right, wrong, count or unread."""
    quiz_copy = copy.copy(quiz)
    quiz_copy._questions = [{"text": "", "answer": recorded, "reasons": []}]
    checked = quiz_copy.check(1, answer)
    verdicts = {say("player.ask_unread"): "unread", say("player.ask_other"): "wrong"}
    return "right" if checked.right else verdicts.get(checked.reason, "count")


@pytest.mark.parametrize(("recorded", "expected", "answers"), VERDICTS)
def test_answers_get_the_verdicts_of_the_table_shared_with_the_player(
    quiz: Quiz, recorded: str, expected: str, answers: list[str]
) -> None:
    assert {answer: verdict_on(quiz, recorded, answer) for answer in answers} == dict.fromkeys(answers, expected)


def test_the_verdict_table_covers_every_verdict_and_past_regressions() -> None:
    verdicts = {(recorded, answer): expected for recorded, expected, answers in VERDICTS for answer in answers}
    assert set(verdicts.values()) == {"right", "wrong", "count", "unread"} and len(verdicts) > 300
    regressions = {"1001.0009": "wrong", "1_000": "unread", "0x10": "unread", "1,000": "count"}
    assert {answer: verdicts["1000", answer] for answer in regressions} == regressions


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([1, [2.0, ["3"]], None], "right"),
        ((torch.tensor([1, 2]), np.array([3.0]), [None]), "right"),
        (np.array([[1, 2], [3, 4]]), "wrong"),
        ([True, Fraction(2), Decimal(3), "none"], "right"),
        ([1, 2, 3, 4j], "unread"),
        (torch.tensor([1, 2, 3, 4j]), "unread"),
        ({1, 2, 3}, "unread"),
        ([1, 2, 3], "count"),
        (["1, 2", 3, None], "right"),
    ],
)
def test_numbers_may_be_given_in_tensors_arrays_and_lists(quiz: Quiz, answer: Any, expected: str) -> None:
    assert verdict_on(quiz, "1, 2, 3, None", answer) == expected


def test_a_choice_may_be_given_as_a_full_width_digit(quiz: Quiz) -> None:
    number = number_of(quiz, "Which hook runs next?")
    assert quiz.check(number, "\uff11").reason == quiz.check(number, 1).reason != quiz.check(number, 2).reason


@pytest.mark.parametrize("answer", [18, 18.0, "18", " tensor(18.) ", [18], torch.tensor([18]), 18.005])
def test_a_number_may_be_given_as_several_types(quiz: Quiz, answer: Any) -> None:
    verdict = quiz.check(number_of(quiz, "run on c"), answer)
    assert verdict.right and repr(verdict) == "Question 3: right. That is the value in the trace."


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (6, "6 is the gradient before λ"),
        (12, "You used the old gradient, 4: c_hook has already changed it to 6."),
        (1, "1 is the gradient of e."),
        (99, "Read the hook"),
        ([6, 6], "Numbers to type: 1."),
        ("six", "Type numbers such as 1.5, or None."),
        ([["6"], "x"], "Type numbers"),
        ([], "Type numbers"),
        (object(), "Type numbers"),
        (10**400, "Type numbers"),
        (torch.ones(1, device="meta"), "Type numbers"),
        (None, "Nothing was entered yet"),
        (math.nan, "Read the hook"),
    ],
)
def test_a_wrong_number_gets_its_reason(quiz: Quiz, answer: Any, reason: str) -> None:
    verdict = quiz.check(number_of(quiz, "run on c"), answer)
    assert not verdict.right and reason in verdict.reason


def test_a_wrong_choice_gets_its_reason(quiz: Quiz) -> None:
    number = number_of(quiz, "Which hook runs next?")
    reasons = {quiz.check(number, place).reason for place in range(1, len(quiz[number - 1].choices) + 1)}
    assert len(reasons) >= 2
    assert "number of one of the" in quiz.check(number, 9).reason
    assert "number of one of the" in quiz.check(number, "that one").reason


@pytest.mark.parametrize("number", [0, 4, -1, "1"])
def test_an_unknown_question_number_raises_a_value_error(quiz: Quiz, number: Any) -> None:
    with pytest.raises(ValueError, match=r"There is no question .*: they are numbered from 1 to 3\."):
        quiz.check(number, 1)


def test_three_digits_suffice_and_none_is_accepted() -> None:
    x = leaf(1.0)
    with x.register_hook(lambda grad: grad * 1.23456), hv.record() as trace:
        (x * 1).backward()
    assert trace.quiz().check(1, 1.23).right and not trace.quiz().check(1, 1.22).right
    layer = nn.Linear(1, 1)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    with warns_of_early_hook(), hv.record(layer) as trace:
        layer(torch.ones(1)).backward()
    quiz = trace.quiz()
    assert quiz.check(1, "None").right and quiz.check(1, [None]).right and not quiz.check(1, 0).right


def test_a_quiz_is_shown_as_a_table(quiz: Quiz) -> None:
    lines = quiz.lines(1_000)
    assert lines[0].split() == ["Question", "Before", "step", "What", "is", "asked", "Choices"]
    assert len(lines) == 4 and "(1) " in repr(quiz) and "(2) " in repr(quiz)
    assert "<table" in quiz._repr_html_()


def test_an_empty_quiz_has_a_message() -> None:
    with hv.record() as trace:
        torch.rand(100, requires_grad=True).sum().backward()
    assert list(trace.quiz()) == []
    assert repr(trace.quiz()) == "There is nothing to predict here."


def test_a_saved_trace_has_the_same_quiz(trace: hv.Trace, tmp_path: Any) -> None:
    trace.save(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())
    assert list(hv.load(tmp_path / "trace.json").quiz()) == list(trace.quiz())
