"""Judges the answers to the exercises of lesson 01."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Grad,
    Judge,
    call_function,
    judge_number,
    lesson_gradients,
    read_names,
)
from hookviz.course.sick_net import SickNet


def _square_gradient(passes: int = 1) -> float:
    """``x.grad`` of ``x * x`` for x = 3, after this number of passes."""
    x = torch.tensor(3.0, requires_grad=True)
    for _ in range(passes):
        torch.autograd.backward(x * x)
    assert x.grad is not None
    return x.grad.item()


def _judge_leaf_with_gradient(answer: Any) -> Feedback:
    """Judge the name of the leaf whose gradient is not 0 when ``d`` is 0."""
    names = read_names(answer, set("abcde"))
    if len(names) != 1:
        return Feedback("name")
    [name] = names
    return Feedback("right" if name == "d" else name)


def _judge_program(answer: Any) -> Feedback:
    """Run the learner's program on a and b, then backward, and judge both gradients."""
    a, b = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0))
    result, fault = call_function(answer, a, b)
    if fault:
        return fault
    if not isinstance(result, torch.Tensor):
        return Feedback("no_tensor")
    if not result.requires_grad:
        return Feedback("no_history")
    if result.numel() != 1:
        return Feedback("many")
    _, fault = call_function(torch.autograd.backward, result)
    return fault or _judge_gradients(a.grad, b.grad)


def _judge_gradients(grad_a: Grad | None, grad_b: Grad | None) -> Feedback:
    if grad_a is None or grad_b is None:
        return Feedback("unused", "a" if grad_a is None else "b")
    grads = (grad_a.item(), grad_b.item())
    if grads in ((7, 2), (3, 2)):
        return Feedback("right" if grads[0] == 7 else "one_way")
    return Feedback("b", f"{grads[1]:g}") if grads[0] == 7 else Feedback("a", f"{grads[0]:g}")


def _count_reached_parameters() -> float:
    """How many parameters of the network that does not learn have a gradient after a backward pass."""
    net = SickNet()
    torch.autograd.backward(net(torch.ones(2, 1, 8, 8)).sum())
    return float(sum(parameter.grad is not None for parameter in net.parameters()))


class _TwoLayers(nn.Module):
    """Two layers of one weight each, made without random numbers; the first may get no gradient, or 0."""

    def __init__(self, *, is_cut: bool = False, factor: float = 1.0) -> None:
        super().__init__()
        self.first = nn.utils.skip_init(nn.Linear, 1, 1)  # type: ignore[no-untyped-call]
        self.second = nn.utils.skip_init(nn.Linear, 1, 1)  # type: ignore[no-untyped-call]
        for parameter in self.parameters():
            nn.init.constant_(parameter, 2.0)
        self.is_cut, self.factor = is_cut, factor

    def forward(self, x: torch.Tensor) -> Any:
        features = self.first(x)
        return self.second((features.detach() if self.is_cut else features) * self.factor).sum()


def _networks_with_silent_parameters() -> dict[str, tuple[nn.Module, set[str]]]:
    """Return four networks, each with the names of its parameters that want a gradient and get none."""
    first = {"first.weight", "first.bias"}
    stale, frozen = _TwoLayers(is_cut=True), _TwoLayers()
    for parameter in stale.parameters():
        parameter.grad = torch.ones_like(parameter)
    frozen.first.requires_grad_(False)
    return {
        "missed": (_TwoLayers(is_cut=True), first),
        "zero": (_TwoLayers(factor=0.0), set()),
        "frozen": (frozen, set()),
        "stale": (stale, first),
    }


def _judge_silent_parameters(answer: Any) -> Feedback:
    """Run the learner's instrument on four networks, and compare the names that it returns."""
    for name, (net, expected) in _networks_with_silent_parameters().items():
        result, fault = call_function(answer, net, net(torch.ones(1, 1)))
        if fault:
            return fault
        if not isinstance(result, (list, tuple, set)) or not all(isinstance(found, str) for found in result):
            return Feedback("names_missing")
        if name == "missed" and len(set(result)) == 4:
            return Feedback("no_backward")
        if set(result) != expected:
            return Feedback(name)
    return Feedback("right")


JUDGES: dict[str, Judge] = {
    "01.1": judge_number(
        lambda: lesson_gradients({})["a"],
        {3: "one_node", 4: "at_c", 7: "added", 8: "b", 6: "d", 24: "value", 1: "seed"},
    ),
    "01.2": _judge_leaf_with_gradient,
    "01.3": judge_number(
        lambda: lesson_gradients({}, seed=10)["d"], {6: "without", 16: "added", 10: "seed", 40: "c", 240: "value"}
    ),
    "01.4": judge_number(_square_gradient, {3: "one_edge", 9: "value", 2: "count", 1: "seed"}),
    "01.5": judge_number(lambda: _square_gradient(2), {6: "overwritten", 36: "multiplied", 9: "value", 18: "three"}),
    "01.6": judge_number(_count_reached_parameters, {15: "layer", 16: "all", 2: "silent", 0: "zero"}),
    "01.7": _judge_program,
    "01.8": _judge_silent_parameters,
}
