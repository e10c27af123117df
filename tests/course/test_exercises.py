"""The check of an exercise accepts right answers, gives a reason for wrong ones, and never reveals the answer."""

import re
from contextlib import ExitStack
from typing import Any

import pytest
import torch

from hookviz.course import Verdict, check
from hookviz.course.exercises import JUDGES, SHARED_FEEDBACK, feedback_texts
from tests.course.answers import RIGHT, WRONG
from tests.course.answers.common import leaves_python, raises
from tests.course.answers.lesson05 import register_hooks


def stack_of_handles(model: Any, hook: Any) -> ExitStack:
    stack = ExitStack()
    for handle in register_hooks(model, hook):
        stack.enter_context(handle)
    return stack


FUNCTIONS = [
    exercise for exercise, answer in RIGHT.items() if callable(answer) and not isinstance(answer, torch.Tensor)
]
"""The exercises that ask for a function."""


@pytest.mark.parametrize("exercise", RIGHT)
def test_right_answer_is_accepted(exercise: str) -> None:
    verdict = check(exercise, RIGHT[exercise])
    assert verdict.right, verdict
    assert repr(verdict).startswith(f"Exercise {exercise}: right.")


@pytest.mark.parametrize("exercise", WRONG)
def test_each_usual_mistake_gets_its_own_reason(exercise: str) -> None:
    verdicts = [check(exercise, answer) for answer in WRONG[exercise]]
    assert not any(verdict.right for verdict in verdicts)
    assert len({verdict.reason for verdict in verdicts}) == len(WRONG[exercise]) >= 3


@pytest.mark.parametrize("answer", ["8", "\uff18\uff0e\uff10", "tensor(8.)"])
def test_text_answer_is_parsed_as_in_the_player(answer: str) -> None:
    assert check("02.1", answer).reason == check("02.1", 8).reason


@pytest.mark.parametrize("exercise", [key for key, wrong in WRONG.items() if isinstance(wrong[0], int)])
def test_no_reason_contains_the_right_number(exercise: str) -> None:
    reasons = [text for key, text in feedback_texts().items() if key.startswith(exercise)]
    assert reasons
    assert not any(f"{float(RIGHT[exercise]):g}" in re.findall(r"\d+", text) for text in reasons)


@pytest.mark.parametrize("placeholder", [None, ...])
def test_placeholder_answer_is_reported_as_not_yet_entered(placeholder: Any) -> None:
    assert "Nothing was entered yet" in check("01.1", placeholder).reason


NOT_NUMBERS = ["many", "1,000", "", "None", 10**400, 1j, [1], torch.ones(2), torch.ones(1, device="meta"), object()]


@pytest.mark.parametrize(
    ("exercise", "answers", "reason"),
    [
        ("01.1", NOT_NUMBERS, "The answer should be one number."),
        ("01.2", [3, "x", "", "a b", ["a", 1], {}, float("nan")], "name of one of the tensors"),
    ],
)
def test_answer_of_another_kind_is_told_what_the_exercise_asks_for(
    exercise: str, answers: list[Any], reason: str
) -> None:
    for answer in answers:
        assert reason in check(exercise, answer).reason, answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("program", "and this is a text. Give the function's name, without quotation marks."),
        (torch.ones(2), "and this is of the type tensor: what a function returned, perhaps."),
        (7.0, "and this is of the type float: what a function returned, perhaps."),
        ((torch.ones(2),), "and this is of the type tuple: what a function returned, perhaps."),
        (torch.ones(2, requires_grad=True).register_hook(print), "and this is the handle of a hook."),
    ],
)
def test_reason_names_the_type_of_an_answer_that_is_not_a_function(answer: Any, expected: str) -> None:
    assert f"The answer should be a function, {expected}" in check("02.8", answer).reason


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_exercise_that_asks_for_a_function_explains_a_text_and_a_function_that_raises(exercise: str) -> None:
    assert "The answer should be a function, and this is a text." in check(exercise, "program").reason
    assert "Your function ended in an error: RuntimeError: no" in check(exercise, raises).reason
    assert "Your function ended in an error: SystemExit" in check(exercise, leaves_python).reason


@pytest.mark.parametrize(
    ("exercise", "expected"),
    [
        ("03.6", "two things: module, args."),
        ("03.7", "module, args, kwargs, output."),
        ("04.6", "module, grad_input, grad_output."),
        ("08.7", "three things: module, args, output."),
        ("12.4", "module, grad_input, grad_output."),
    ],
)
@pytest.mark.parametrize("function", [lambda: 1, lambda a, b, c, d, e: a, lambda grad: grad])
def test_reason_lists_the_arguments_of_a_hook_with_wrong_parameters(
    exercise: str, expected: str, function: Any
) -> None:
    assert check(exercise, function).reason.endswith(expected)


@pytest.mark.parametrize("exercise", ["01.7", "02.8", "05.6"])
def test_function_with_wrong_parameters_that_is_not_a_hook_gets_its_type_error(exercise: str) -> None:
    assert "Your function ended in an error: TypeError: " in check(exercise, lambda: 1).reason


def test_swapped_output_and_kwargs_count_as_wrong_parameters() -> None:
    exchanged = check("03.7", lambda module, args, output, kwargs: output * kwargs["c"])
    assert "in this order: module, args, kwargs, output." in exchanged.reason
    assert "ended in an error" in check("03.7", lambda module, args, kwargs, output: output * kwargs["b"]).reason


def test_reason_states_the_length_of_a_tuple_that_is_too_short() -> None:
    reason = check("04.6", lambda module, grad_input, grad_output: (-grad_input[0],)).reason
    assert "a tuple of length 1; the number of the module's inputs was 2." in reason


def test_reason_states_the_shape_of_a_wrongly_shaped_heatmap() -> None:
    assert "returned this: (2, 3, 4, 5)." in check("08.6", lambda maps, grad: maps).reason
    assert "returned this: float." in check("08.6", lambda maps, grad: 1.0).reason


def test_reason_names_the_handle_that_a_forward_hook_returned() -> None:
    reason = check("08.7", lambda module, args, output: output.register_hook(lambda grad: None)).reason
    assert "returns something (RemovableHandle)" in reason


class RoundLayer(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.round()


def test_right_answer_for_rounding_is_a_straight_through_estimator() -> None:
    module, x = RoundLayer(), torch.tensor(2.6, requires_grad=True)
    module.register_full_backward_hook(RIGHT["12.4"])
    y = module(x)
    assert (y.item(), torch.autograd.grad(y * 5, x)[0].item()) == (3, 5)


def test_error_in_a_later_call_is_reported() -> None:
    calls: list[torch.Tensor] = []

    def raises_later(grad: torch.Tensor) -> torch.Tensor:
        calls.append(grad)
        return grad * 5 if len(calls) == 1 else raises()

    assert "RuntimeError: no" in check("02.8", raises_later).reason
    assert "RuntimeError: no" in check("07.5", raises_for_gradients).reason
    calls.clear()
    assert "RuntimeError: no" in check("07.6", raises_later).reason


def raises_for_gradients(x: torch.Tensor) -> torch.Tensor:
    """Right without gradients; raises an error if the argument requires a gradient."""
    return raises() if x.requires_grad else torch.where(x > 0, x, 1.0).log()


def test_exit_stack_of_handles_is_accepted() -> None:
    assert check("05.7", stack_of_handles).right


@pytest.mark.parametrize("answer", ["d.grad", " d ", "D", ["d"], {"d"}])
def test_tensor_name_is_accepted_in_several_spellings(answer: Any) -> None:
    assert check("01.2", answer).right


def test_check_works_under_no_grad() -> None:
    with torch.no_grad():
        assert check("02.1", 10).right


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *((name, "01.1") for name in ("1.1", "01.01", "1-1", "01,1", 1.1, "Exercise 01.1", "０１．１", "１。１")),
        ("02.9 ", "02.9"),
        ("021", "02.1"),
    ],
)
def test_an_exercise_that_is_nearly_named_is_asked_about_in_one_line(name: Any, meant: str) -> None:
    with pytest.raises(ValueError, match="There is no exercise") as raised:
        check(name, 1)
    assert str(raised.value) == f'There is no exercise "{name}": do you mean {meant}?'


@pytest.mark.parametrize(
    ("name", "answered"),
    [
        ("14.9", "Lesson 14 has 14.1, 14.2, 14.3."),
        ("13", "Lesson 13 has 13.1, 13.2, 13.3, 13.4, 13.5, 13.6."),
        ("99.9", "The exercises are numbered from 01.1 to 14.3."),
        ("", "The exercises are numbered from 01.1 to 14.3."),
    ],
)
def test_an_unknown_exercise_lists_those_of_its_lesson(name: str, answered: str) -> None:
    with pytest.raises(ValueError, match="There is no exercise") as raised:
        check(name, 1)
    assert str(raised.value) == f'There is no exercise "{name}". {answered}'


def test_a_number_that_names_an_exercise_is_accepted() -> None:
    assert check(13.1, None).exercise == "13.1"  # type: ignore[arg-type]


def test_known_answers_reach_every_feedback_text() -> None:
    reached = {f"{key}.{JUDGES[key](answer).name}" for key in WRONG for answer in [*WRONG[key], RIGHT[key]]}
    own = {name for name in reached if name.rpartition(".")[2] not in SHARED_FEEDBACK}
    assert set(feedback_texts()) - set(SHARED_FEEDBACK) == own
    assert set(SHARED_FEEDBACK) <= set(feedback_texts())


def test_html_of_a_verdict_is_escaped() -> None:
    assert "&lt;b&gt;" in Verdict("01.1", False, "<b>")._repr_html_()
