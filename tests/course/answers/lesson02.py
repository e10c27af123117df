"""Right and wrong answers to what lesson 02 asks."""

from functools import partial
from typing import Any

import torch

from tests.course.answers.common import changed, raises


def forgets_to_return(grad: torch.Tensor) -> None:
    grad.clamp(-3, 3)


LOG = "log.append(grad.abs().max().item())"
REGISTER = f"tensor.register_hook(lambda grad: {LOG})"
note = partial(changed, f"def note(tensor, log):\n    return {REGISTER}", "note")


RIGHT: dict[str, Any] = {
    "02.1": 10,
    "02.2": torch.tensor([24]),
    "02.3": 21,
    "02.4": True,
    "02.5": "3001",
    "02.6": 100,
    "02.7": "up",
    "02.8": lambda grad: grad.clamp(-3, 3),
    "02.9": note(),
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
        note((LOG, "log.append(grad.abs_().max()) or grad.max()"), ("return ", "")),
        note(("grad.abs()", "grad.abs_()")),
        note((LOG, f"{LOG} or grad.abs()")),
        note(("return ", "")),
        note(("return ", f"{REGISTER}\n    return ")),
        note((LOG, "None")),
        note(("grad.abs().max().item()", "grad.abs()")),
        note(("grad.abs().max().item()", "grad.max()")),
        note(("grad.abs().max().item()", "grad.min()")),
        note(("grad.abs().max().item()", "grad.abs().sum()")),
        note(("grad.abs().max().item()", "grad.norm()")),
        note(("grad.abs().max().item()", "abs(grad.sum().item())")),
        note((LOG, "None"), ("return ", "log.append(tensor.abs().max().item())\n    return ")),
        note(("register_hook", "register_post_accumulate_grad_hook")),
        raises,
    ],
}
