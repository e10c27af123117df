"""Right and wrong answers to what lesson 02 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises


def forgets_to_return(grad: torch.Tensor) -> None:
    grad.clamp(-3, 3)


def note(tensor: torch.Tensor, log: list[float]) -> Any:
    return tensor.register_hook(lambda grad: log.append(grad.abs().max().item()))  # type: ignore[no-untyped-call]


def note_of_a_colleague(tensor: torch.Tensor, log: list[torch.Tensor]) -> None:
    def write_down(grad: torch.Tensor) -> torch.Tensor:
        grad.abs_()
        size = grad.max()
        log.append(size)
        return size

    tensor.register_hook(write_down)  # type: ignore[no-untyped-call]


def note_in_place(tensor: torch.Tensor, log: list[float]) -> Any:
    return tensor.register_hook(lambda grad: log.append(grad.abs_().max().item()))  # type: ignore[no-untyped-call]


def note_and_return(tensor: torch.Tensor, log: list[float]) -> Any:
    def write_down(grad: torch.Tensor) -> torch.Tensor:
        size = grad.abs()
        log.append(size.max().item())
        return size

    return tensor.register_hook(write_down)  # type: ignore[no-untyped-call]


def note_without_handle(tensor: torch.Tensor, log: list[float]) -> None:
    note(tensor, log)


def note_twice(tensor: torch.Tensor, log: list[float]) -> Any:
    note(tensor, log)
    return note(tensor, log)


def notes(measure: Any) -> Any:
    """A ``note`` that appends what ``measure`` makes of a gradient, and is right in all else."""

    def note_measured(tensor: torch.Tensor, log: list[Any]) -> Any:
        return tensor.register_hook(lambda grad: log.append(measure(grad)))  # type: ignore[no-untyped-call]

    return note_measured


def note_nothing(tensor: torch.Tensor, log: list[float]) -> Any:
    return tensor.register_hook(lambda grad: None)  # type: ignore[no-untyped-call]


def note_before_the_pass(tensor: torch.Tensor, log: list[float]) -> Any:
    log.append(tensor.abs().max().item())
    return tensor.register_hook(lambda grad: None)  # type: ignore[no-untyped-call]


def note_after_the_write(tensor: torch.Tensor, log: list[float]) -> Any:
    return tensor.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
        lambda leaf: log.append(leaf.abs().max().item())
    )


RIGHT: dict[str, Any] = {
    "02.1": 10,
    "02.2": torch.tensor([24]),
    "02.3": 21,
    "02.4": True,
    "02.5": "3001",
    "02.6": 100,
    "02.7": "up",
    "02.8": lambda grad: grad.clamp(-3, 3),
    "02.9": note,
}
WRONG: dict[str, list[Any]] = {
    "02.1": [4, 8, 6, 12, 112, 5],
    "02.2": [30, 12, 16, 8, 5],
    "02.3": [17, 7, 15, 22, 9, 5, 35],
    "02.4": [2, 0, 3, 5],
    "02.5": [4, 3, 3000, 3003, 1001, 2001, 7],
    "02.6": [1, 4, 0, 5],
    "02.7": ["down", "both", 5],
    "02.8": [
        forgets_to_return,
        lambda grad: grad.clamp_(-3, 3),
        lambda grad: grad.clamp(max=3),
        lambda grad: grad.clamp(0, 3),
        lambda grad: grad.sum(),
        lambda grad: grad,
        raises,
    ],
    "02.9": [
        note_of_a_colleague,
        note_in_place,
        note_and_return,
        note_without_handle,
        note_twice,
        note_nothing,
        notes(torch.Tensor.abs),
        notes(torch.Tensor.max),
        notes(torch.Tensor.min),
        notes(lambda grad: grad.abs().sum()),
        notes(torch.Tensor.norm),
        notes(lambda grad: abs(grad.sum().item())),
        note_before_the_pass,
        note_after_the_write,
        raises,
    ],
}
