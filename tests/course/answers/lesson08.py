"""Right and wrong answers to what lesson 08 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises


def weights(grad: torch.Tensor) -> torch.Tensor:
    return grad.mean((2, 3), keepdim=True)


def keeps(module: Any, args: Any, output: Any) -> None:
    output.register_hook(lambda grad: setattr(module, "seen", grad))


def keeps_too_early(module: Any, args: Any, output: Any) -> None:
    module.seen = output.grad_fn


def keeps_the_output(module: Any, args: Any, output: Any) -> None:
    module.seen = output.detach()


def keeps_half(module: Any, args: Any, output: Any) -> None:
    output.register_hook(lambda grad: setattr(module, "seen", grad / 2))


def doubles(module: Any, args: Any, output: Any) -> None:
    def hook(grad: torch.Tensor) -> torch.Tensor:
        module.seen = grad
        return grad * 2

    output.register_hook(hook)


RIGHT: dict[str, Any] = {
    "08.1": 2,
    "08.2": 0,
    "08.3": torch.tensor(2.0),
    "08.4": 1 / 2,
    "08.5": lambda maps, grad: (weights(grad) * maps).sum(1).clamp(min=0),
    "08.6": keeps,
}
WRONG: dict[str, list[Any]] = {
    "08.1": [8, -1, 0.25, 1, 5],
    "08.2": [-1, 1, 2, -2, 5],
    "08.3": [1, 0, -1, 3, 5],
    "08.4": [2, 0, -0.25, 0.25, 5],
    "08.5": [
        lambda maps, grad: (weights(grad) * maps).sum(1),
        lambda maps, grad: (weights(grad) * maps).relu().sum(1),
        lambda maps, grad: (grad.sum((2, 3), keepdim=True) * maps).sum(1).relu(),
        lambda maps, grad: (grad * maps).sum(1).relu(),
        lambda maps, grad: (weights(maps) * grad).sum(1).relu(),
        lambda maps, grad: (grad.mean((0, 2, 3), keepdim=True) * maps).sum(1).relu(),
        lambda maps, grad: (weights(grad) * maps).mean(1).relu(),
        lambda maps, grad: maps.sum(1).relu(),
        lambda maps, grad: (weights(grad) * maps).relu(),
        lambda maps, grad: maps[:, 0],
        lambda maps, grad: print(maps.shape, grad.shape),
        lambda maps, grad: maps.mul_(weights(grad)).sum(1).relu(),
        raises,
    ],
    "08.6": [
        lambda module, args, output: output.register_hook(lambda grad: setattr(module, "seen", grad)),
        keeps_too_early,
        keeps_the_output,
        keeps_half,
        doubles,
        lambda module, grad_input, grad_output, more: None,
        raises,
    ],
}
