"""An exercise's check says right, or why not, and never gives the answer away."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import pytest
import torch

import hookviz as hv
from hookviz.quiz.check import JUDGES, SHARED
from hookviz.words import table


def raises(*_: Any) -> torch.Tensor:
    raise RuntimeError("no")


def leaves_python(*_: Any) -> None:
    raise SystemExit


def forgets_to_return(grad: torch.Tensor) -> None:
    grad.clamp(-3, 3)


def backward_inside(a: torch.Tensor, b: torch.Tensor) -> None:
    (a * b).backward()


def put(model: Any, hook: Any) -> list[Any]:
    return [layer.register_forward_hook(hook) for layer in model]


@contextmanager
def watched(model: Any, hook: Any) -> Iterator[None]:
    handles = put(model, hook)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def only_in_peace(model: Any, hook: Any) -> Iterator[None]:
    handles = put(model, hook)
    yield
    for handle in handles:
        handle.remove()


@contextmanager
def never_removed(model: Any, hook: Any) -> Iterator[None]:
    put(model, hook)
    yield


@contextmanager
def on_everything(model: Any, hook: Any) -> Iterator[None]:
    with model.register_forward_hook(hook), watched(model, hook):
        yield


def no_decorator(model: Any, hook: Any) -> Iterator[None]:
    put(model, hook)
    yield


def stack_of_handles(model: Any, hook: Any) -> ExitStack:
    stack = ExitStack()
    for handle in put(model, hook):
        stack.enter_context(handle)
    return stack


@contextmanager
def breaks_at_the_end(model: Any, hook: Any) -> Iterator[None]:
    with watched(model, hook):
        yield
    raise OSError("broken")


RIGHT: dict[str, Any] = {
    "01.1": 12,
    "01.2": 60.0,
    "01.3": torch.tensor(6.0),
    "01.4": "a",
    "01.5": "18",
    "01.6": lambda a, b: a * b + 4 * a,
    "02.1": 10,
    "02.2": torch.tensor([24]),
    "02.3": True,
    "02.4": 100,
    "02.5": lambda grad: grad * 5,
    "02.6": lambda grad: grad.clamp(-3, 3),
    "02.7": "a, b and c",
    "03.1": 116,
    "03.2": 6,
    "03.3": torch.tensor([30.0]),
    "03.4": "2",
    "03.5": lambda module, args: (2 * args[0], 2 * args[1]),
    "03.6": lambda module, args, kwargs, output: output * kwargs["c"],
    "03.7": 3,
    "05.1": 6,
    "05.2": 64,
    "05.3": 2,
    "05.4": watched,
    "05.5": lambda factor: lambda grad: grad * factor,
    "04.1": 12,
    "04.2": 4.0,
    "04.3": torch.tensor(2),
    "04.4": torch.tensor([[2.0]]),
    "04.5": lambda module, grad_input, grad_output: tuple(-grad for grad in grad_input),
    "04.6": 5,
}
WRONG: dict[str, list[Any]] = {
    "01.1": [3, 4, 7, 8, 6, 24, 1, 5],
    "01.2": [6, 16, 10, 40, 240, 5],
    "01.3": [3, 9, 2, 1, 5],
    "01.4": ["b", "d", "c", "e"],
    "01.5": [6, 12, 216, 9, 5],
    "01.6": [
        backward_inside,
        lambda a, b: torch.tensor(7.0),
        lambda a, b: torch.stack([a, b]),
        lambda a, b: 7 * a,
        lambda a, b: a * b,
        lambda a, b: a + 2 * b,
        lambda a, b: 7 * a + b,
        raises,
    ],
    "02.1": [4, 8, 6, 12, 112, 5],
    "02.2": [30, 12, 16, 8, 5],
    "02.3": [2, 0, 3, 5],
    "02.4": [1, 4, 0, 5],
    "02.5": [
        lambda grad: grad,
        lambda grad: torch.tensor(40.0),
        lambda grad: grad * 40,
        lambda grad: grad + 40,
        lambda grad: grad * 10,
        lambda grad: grad - 1,
        lambda grad: grad.mul_(5),
        lambda grad: print(grad * 5),
        lambda grad: 40.0,
        raises,
    ],
    "02.6": [
        forgets_to_return,
        lambda grad: grad.clamp_(-3, 3),
        lambda grad: grad.clamp(max=3),
        lambda grad: grad.clamp(0, 3),
        lambda grad: grad.sum(),
        lambda grad: grad,
        raises,
    ],
    "02.7": ["a b c d", "a b c e", "c", "a b", "a c"],
    "03.1": [6, 16, 106, 136, 5],
    "03.2": [116, 106, 5],
    "03.3": [21, 20, 2, 5],
    "03.4": [4, 0, 1, 5],
    "03.5": [
        lambda module, args: args[0] * 2,
        lambda module, args: args * 2,
        lambda module, args: (args[0] * 2, args[1]),
        lambda module, args: (args[0], args[1] * 2),
        lambda module, args: args,
        lambda module, args: (torch.tensor(2.0), torch.tensor(4.0)),
        lambda module, args: (args, args),
        lambda module, args: print([2 * x for x in args]),
        lambda module, args: tuple(x.mul_(2) for x in args),
        lambda args: (2 * args[0], 2 * args[1]),
        raises,
    ],
    "03.6": [
        lambda module, args, kwargs, output: output,
        lambda module, args, kwargs, output: output + kwargs["c"],
        lambda module, args, kwargs, output: output * 3,
        lambda module, args, kwargs, output: (args, kwargs),
        lambda module, args, kwargs, output: print(output * kwargs["c"]),
        lambda module, args, kwargs, output: output.mul_(kwargs["c"]),
        lambda module, args, output: output * 3,
        raises,
    ],
    "03.7": [4, 2, 1, 5],
    "05.1": [3, 9, 1, 0, 5],
    "05.2": [24, 4, 12, 9, 1, 5],
    "05.3": [3, 0, 1, 5],
    "05.4": [
        put,
        no_decorator,
        never_removed,
        only_in_peace,
        on_everything,
        lambda model, hook: model[0].register_forward_hook(hook),
        lambda model, hook: nullcontext(),
        breaks_at_the_end,
    ],
    "05.5": [
        lambda factor: factor * 10,
        lambda factor: lambda grad: grad * 4,
        lambda factor: lambda grad: grad + factor,
        lambda factor: lambda grad: grad.mul_(factor),
        lambda factor: lambda grad: print(grad * factor),
        lambda factor: lambda grad: factor,
        raises,
    ],
    "04.1": [4, 8, 6, 1, 24, 2, 5],
    "04.2": [12, 8, 6, 1, 5],
    "04.3": [0, 4, 3, 5],
    "04.4": [0.2, 3, 0, 5],
    "04.5": [
        lambda module, grad_input, grad_output: -grad_input[0],
        lambda module, grad_input, grad_output: (grad_input, grad_output),
        lambda module, grad_input, grad_output: tuple(-grad for grad in grad_output),
        lambda module, grad_input, grad_output: (-grad_input[0],),
        lambda module, grad_input, grad_output: grad_input,
        lambda module, grad_input, grad_output: tuple(abs(grad) for grad in grad_input),
        lambda module, grad_input, grad_output: print(grad_input),
        lambda module, grad_input, grad_output: tuple(grad.neg_() for grad in grad_input),
        lambda grad: -grad,
        lambda module, grad_input, grad_output: -grad_input,
        raises,
    ],
    "04.6": [10, 2, 0, 50, 7],
}


FUNCTIONS = [
    exercise for exercise, answer in RIGHT.items() if callable(answer) and not isinstance(answer, torch.Tensor)
]
"""The exercises that ask for a function."""


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


def test_the_gradient_before_c_hook_is_told_from_that_without_hooks() -> None:
    assert "arrives at c. Two hooks of c then work on it" in hv.check("02.1", 8).reason
    assert "no hook runs at all" in hv.check("02.1", 4).reason


@pytest.mark.parametrize("exercise", [key for key, wrong in WRONG.items() if isinstance(wrong[0], int)])
def test_no_reason_gives_the_number_away(exercise: str) -> None:
    texts = [text for key, text in table().items() if key.startswith(f"check.{exercise}")]
    assert texts
    assert not any(f"{float(RIGHT[exercise]):g}" in re.findall(r"\d+", text) for text in texts)


@pytest.mark.parametrize("exercise", RIGHT)
@pytest.mark.parametrize("nothing", [None, ...])
def test_no_answer_yet_is_said_kindly(exercise: str, nothing: Any) -> None:
    assert "Nothing was entered yet" in hv.check(exercise, nothing).reason


@pytest.mark.parametrize("answer", [10**400, "many", 1j, [1], torch.ones(2), object(), torch.ones(1, device="meta")])
def test_what_is_no_number_is_answered_in_a_sentence(answer: Any) -> None:
    assert hv.check("01.1", answer).reason == "The answer should be one number."


@pytest.mark.parametrize("answer", [3, "x", "", "a b", ["a", 1], {}, float("nan")])
def test_what_is_no_name_is_answered_in_a_sentence(answer: Any) -> None:
    assert "name of one of the tensors" in hv.check("01.4", answer).reason


@pytest.mark.parametrize("answer", [3, "f", "", ["a", 1], torch.ones(2)])
def test_what_are_no_names_is_answered_in_a_sentence(answer: Any) -> None:
    assert "should be names" in hv.check("02.7", answer).reason


@pytest.mark.parametrize("exercise", FUNCTIONS)
@pytest.mark.parametrize("answer", [3, "def hook", torch.ones(2)])
def test_what_is_no_function_is_answered_in_a_sentence(exercise: str, answer: Any) -> None:
    assert "should be a function" in hv.check(exercise, answer).reason


@pytest.mark.parametrize("exercise", FUNCTIONS)
@pytest.mark.parametrize(
    ("function", "said"),
    [(raises, "RuntimeError: no"), (leaves_python, "SystemExit"), (lambda *given: 1 + "", "TypeError: ")],
)
def test_a_function_that_raises_is_reported(exercise: str, function: Any, said: str) -> None:
    assert f"Your function ended in an error: {said}" in hv.check(exercise, function).reason


@pytest.mark.parametrize(
    ("exercise", "said"),
    [
        ("03.5", "two things: module, args."),
        ("03.6", "module, args, kwargs, output."),
        ("04.5", "module, grad_input, grad_output."),
    ],
)
@pytest.mark.parametrize("function", [lambda: 1, lambda a, b, c, d, e: a, lambda grad: grad])
def test_a_hook_with_other_parameters_is_told_what_it_is_given(exercise: str, said: str, function: Any) -> None:
    assert hv.check(exercise, function).reason.endswith(said)


@pytest.mark.parametrize("exercise", ["01.6", "02.5", "05.5"])
def test_any_other_function_with_other_parameters_is_told_of_the_error(exercise: str) -> None:
    assert "Your function ended in an error: TypeError: " in hv.check(exercise, lambda: 1).reason


def test_output_and_kwargs_exchanged_are_other_parameters_too() -> None:
    exchanged = hv.check("03.6", lambda module, args, output, kwargs: output * kwargs["c"])
    assert "in this order: module, args, kwargs, output." in exchanged.reason
    assert "ended in an error" in hv.check("03.6", lambda module, args, kwargs, output: output * kwargs["b"]).reason


def test_a_tuple_that_is_too_short_is_counted() -> None:
    reason = hv.check("04.5", lambda module, grad_input, grad_output: (-grad_input[0],)).reason
    assert "a tuple of length 1; the number of the module's inputs was 2." in reason


def test_an_error_after_the_first_call_is_reported_too() -> None:
    calls: list[torch.Tensor] = []

    def tires(grad: torch.Tensor) -> torch.Tensor:
        calls.append(grad)
        return grad * 5 if len(calls) == 1 else raises()

    assert "RuntimeError: no" in hv.check("02.5", tires).reason
    calls.clear()
    assert "RuntimeError: no" in hv.check("02.6", tires).reason


def test_a_stack_of_handles_is_as_good_as_a_function_of_ones_own() -> None:
    assert hv.check("05.4", stack_of_handles).right


@pytest.mark.parametrize("answer", ["a.grad", " a ", "A", ["a"], {"a"}])
def test_a_name_may_be_given_in_several_ways(answer: Any) -> None:
    assert hv.check("01.4", answer).right


def test_a_check_works_where_gradients_are_switched_off() -> None:
    with torch.no_grad():
        assert hv.check("02.1", 10).right


def test_an_unknown_exercise_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"There is no exercise 09\.9: there are 01\.1, 01\.2"):
        hv.check("09.9", 1)


def test_every_check_text_is_reached() -> None:
    found = {f"{key}.{JUDGES[key](answer).name}" for key in WRONG for answer in [*WRONG[key], RIGHT[key]]}
    own = {key.removeprefix("check.") for key in table() if re.match(r"check\.\d", key)}
    assert own == {name for name in found if name.rpartition(".")[2] not in SHARED}


def test_a_verdict_is_escaped_in_jupyter() -> None:
    assert "&lt;b&gt;" in hv.Verdict("01.1", False, "<b>")._repr_html_()
