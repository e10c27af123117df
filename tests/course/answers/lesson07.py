"""Right and wrong answers to what lesson 07 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises


def safe_log(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, 1.0).log()


RIGHT: dict[str, Any] = {
    "07.1": 1 / 64,
    "07.2": torch.tensor(1),
    "07.3": 1.0,
    "07.4": "2",
    "07.5": safe_log,
    "07.6": lambda grad: grad / grad.norm().clamp(min=1),
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
}
