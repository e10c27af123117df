"""Right and wrong answers to what lesson 01 asks."""

from functools import partial
from typing import Any

import torch

from hookviz.course import course_tools
from tests.course.answers.common import changed_part, raises


def backward_inside(a: torch.Tensor, b: torch.Tensor) -> None:
    (a * b).backward()


find_silent = partial(changed_part, course_tools.find_silent)
WITHOUT = "parameter.requires_grad and parameter.grad is None"


RIGHT: dict[str, Any] = {
    "01.1": 12,
    "01.2": "d",
    "01.3": 60.0,
    "01.4": torch.tensor(6.0),
    "01.5": "12",
    "01.6": 14,
    "01.7": lambda a, b: a * b + 4 * a,
    "01.8": find_silent(),
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
        find_silent(("parameter.requires_grad and ", "")),
        find_silent((WITHOUT, "parameter.grad is None or not parameter.grad.any()")),
        find_silent(("net.zero_grad()", "pass")),
        find_silent((WITHOUT, "parameter.grad is not None")),
        lambda net, loss: [name for name, parameter in net.named_parameters() if parameter.grad is None],
        lambda net, loss: loss.backward(),
        raises,
    ],
}
