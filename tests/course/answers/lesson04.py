"""Right and wrong answers to what lesson 04 asks."""

from typing import Any

import torch
from torch import nn

from tests.course.answers.common import raises


def watch(model: nn.Module) -> dict[str, float]:
    norms: dict[str, float] = {}
    names = {module: name for name, module in model.named_children()}

    def measure(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        norms[names[module]] = grad_output[0].norm().item()

    for module in names:
        module.register_full_backward_hook(measure)
    return norms


def watch_with(measure: Any) -> Any:
    """Make an answer whose hook on each child is ``measure(norms, name, grad_input, grad_output)``."""

    def watch(model: nn.Module) -> dict[str, Any]:
        norms: dict[str, Any] = {}
        for name, module in model.named_children():
            module.register_full_backward_hook(
                lambda module, grad_input, grad_output, name=name: measure(norms, name, grad_input, grad_output)
            )
        return norms

    return watch


def keep_tensor(norms: Any, name: str, grad_input: Any, grad_output: Any) -> None:
    norms[name] = grad_output[0].norm()


def keep_what_goes_out(norms: Any, name: str, grad_input: Any, grad_output: Any) -> None:
    norms[name] = grad_input[0].norm().item() if grad_input[0] is not None else 0.0


def do_not_ask_for_none(norms: Any, name: str, grad_input: Any, grad_output: Any) -> None:
    norms[name] = grad_input[0].norm().item()


def keep_sum(norms: Any, name: str, grad_input: Any, grad_output: Any) -> None:
    norms[name] = grad_output[0].abs().sum().item()


def return_double(norms: Any, name: str, grad_input: Any, grad_output: Any) -> Any:
    norms[name] = grad_output[0].norm().item()
    return tuple(None if grad is None else 2 * grad for grad in grad_input)


def watch_late(model: nn.Module) -> dict[str, float]:
    norms: dict[str, float] = {}
    for name, module in model.named_children():
        module.register_full_backward_hook(
            lambda module, grad_input, grad_output: norms.update({name: grad_output[0].norm().item()})  # noqa: B023
        )
    return norms


def watch_classes(model: nn.Module) -> dict[str, float]:
    norms: dict[str, float] = {}

    def measure(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        norms[type(module).__name__] = grad_output[0].norm().item()

    for module in model.children():
        module.register_full_backward_hook(measure)
    return norms


RIGHT: dict[str, Any] = {
    "04.1": 12,
    "04.2": torch.tensor(2),
    "04.3": "layer.weight.grad",
    "04.4": torch.tensor([[2.0]]),
    "04.5": 9,
    "04.6": lambda module, grad_input, grad_output: tuple(-grad for grad in grad_input),
    "04.7": 5,
    "04.8": watch,
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
        watch_late,
        watch_classes,
        watch_with(keep_tensor),
        watch_with(keep_what_goes_out),
        watch_with(do_not_ask_for_none),
        watch_with(keep_sum),
        watch_with(return_double),
        lambda model: print(watch(model)),
        raises,
    ],
}
