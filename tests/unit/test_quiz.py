"""A quiz asks what the player asks, and judges answers in the same way."""

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
    return next(asked.number for asked in quiz if text in asked.text)


def test_it_asks_what_the_player_asks(trace: hv.Trace, quiz: Quiz) -> None:
    known = make_questions(trace.steps)
    assert [asked.step for asked in quiz] == sorted(known)
    assert [asked.text for asked in quiz] == [known[step]["text"] for step in sorted(known)]
    assert [asked.number for asked in quiz] == [1, 2, 3]


def test_the_right_answer_to_each_question_is_right(trace: hv.Trace, quiz: Quiz) -> None:
    for asked, (_, question) in zip(quiz, sorted(make_questions(trace.steps).items()), strict=True):
        answers = (
            [question["right"] + 1, question["choices"][question["right"]]] if asked.choices else [question["answer"]]
        )
        for answer in answers:
            assert quiz.check(asked.number, answer).right, (asked, answer)


VERDICTS = json.loads((Path(__file__).parents[1] / "js" / "verdicts.json").read_text(encoding="utf-8"))
"""What was recorded, the verdict, and answers that get it: the tests of the player run the same table."""


def verdict(quiz: Quiz, recorded: str, answer: Any) -> str:
    """What is made of ``answer`` where ``recorded`` is the answer to the first question."""
    other = copy.copy(quiz)
    other._questions = [{"text": "", "answer": recorded, "reasons": []}]
    checked = other.check(1, answer)
    others = {say("player.ask_unread"): "unread", say("player.ask_other"): "wrong"}
    return "right" if checked.right else others.get(checked.reason, "count")


@pytest.mark.parametrize(("recorded", "wanted", "answers"), VERDICTS)
def test_answers_are_judged_by_the_table_that_holds_for_the_player_too(
    quiz: Quiz, recorded: str, wanted: str, answers: list[str]
) -> None:
    assert {answer: verdict(quiz, recorded, answer) for answer in answers} == dict.fromkeys(answers, wanted)


def test_the_table_has_every_verdict_and_the_answers_that_once_were_judged_differently() -> None:
    found = {(recorded, answer): wanted for recorded, wanted, answers in VERDICTS for answer in answers}
    assert set(found.values()) == {"right", "wrong", "count", "unread"} and len(found) > 300
    once = {"1001.0009": "wrong", "1_000": "unread", "0x10": "unread", "1,000": "count"}
    assert {answer: found["1000", answer] for answer in once} == once


@pytest.mark.parametrize(
    ("answer", "wanted"),
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
def test_in_python_numbers_may_be_in_tensors_arrays_and_lists(quiz: Quiz, answer: Any, wanted: str) -> None:
    assert verdict(quiz, "1, 2, 3, None", answer) == wanted


def test_a_choice_may_be_given_in_full_width(quiz: Quiz) -> None:
    number = number_of(quiz, "Which hook runs next?")
    assert quiz.check(number, "\uff11").reason == quiz.check(number, 1).reason != quiz.check(number, 2).reason


@pytest.mark.parametrize("answer", [18, 18.0, "18", " tensor(18.) ", [18], torch.tensor([18]), 18.005])
def test_a_number_may_be_given_in_several_ways(quiz: Quiz, answer: Any) -> None:
    verdict = quiz.check(number_of(quiz, "run on c"), answer)
    assert verdict.right and repr(verdict) == "Question 3: right. That is the value in the trace."


@pytest.mark.parametrize(
    ("answer", "said"),
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
def test_a_wrong_number_gets_its_reason(quiz: Quiz, answer: Any, said: str) -> None:
    verdict = quiz.check(number_of(quiz, "run on c"), answer)
    assert not verdict.right and said in verdict.reason


def test_a_wrong_choice_gets_its_reason(quiz: Quiz) -> None:
    number = number_of(quiz, "Which hook runs next?")
    reasons = {quiz.check(number, place).reason for place in range(1, len(quiz[number - 1].choices) + 1)}
    assert len(reasons) >= 2
    assert "number of one of the" in quiz.check(number, 9).reason
    assert "number of one of the" in quiz.check(number, "that one").reason


@pytest.mark.parametrize("number", [0, 4, -1, "1"])
def test_a_question_that_is_not_there_is_an_error(quiz: Quiz, number: Any) -> None:
    with pytest.raises(ValueError, match=r"There is no question .*: they are numbered from 1 to 3\."):
        quiz.check(number, 1)


def test_three_digits_are_enough_and_none_is_an_answer() -> None:
    x = leaf(1.0)
    with x.register_hook(lambda grad: grad * 1.23456), hv.record() as trace:
        (x * 1).backward()
    assert trace.quiz().check(1, 1.23).right and not trace.quiz().check(1, 1.22).right
    layer = nn.Linear(1, 1)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    with pytest.warns(UserWarning, match="no inputs require gradients"), hv.record(layer) as trace:
        layer(torch.ones(1)).backward()
    quiz = trace.quiz()
    assert quiz.check(1, "None").right and quiz.check(1, [None]).right and not quiz.check(1, 0).right


def test_it_shows_itself_as_a_table(quiz: Quiz) -> None:
    lines = repr(quiz).splitlines()
    assert lines[0].split() == ["Question", "Before", "step", "What", "is", "asked", "Choices"]
    assert len(lines) == 4 and "(1) " in repr(quiz) and "(2) " in repr(quiz)
    assert "<table" in quiz._repr_html_()


def test_without_anything_to_ask_it_says_so() -> None:
    with hv.record() as trace:
        torch.rand(100, requires_grad=True).sum().backward()
    assert list(trace.quiz()) == []
    assert repr(trace.quiz()) == "There is nothing to predict here."


def test_a_saved_trace_asks_the_same(trace: hv.Trace, tmp_path: Any) -> None:
    trace.save(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())
    assert list(hv.load(tmp_path / "trace.json").quiz()) == list(trace.quiz())
