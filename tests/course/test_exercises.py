"""The check of an exercise accepts right answers, gives a reason for wrong ones, and never reveals the answer."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
import torch

from hookviz.course import Verdict, check
from hookviz.course.exercises import JUDGES, SHARED_FEEDBACK, feedback_texts
from hookviz.course.judges import Feedback
from tests.course.answers import RIGHT, WRONG
from tests.course.answers.common import leaves_python
from tests.course.answers.lesson05 import register_hooks
from tests.course.answers.lesson07 import safe_log
from tests.course.answers.lesson12 import with_hook
from tests.course.answers.lesson13 import patches_from_the_place_on

NUMBERS = [exercise for exercise, wrong in WRONG.items() if isinstance(wrong[0], int)]
"""The exercises that ask for a number."""


@pytest.mark.parametrize("exercise", RIGHT)
def test_right_answer_is_accepted(exercise: str) -> None:
    verdict = check(exercise, RIGHT[exercise])
    assert verdict.right, verdict
    assert repr(verdict).startswith(f"Exercise {exercise}: right.")


@pytest.mark.parametrize("exercise", WRONG)
def test_each_usual_mistake_gets_its_own_reason_and_each_reason_has_a_mistake(
    exercise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, reached = JUDGES[exercise], {"right"}

    def noting(answer: Any) -> Feedback:
        feedback = judge(answer)
        reached.add(feedback.name)
        return feedback

    monkeypatch.setitem(JUDGES, exercise, noting)
    verdicts = [check(exercise, answer) for answer in WRONG[exercise]]
    assert not any(verdict.right for verdict in verdicts)
    assert len({verdict.reason for verdict in verdicts}) == len(WRONG[exercise]) >= 3
    own = {key.partition(f"{exercise}.")[2] for key in feedback_texts() if key.startswith(f"{exercise}.")}
    assert own == reached - {*SHARED_FEEDBACK}


@pytest.mark.parametrize("exercise", NUMBERS)
def test_no_reason_contains_the_right_number(exercise: str) -> None:
    reasons = [text for key, text in feedback_texts().items() if key.startswith(exercise)]
    assert reasons
    assert not any(f"{float(RIGHT[exercise]):g}" in re.findall(r"\d+", text) for text in reasons)


# -- other forms of right answers


def stack_of_handles(model: Any, hook: Any) -> ExitStack:
    stack = ExitStack()
    for handle in register_hooks(model, hook):
        stack.enter_context(handle)
    return stack


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("01.2", {"d"}),
        ("02.1", "\uff11\uff10\uff0e\uff10"),
        ("02.1", "tensor(10.)"),
        ("05.7", stack_of_handles),
        ("07.3", np.float32(1)),
        ("07.5", lambda x: safe_log(x.double())),
    ],
)
def test_equivalent_forms_of_the_right_answer_are_accepted(exercise: str, answer: Any) -> None:
    with torch.no_grad():
        verdict = check(exercise, answer)
    assert verdict.right, verdict


def test_a_rounded_number_gets_advice_about_digits_and_half_a_point() -> None:
    verdict = check("07.1", 0.0156)
    assert not verdict.right and "Give all digits" in verdict.reason and verdict.score == 0.5


# -- answers of another kind


@pytest.mark.parametrize(
    ("exercise", "answers", "reason"),
    [
        ("01.1", [None, ...], "Nothing was entered yet"),
        ("01.1", ["many", "1,000", "", 10**400, 1j, torch.ones(2), object()], "The answer should be one number."),
        ("01.2", [3, "x", "", ["a", 1], {}], "name of one of the tensors"),
        ("02.8", [torch.ones(2)], "and this is of the type tensor: what a function returned, perhaps."),
        ("02.8", [torch.ones(2, requires_grad=True).register_hook(print)], "and this is the handle of a hook."),
    ],
)
def test_answer_of_another_kind_is_told_what_the_exercise_asks_for(
    exercise: str, answers: list[Any], reason: str
) -> None:
    for answer in answers:
        assert reason in check(exercise, answer).reason, answer


@pytest.mark.parametrize("exercise", ["02.8", "05.8", "10.6"])
def test_exercise_that_asks_for_a_function_explains_a_text_and_a_function_that_leaves(exercise: str) -> None:
    assert "The answer should be a function, and this is a text." in check(exercise, "program").reason
    assert "Your function ended in an error: SystemExit" in check(exercise, leaves_python).reason


RETURN_VALUES: list[Callable[[torch.Tensor], Any]] = [
    lambda tensor: "x",
    lambda tensor: (None,),
    lambda tensor: tensor.bool(),
    lambda tensor: tensor.to("meta"),
    lambda tensor: torch.ones(0),
    lambda tensor: iter(()),
]


@pytest.mark.parametrize("exercise", sorted(set(JUDGES) - {"10.2", "10.7", "12.4"}))  # two of these take seconds
def test_an_answer_of_any_type_and_any_return_value_of_a_function_get_a_reason(exercise: str) -> None:
    for answer in (3 + 4j, np.array([3, 4]), {}, 10**400, torch.nn.ReLU, float("nan")):
        verdict = check(exercise, answer)
        assert not verdict.right and verdict.reason, answer
    for make in RETURN_VALUES:
        assert check(exercise, lambda x, make=make: make(x)).reason
        assert check(exercise, lambda one, two, three, make=make: make(three)).reason


# -- reasons with details


@pytest.mark.parametrize(
    ("exercise", "answer", "expected"),
    [
        ("01.7", lambda: 1, "Your function ended in an error: TypeError: "),
        ("03.6", lambda grad: grad, "two things: module, args."),
        (
            "03.7",
            lambda module, args, output, kwargs: output * kwargs["c"],
            "in this order: module, args, kwargs, output.",
        ),
        ("04.6", lambda module, grad_input, grad_output: (-grad_input[0],), "length 1; the number of the module's"),
        ("07.6", lambda grad: grad / grad.norm() if grad.norm() > 4.9 else grad, "norm 1.5 came out with the norm 1.5"),
        ("08.7", lambda module, args, output: output.register_hook(print), "returns something (RemovableHandle)"),
        ("12.4", lambda module, grad_input, grad_output: (grad_output[0].mean(),), "the same shape"),
        ("12.5", with_hook(lambda grad: grad.clamp_(-1, 1)), "writes into a tensor"),
        ("13.5", patches_from_the_place_on, "at several places"),
    ],
)
def test_reason_says_what_is_wrong_with_an_answer_that_is_right_in_part(
    exercise: str, answer: Any, expected: str
) -> None:
    verdict = check(exercise, answer)
    assert not verdict.right and expected in verdict.reason


def test_html_of_a_verdict_is_escaped() -> None:
    assert "&lt;b&gt;" in Verdict("01.1", False, "<b>")._repr_html_()


# -- names of exercises


@pytest.mark.parametrize(("name", "meant"), [("1,1", "01.1"), ("021", "02.1")])
def test_an_exercise_that_is_nearly_named_is_asked_about_in_one_line(name: Any, meant: str) -> None:
    with pytest.raises(ValueError, match="There is no exercise") as raised:
        check(name, 1)
    assert str(raised.value) == f'There is no exercise "{name}": do you mean {meant}?'


def test_a_number_names_an_exercise_and_an_unknown_one_lists_those_of_its_lesson() -> None:
    assert check(12.1, None).exercise == "12.1"  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r'"12\.9"\. Lesson 12 has 12\.1, 12\.2, 12\.3, 12\.4, 12\.5, 12\.6\.$'):
        check("12.9", 1)
    with pytest.raises(ValueError, match=rf'"99\.9"\. The exercises are numbered from 01\.1 to {max(JUDGES)}\.$'):
        check("99.9", 1)
