"""Right and wrong answers to what lesson 04 asks."""

from functools import partial
from typing import Any

import torch

from hookviz.course import course_tools
from tests.course.answers.common import changed_part, raises

watch = partial(changed_part, course_tools.watch)
GIVEN = "grad_output[0].norm().item()"


RIGHT: dict[str, Any] = {
    "04.1": 12,
    "04.2": torch.tensor(2),
    "04.3": "layer.weight.grad",
    "04.4": torch.tensor([[2.0]]),
    "04.5": 9,
    "04.6": lambda module, grad_input, grad_output: tuple(-grad for grad in grad_input),
    "04.7": 5,
    "04.8": watch(),
}
WRONG: dict[str, list[Any]] = {
    "04.1": [4, 8, 6, 1, 24, 2, 5],
    "04.2": [0, 4, 3, 5],
    "04.3": ["x", "both", "none", "D"],
    "04.4": [0.2, 3, 0, 5],
    "04.5": [10, 8, 5, 6, 3],
    "04.6": [
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
    "04.7": [10, 2, 0, 50, 7],
    "04.8": [
        lambda model: list(model.named_children()),
        lambda model: dict.fromkeys(["stem", "bend", "head"], 1.0),
        lambda model: {},
        watch(("norms[names[module]]", "norms[name]"), ("for module in names:", "for module, name in names.items():")),
        watch(("names[module]", "type(module).__name__")),
        watch((".item()", "")),
        watch((GIVEN, "grad_input[0].norm().item() if grad_input[0] is not None else 0.0")),
        watch((GIVEN, "grad_input[0].norm().item()")),
        watch((".norm()", ".abs().sum()")),
        watch((GIVEN, f"{GIVEN}\n        return tuple(None if grad is None else 2 * grad for grad in grad_input)")),
        lambda model: print(model),
        raises,
    ],
}
