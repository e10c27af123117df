"""A check tries an answer on several examples, and rejects any invalid answer with a reason."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from hookviz.course import check
from hookviz.course.exercises import JUDGES
from hookviz.course.lesson11 import STEP_ORDER
from tests.course.answers import RIGHT
from tests.course.answers.lesson05 import OTHER_GROUPS
from tests.course.answers.lesson07 import safe_log
from tests.course.answers.lesson08 import weights
from tests.course.answers.lesson12 import with_hook
from tests.course.answers.lesson13 import keeps_the_second_row, patches, patches_from_the_place_on


@pytest.mark.parametrize("answer", ["3 / 64", 0.0156, torch.tensor(0.0157)])
def test_rounded_number_gets_advice_about_digits(answer: Any) -> None:
    verdict = check("07.1", answer)
    assert not verdict.right and ("Give all digits" in verdict.reason) == (answer != "3 / 64")


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("07.3", np.array([1])),
        ("07.3", np.float32(1)),
        ("07.5", lambda x: safe_log(x.double())),
        ("07.6", lambda grad: grad.double() / grad.double().norm().clamp(min=1)),
        ("07.6", lambda grad: grad / grad.norm() if grad.norm() > 1 else None),
        ("08.6", lambda maps, grad: (weights(grad) * maps).sum(1).relu().double()),
        (
            "08.7",
            lambda module, args, output: output.register_hook(lambda grad: setattr(module, "seen", grad)) and output,
        ),
        ("12.4", lambda module, grad_input, grad_output: (grad_output[0] * 1,)),
    ],
)
def test_equivalent_forms_of_the_right_answer_are_accepted(exercise: str, answer: Any) -> None:
    verdict = check(exercise, answer)
    assert verdict.right, verdict


def clip_each_row(grad: torch.Tensor) -> torch.Tensor:
    return grad / grad.norm(dim=-1, keepdim=True).clamp(min=1)


def clamp_in_place(grad: torch.Tensor) -> torch.Tensor:
    return grad.clamp_(-1, 1)


@pytest.mark.parametrize(
    ("exercise", "answer", "expected"),
    [
        ("07.5", lambda x: safe_log(x).int(), "does not return what MaskedLog returns"),
        ("07.6", clip_each_row, "changes the direction"),
        (
            "07.6",
            lambda grad: grad / grad.norm() if grad.norm() > 4.9 else grad,
            "norm 1.5 came out with the norm 1.5.",
        ),
        ("12.4", lambda module, grad_input, grad_output: (torch.tensor([5.0, -3.0]),), "the same shape"),
        ("12.4", lambda module, grad_input, grad_output: (5.0,), "the same shape"),
        ("12.4", lambda module, grad_input, grad_output: (grad_output[0].mean(),), "the same shape"),
        ("12.4", lambda module, grad_input, grad_output: (grad_output[0].abs(),), "number for number"),
        ("12.5", with_hook(clamp_in_place), "writes into a tensor"),
        ("12.5", lambda x: x.detach().requires_grad_(), "has no history"),
        ("13.5", patches_from_the_place_on, "at several places"),
        ("13.5", keeps_the_second_row, "come from row_a?"),
        ("13.5", lambda *given: patches(*given).argmax(-1), "as the network returns them"),
        ("13.5", lambda *given: patches(*given).softmax(-1), "neither run"),
    ],
)
def test_answer_that_is_right_for_one_example_only_is_rejected_with_a_reason(
    exercise: str, answer: Any, expected: str
) -> None:
    verdict = check(exercise, answer)
    assert not verdict.right and expected in verdict.reason


@pytest.mark.parametrize(("answer", "expected"), OTHER_GROUPS)
def test_group_of_hooks_that_fails_gets_the_reason(answer: Any, expected: str) -> None:
    verdict = check("05.8", answer)
    assert not verdict.right and expected in verdict.reason


RETURN_VALUES: list[Callable[[torch.Tensor], Any]] = [
    lambda tensor: "x",
    lambda tensor: 3,
    lambda tensor: [tensor],
    lambda tensor: ({},),
    lambda tensor: (None,),
    lambda tensor: tensor.double(),
    lambda tensor: (tensor.double(),),
    lambda tensor: tensor.int(),
    lambda tensor: tensor.bool(),
    lambda tensor: tensor.detach().to_sparse(),
    lambda tensor: tensor.to("meta"),
    lambda tensor: tensor.detach().to(torch.complex64),
    lambda tensor: tensor * float("nan"),
    lambda tensor: torch.ones(0),
    lambda tensor: lambda *_: tensor,
    lambda tensor: iter(()),
]


@pytest.mark.parametrize("exercise", sorted(set(JUDGES) - {"12.4"}))
def test_any_return_value_of_a_function_gets_a_reason(exercise: str) -> None:
    for make_value in RETURN_VALUES:
        for answer in (
            lambda x, make_value=make_value: make_value(x),
            lambda one, two, three, make_value=make_value: make_value(three),
        ):
            assert check(exercise, answer).reason


@pytest.mark.parametrize("exercise", sorted(RIGHT))
def test_invalid_answer_of_any_type_gets_a_reason(exercise: str) -> None:
    for answer in (3 + 4j, np.array([3, 4]), {}, set(), b"x", 10**400, object(), torch.nn.ReLU, float("nan")):
        verdict = check(exercise, answer)
        assert not verdict.right and verdict.reason, answer


def test_order_of_a_training_step_is_that_of_torch() -> None:
    fired: list[str] = []

    def note(letter: str) -> Callable[..., None]:
        return lambda *_: fired.append(letter)

    layer, x = torch.nn.Linear(1, 1, bias=False), torch.ones(1, 1, requires_grad=True)
    sgd = torch.optim.SGD(layer.parameters(), lr=0.5)
    layer.register_forward_pre_hook(note("A"))
    layer.register_forward_hook(note("B"))
    layer.register_full_backward_hook(note("C"))
    layer.register_full_backward_pre_hook(note("D"))
    sgd.register_step_post_hook(note("E"))
    layer.weight.register_hook(note("F"))
    sgd.register_step_pre_hook(note("G"))
    layer.weight.register_post_accumulate_grad_hook(note("H"))
    layer(x).backward()
    sgd.step()
    assert "".join(fired) == STEP_ORDER
