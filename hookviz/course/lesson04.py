"""What lesson 04 asks."""

import warnings
from typing import Any

import torch
from torch import nn

from hookviz.course.judges import Found, Judge, float_of, grad_input_of, number, tried


class _Product(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return (a * b) * d


def _grad_input(module: nn.Module, *inputs: torch.Tensor, legacy: bool = False, of: nn.Module | None = None) -> Any:
    """For each time that the hook of ``of``, or else of ``module``, fires in one pass: its ``grad_input``."""
    given: list[Any] = []
    hooked = module if of is None else of
    register = hooked.register_backward_hook if legacy else hooked.register_full_backward_hook
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the lesson speaks of what torch warns of here
        register(lambda module, grad_input, grad_output: given.append(grad_input))
        torch.autograd.backward(module(*inputs).sum())
    return given


def _first(*, legacy: bool) -> float:
    """The first entry of what a hook on Product is given."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    return float(_grad_input(_Product(), a, b, d, legacy=legacy)[0][0])


def _two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 5), nn.Linear(5, 10))


def _early() -> float:
    """How many parameters have their gradient when the hook on the first layer fires, and no input requires one."""
    net, counts = _two_layers(), []

    def count(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        counts.append(sum(parameter.grad is not None for parameter in net.parameters()))

    net[0].register_full_backward_hook(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the very thing that the lesson asks about
        torch.autograd.backward(net(torch.ones(2)).sum())
    return float(counts[0])


def _moved() -> float:
    net = _two_layers()
    return float(_grad_input(net, torch.ones(2), of=net[1])[0][0].numel())


def _weight_grad() -> float:
    """The gradient of a layer's weight when a full backward hook makes a tenth of what goes out."""

    def tenth(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
        return (0.1 * grad_input[0],)

    layer = nn.Linear(1, 1, bias=False)
    layer.register_full_backward_hook(tenth)
    torch.autograd.backward(layer(torch.tensor([[2.0]], requires_grad=True)))
    assert layer.weight.grad is not None
    return layer.weight.grad.item()


def _turned_round(answer: Any) -> Found:
    """Call the learner's hook as modules with one and with two inputs would."""
    found = Found("right")
    for grads in ((-3.0,), (4.0, -5.0)):
        grad_input = tuple(torch.tensor(grad) for grad in grads)
        given = _Product(), grad_input, (torch.tensor(7.0),)
        result, fault = grad_input_of(answer, *given)
        if fault and fault.name == "raised" and not tried(answer, given[0], grad_input[0], given[2])[1]:
            return Found("entries")
        if fault:
            return fault
        found = _compared(tuple(float_of(thing) for thing in result), grads)
        if found.name != "right":
            return found
    return found


def _compared(numbers: tuple[float | None, ...], grads: tuple[float, ...]) -> Found:
    if numbers == (-7.0,):
        return Found("output")
    if len(numbers) != len(grads):
        return Found("count", str(len(numbers)), str(len(grads)))
    return Found({tuple(-grad for grad in grads): "right", grads: "unchanged"}.get(numbers, "other"))  # type: ignore[arg-type]


JUDGES: dict[str, Judge] = {
    "04.1": number(lambda: _first(legacy=False), {4: "inside", 8: "b", 6: "d", 1: "output", 24: "value", 2: "input"}),
    "04.2": number(lambda: _first(legacy=True), {12: "full", 8: "second", 6: "factor", 1: "output"}),
    "04.3": number(_early, {0: "none_yet", 4: "all", 1: "half", 3: "half"}),
    "04.4": number(_weight_grad, {0.2: "scaled", 3: "of_x", 0.3: "of_x", 0: "wiped"}),
    "04.5": _turned_round,
    "04.6": number(_moved, {10: "output", 2: "l1", 0: "missing", 50: "weight"}),
}
