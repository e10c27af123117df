"""Right and wrong answers to what lesson 02 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises


def forgets_to_return(grad: torch.Tensor) -> None:
    grad.clamp(-3, 3)


def watch(tensor: torch.Tensor, log: list[torch.Tensor]) -> Any:
    return tensor.register_hook(lambda grad: log.append(grad * 1000))  # type: ignore[no-untyped-call]


def watch_in_place(tensor: torch.Tensor, log: list[torch.Tensor]) -> Any:
    return tensor.register_hook(lambda grad: log.append(grad.mul_(1000)))  # type: ignore[no-untyped-call]


def watch_and_return(tensor: torch.Tensor, log: list[torch.Tensor]) -> Any:
    def write_down(grad: torch.Tensor) -> torch.Tensor:
        log.append(grad * 1000)
        return grad * 1000

    return tensor.register_hook(write_down)  # type: ignore[no-untyped-call]


def watch_without_handle(tensor: torch.Tensor, log: list[torch.Tensor]) -> None:
    watch(tensor, log)


def watch_in_units(tensor: torch.Tensor, log: list[torch.Tensor]) -> Any:
    return tensor.register_hook(log.append)  # type: ignore[no-untyped-call]


def watch_twice(tensor: torch.Tensor, log: list[torch.Tensor]) -> Any:
    watch(tensor, log)
    return watch(tensor, log)


def watch_nothing(tensor: torch.Tensor, log: list[torch.Tensor]) -> Any:
    return tensor.register_hook(lambda grad: None)  # type: ignore[no-untyped-call]


RIGHT: dict[str, Any] = {
    "02.1": 10,
    "02.2": torch.tensor([24]),
    "02.3": True,
    "02.4": 100,
    "02.9": "up",
    "02.5": lambda grad: grad * 5,
    "02.6": lambda grad: grad.clamp(-3, 3),
    "02.7": "d.grad",
    "02.8": watch,
}
WRONG: dict[str, list[Any]] = {
    "02.1": [4, 8, 6, 12, 112, 5],
    "02.2": [30, 12, 16, 8, 5],
    "02.3": [2, 0, 3, 5],
    "02.4": [1, 4, 0, 5],
    "02.9": ["down", "both", 5],
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
    "02.7": ["c", "a d", "d e"],
    "02.8": [
        watch_in_place,
        watch_and_return,
        watch_without_handle,
        watch_in_units,
        watch_twice,
        watch_nothing,
        raises,
    ],
}
