"""Right and wrong answers to what lesson 01 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises


def backward_inside(a: torch.Tensor, b: torch.Tensor) -> None:
    (a * b).backward()


RIGHT: dict[str, Any] = {
    "01.1": 12,
    "01.2": 60.0,
    "01.3": torch.tensor(6.0),
    "01.4": "a",
    "01.5": "18",
    "01.6": lambda a, b: a * b + 4 * a,
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
}
