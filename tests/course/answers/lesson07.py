"""Right and wrong answers to what lesson 07 asks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tests.course.answers.common import raises


def safe_log(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, 1.0).log()


Look = Callable[[Any, Any], bool]
"""Whether a hook that is given ``grad_input`` and ``grad_output`` suspects its module."""


def has_nan(grads: tuple[torch.Tensor | None, ...]) -> bool:
    return any(bool(grad.isnan().any()) for grad in grads if grad is not None)


def makes_nan(grad_input: Any, grad_output: Any) -> bool:
    return has_nan(grad_input) and not has_nan(grad_output)


def find_nan_with(suspects: Look, place: int = 0, remove: bool = True, healthy: Any = "none") -> Any:
    """Make an answer that returns the path of the first suspect, or of the last if ``place`` is -1."""

    def find_nan(model: nn.Module, x: torch.Tensor) -> Any:
        found: list[str] = []
        paths = {module: path for path, module in model.named_modules()}

        def look(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
            if suspects(grad_input, grad_output):
                found.append(paths[module])

        handles = [module.register_full_backward_hook(look) for module in paths]
        torch.autograd.backward(model(x).sum())
        for handle in handles if remove else []:
            handle.remove()
        return found[place] if found else healthy

    return find_nan


RIGHT: dict[str, Any] = {
    "07.1": 1 / 64,
    "07.2": torch.tensor(1),
    "07.3": 1.0,
    "07.4": "2",
    "07.5": safe_log,
    "07.6": lambda grad: grad / grad.norm().clamp(min=1),
    "07.7": find_nan_with(makes_nan),
}
WRONG: dict[str, list[Any]] = {
    "07.1": [0.25, 0.0625, 0.75, 1, 64, 5],
    "07.2": [2, 0, 4, 3, 5],
    "07.3": [2, 0, 3, 5],
    "07.4": [1, 6, 3, 4, 5],
    "07.5": [
        lambda x: torch.where(x > 0, x.log(), 0.0),
        lambda x: x.clamp(min=1e-6).log(),
        lambda x: torch.where(x > 0, x.clamp(min=1e-6).log(), 0.0),
        lambda x: x[x > 0].log(),
        lambda x: torch.where(x > 0, x.detach().log(), 0.0),
        lambda x: torch.where(x > 0, x.abs().clamp(min=1e-38).log(), x - x.detach()),
        lambda x: print(safe_log(x)),
        lambda x: x.clamp_(min=1e-6).log(),
        raises,
    ],
    "07.6": [
        lambda grad: grad.clamp(-1, 1),
        lambda grad: grad / grad.norm(),
        lambda grad: grad / (grad.norm() + 1e-9),
        lambda grad: grad * 0.2 if grad.norm() > 1 else grad,
        lambda grad: grad,
        lambda grad: grad.norm(),
        lambda grad: grad.div_(grad.norm().clamp(min=1)),
        lambda grad: print(grad / grad.norm().clamp(min=1)),
        lambda grad: grad / 5 if grad.norm() > 1 else raises(),
    ],
    "07.7": [
        find_nan_with(makes_nan, remove=False),
        find_nan_with(makes_nan, healthy=None),
        find_nan_with(makes_nan, place=-1),
        find_nan_with(lambda grad_input, grad_output: has_nan(grad_output)),
        find_nan_with(lambda grad_input, grad_output: bool(grad_input[0].isnan().any())),
        lambda model, x: ["1"],
        lambda model, x: "2",
        lambda model, x: print("1"),
    ],
}
