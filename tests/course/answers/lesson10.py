"""Right and wrong answers to what lesson 10 asks."""

from typing import Any

from tests.course.answers.common import raises

RIGHT: dict[str, Any] = {
    "10.1": 1024,
    "10.2": "c",
    "10.3": lambda grad, x, y: (grad / y, -grad * x / y**2),
    "10.4": 8,
}
WRONG: dict[str, list[Any]] = {
    "10.1": [1, 2, 10, 20, 512, 2046, 5],
    "10.2": ["b", "a", "d", "e"],
    "10.3": [
        lambda grad, x, y: grad / y,
        lambda grad, x, y: (grad / y, grad * x / y**2),
        lambda grad, x, y: (-grad * x / y**2, grad / y),
        lambda grad, x, y: (1 / y, -x / y**2),
        lambda grad, x, y: (grad * y, grad * x),
        lambda grad, x, y: (grad / y, -grad * x / y),
        lambda grad, x, y: (1.5, -3.75),
        lambda grad, x, y: print(grad / y, -grad * x / y**2),
        raises,
    ],
    "10.4": [4, 80, 40, 0, 5],
}
