"""Judges the answers to the exercises of lesson 04."""

import warnings
from typing import Any

import torch
from torch import nn

from hookviz.course.judges import Feedback, Judge, as_float, call_backward_hook, call_safely, judge_number


class _ProductNet(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return (a * b) * d


def _record_grad_inputs(
    module: nn.Module, *inputs: torch.Tensor, legacy: bool = False, on: nn.Module | None = None
) -> Any:
    """Run one pass; list the ``grad_input`` of each firing of a hook on ``on``, or on ``module`` if None."""
    given: list[Any] = []
    target = module if on is None else on
    register = target.register_backward_hook if legacy else target.register_full_backward_hook
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the lesson explains what torch warns of here
        register(lambda module, grad_input, grad_output: given.append(grad_input))
        torch.autograd.backward(module(*inputs).sum())
    return given


def _first_grad_input(*, legacy: bool) -> float:
    """The first entry of the ``grad_input`` of a hook on ProductNet."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    return float(_record_grad_inputs(_ProductNet(), a, b, d, legacy=legacy)[0][0])


def _two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 5), nn.Linear(5, 10))


def _count_early_gradients() -> float:
    """How many parameters have a gradient when the hook on the first layer fires, if no input requires one."""
    net, counts = _two_layers(), []

    def count(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        counts.append(sum(parameter.grad is not None for parameter in net.parameters()))

    net[0].register_full_backward_hook(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of what the lesson asks about
        torch.autograd.backward(net(torch.ones(2)).sum())
    return float(counts[0])


def _size_of_grad_input() -> float:
    """How many numbers the ``grad_input`` of a hook on the second layer has."""
    net = _two_layers()
    return float(_record_grad_inputs(net, torch.ones(2), on=net[1])[0][0].numel())


def _weight_gradient() -> float:
    """The gradient of a layer's weight if a full backward hook divides ``grad_input`` by ten."""

    def tenth(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
        return (0.1 * grad_input[0],)

    layer = nn.Linear(1, 1, bias=False)
    layer.register_full_backward_hook(tenth)
    torch.autograd.backward(layer(torch.tensor([[2.0]], requires_grad=True)))
    assert layer.weight.grad is not None
    return layer.weight.grad.item()


def _judge_sign_flip(answer: Any) -> Feedback:
    """Call the learner's hook as modules with one and with two inputs would, and judge the signs."""
    feedback = Feedback("right")
    for grads in ((-3.0,), (4.0, -5.0)):
        grad_input = tuple(torch.tensor(grad) for grad in grads)
        given = _ProductNet(), grad_input, (torch.tensor(7.0),)
        result, fault = call_backward_hook(answer, *given)
        if fault and fault.name == "raised" and not call_safely(answer, given[0], grad_input[0], given[2])[1]:
            return Feedback("entries")
        if fault:
            return fault
        feedback = _compare_with_gradients(tuple(as_float(value) for value in result), grads)
        if feedback.name != "right":
            return feedback
    return feedback


def _compare_with_gradients(numbers: tuple[float | None, ...], grads: tuple[float, ...]) -> Feedback:
    if numbers == (-7.0,):
        return Feedback("output")
    if len(numbers) != len(grads):
        return Feedback("count", str(len(numbers)), str(len(grads)))
    return Feedback({tuple(-grad for grad in grads): "right", grads: "unchanged"}.get(numbers, "other"))  # type: ignore[arg-type]


JUDGES: dict[str, Judge] = {
    "04.1": judge_number(
        lambda: _first_grad_input(legacy=False), {4: "inside", 8: "b", 6: "d", 1: "output", 24: "value", 2: "input"}
    ),
    "04.2": judge_number(lambda: _first_grad_input(legacy=True), {12: "full", 8: "second", 6: "factor", 1: "output"}),
    "04.3": judge_number(_count_early_gradients, {0: "none_yet", 4: "all", 1: "half", 3: "half"}),
    "04.4": judge_number(_weight_gradient, {0.2: "scaled", 3: "of_x", 0.3: "of_x", 0: "wiped"}),
    "04.5": _judge_sign_flip,
    "04.6": judge_number(_size_of_grad_input, {10: "output", 2: "l1", 0: "missing", 50: "weight"}),
}
