"""Right and wrong answers to what lesson 11 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises


def clips(param: torch.Tensor) -> None:
    assert param.grad is not None
    param.grad.clamp_(-1, 1)


def clips_the_parameter(grad: torch.Tensor) -> None:
    grad.clamp_(-1, 1)


def clips_one_side(param: torch.Tensor) -> None:
    assert param.grad is not None
    param.grad.clamp_(max=1)


def clips_a_copy(param: torch.Tensor) -> None:
    assert param.grad is not None
    param.grad.clamp(-1, 1)


def throws_away(param: torch.Tensor) -> None:
    param.grad = None


def makes_zero(param: torch.Tensor) -> None:
    assert param.grad is not None
    param.grad.zero_()


def renames(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")


def forgets_the_prefix(module: Any, state_dict: Any, *rest: Any) -> None:
    state_dict["weight"] = state_dict.pop("old")


def leaves_the_old_name(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    state_dict[prefix + "weight"] = state_dict[prefix + "old"]


def returns_another(module: Any, state_dict: Any, prefix: str, *rest: Any) -> Any:
    return {prefix + "weight": state_dict[prefix + "old"]}


def puts_something_else(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    state_dict[prefix + "weight"] = state_dict.pop(prefix + "old") * 0


def renames_too_much(module: Any, state_dict: Any, *rest: Any) -> None:
    for key in list(state_dict):
        state_dict[key.replace("old", "weight")] = state_dict.pop(key)


RIGHT: dict[str, Any] = {
    "11.1": 5,
    "11.2": torch.tensor(30.0),
    "11.3": "1",
    "11.4": clips,
    "11.5": renames,
}
WRONG: dict[str, list[Any]] = {
    "11.1": [1, 3, 15, 0, 7],
    "11.2": [3, 20, 2, 60, 300, 5],
    "11.3": [2, 0, 5],
    "11.4": [
        clips_the_parameter,
        lambda param: param.grad.clamp_(-1, 1),
        clips_a_copy,
        clips_one_side,
        throws_away,
        makes_zero,
        raises,
    ],
    "11.5": [
        forgets_the_prefix,
        renames_too_much,
        leaves_the_old_name,
        returns_another,
        puts_something_else,
        lambda module, state_dict: None,
        raises,
    ],
}
