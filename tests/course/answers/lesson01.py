"""Right and wrong answers to what lesson 01 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises


def backward_inside(a: torch.Tensor, b: torch.Tensor) -> None:
    (a * b).backward()


def find_silent(net: torch.nn.Module, loss: torch.Tensor) -> list[str]:
    net.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return [name for name, parameter in net.named_parameters() if parameter.requires_grad and parameter.grad is None]


def finds_frozen(net: torch.nn.Module, loss: torch.Tensor) -> set[str]:
    net.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return {name for name, parameter in net.named_parameters() if parameter.grad is None}


def finds_zero(net: torch.nn.Module, loss: torch.Tensor) -> list[str]:
    loss.backward()  # type: ignore[no-untyped-call]
    return [name for name, parameter in net.named_parameters() if parameter.grad is None or not parameter.grad.any()]


def believes_an_old_gradient(net: torch.nn.Module, loss: torch.Tensor) -> list[str]:
    loss.backward()  # type: ignore[no-untyped-call]
    return [name for name, parameter in net.named_parameters() if parameter.requires_grad and parameter.grad is None]


def finds_the_others(net: torch.nn.Module, loss: torch.Tensor) -> list[str]:
    loss.backward()  # type: ignore[no-untyped-call]
    return [name for name, parameter in net.named_parameters() if parameter.grad is not None]


RIGHT: dict[str, Any] = {
    "01.1": 12,
    "01.2": "d",
    "01.3": 60.0,
    "01.4": torch.tensor(6.0),
    "01.5": "12",
    "01.6": 14,
    "01.7": lambda a, b: a * b + 4 * a,
    "01.8": find_silent,
}
WRONG: dict[str, list[Any]] = {
    "01.1": [3, 4, 7, 8, 6, 24, 1, 5],
    "01.2": ["a", "b", "c", "e"],
    "01.3": [6, 16, 10, 40, 240, 5],
    "01.4": [3, 9, 2, 1, 5],
    "01.5": [6, 36, 9, 18, 5],
    "01.6": [15, 16, 2, 0, 5],
    "01.7": [
        backward_inside,
        lambda a, b: torch.tensor(7.0),
        lambda a, b: torch.stack([a, b]),
        lambda a, b: 7 * a,
        lambda a, b: a * b,
        lambda a, b: a + 2 * b,
        lambda a, b: 7 * a + b,
        raises,
    ],
    "01.8": [
        finds_frozen,
        finds_zero,
        believes_an_old_gradient,
        finds_the_others,
        lambda net, loss: [name for name, parameter in net.named_parameters() if parameter.grad is None],
        lambda net, loss: loss.backward(),
        raises,
    ],
}
