"""Right and wrong answers to what lesson 04 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises

RIGHT: dict[str, Any] = {
    "04.1": 12,
    "04.2": 4.0,
    "04.3": torch.tensor(2),
    "04.4": torch.tensor([[2.0]]),
    "04.5": lambda module, grad_input, grad_output: tuple(-grad for grad in grad_input),
    "04.6": 5,
}
WRONG: dict[str, list[Any]] = {
    "04.1": [4, 8, 6, 1, 24, 2, 5],
    "04.2": [12, 8, 6, 1, 5],
    "04.3": [0, 4, 3, 5],
    "04.4": [0.2, 3, 0, 5],
    "04.5": [
        lambda module, grad_input, grad_output: -grad_input[0],
        lambda module, grad_input, grad_output: (grad_input, grad_output),
        lambda module, grad_input, grad_output: tuple(-grad for grad in grad_output),
        lambda module, grad_input, grad_output: (-grad_input[0],),
        lambda module, grad_input, grad_output: grad_input,
        lambda module, grad_input, grad_output: tuple(abs(grad) for grad in grad_input),
        lambda module, grad_input, grad_output: print(grad_input),
        lambda module, grad_input, grad_output: tuple(grad.neg_() for grad in grad_input),
        lambda grad: -grad,
        lambda module, grad_input, grad_output: -grad_input,
        raises,
    ],
    "04.6": [10, 2, 0, 50, 7],
}
