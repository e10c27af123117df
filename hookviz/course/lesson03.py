"""What lesson 03 asks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from hookviz.course.judges import Found, Judge, float_of, misfit, number, result_of, tried


class _SumNet(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return a + b + c


class _PlusOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class _ReluTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.relu = nn.Linear(1, 1), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.relu(self.linear(x)))


def _summed(call: Callable[[nn.Module], Callable[..., torch.Tensor]]) -> float:
    """What SumNet with its two hooks returns, when it is called as ``call`` says."""
    net = _SumNet()
    net.register_forward_pre_hook(lambda module, args: (args[0] + 10, args[1]))
    net.register_forward_hook(lambda module, args, output: output + 100)
    a, b, c = (torch.tensor(number) for number in (1.0, 2.0, 3.0))
    return call(net)(a, b, c=c).item()


def _prepended() -> float:
    plus_one = _PlusOne()
    plus_one.register_forward_hook(lambda module, args, output: output * 10)
    plus_one.register_forward_hook(lambda module, args, output: output + 1, prepend=True)
    output: torch.Tensor = plus_one(torch.tensor(1.0))
    return output.item()


def _reached() -> float:
    """How many of four parameters get a gradient when a hook detaches the output of the first of two layers."""
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    model[0].register_forward_hook(lambda module, args, output: output.detach())
    torch.autograd.backward(model(torch.ones(1, 1)))
    return float(sum(parameter.grad is not None for parameter in model.parameters()))


def _fired() -> float:
    model, fired = _ReluTwice(), []
    for module in model.modules():
        module.register_forward_hook(lambda module, args, output: fired.append(module))
    model(torch.ones(1))
    return float(len(fired))


def _doubling(answer: Any) -> Found:
    """Call the learner's pre-hook as SumNet would, with two pairs of inputs, and look at what it makes of them."""
    factors = set()
    for given in ((1.0, 2.0), (5.0, 7.0)):
        inputs = _SumNet(), tuple(torch.tensor(number) for number in given)
        result, fault = result_of(answer, *inputs)
        if fault := misfit(answer, *inputs) or fault:
            return fault
        if not isinstance(result, tuple):
            return Found("bare")
        if len(result) != len(given):
            return Found("count", str(len(result)))
        numbers = [float_of(thing) for thing in result]
        factors.add(tuple(None if n is None else n / g for n, g in zip(numbers, given, strict=True)))
    usual = {(2, 2): "right", (2, 1): "first", (1, 2): "second", (1, 1): "unchanged"}
    return Found(usual.get(factors.pop(), "other") if len(factors) == 1 else "constant")  # type: ignore[arg-type]


def _times_c(answer: Any) -> Found:
    """Call the learner's forward hook as SumNet would, ``with_kwargs``, for two values of c."""
    numbers = []
    for c in (3.0, 5.0):
        a, b, kwargs = torch.tensor(1.0), torch.tensor(2.0), {"c": torch.tensor(c)}
        net, args, output = _SumNet(), (a, b), a + b + kwargs["c"]
        result, fault = result_of(answer, net, args, kwargs, output)
        if fault and fault.name == "raised" and not tried(answer, net, args, output, kwargs)[1]:
            return Found("parameters")
        if fault := misfit(answer, net, args, kwargs, output) or fault:
            return fault
        numbers.append(float_of(result))
    usual = {(18, 40): "right", (6, 8): "unchanged", (9, 13): "added", (18, 24): "constant", (18, 18): "constant"}
    return Found(usual.get(tuple(numbers), "other"))  # type: ignore[arg-type]


JUDGES: dict[str, Judge] = {
    "03.1": number(
        lambda: _summed(lambda net: net), {6: "no_hooks", 16: "only_pre", 106: "only_after", 126: "each", 136: "each"}
    ),
    "03.2": number(lambda: _summed(lambda net: net.forward), {116: "as_call", 106: "half", 16: "half"}),
    "03.3": number(_prepended, {21: "registered", 20: "one", 3: "one", 2: "none_ran"}),
    "03.4": number(_reached, {4: "looked", 0: "all_cut", 1: "layer", 3: "layer"}),
    "03.5": _doubling,
    "03.6": _times_c,
    "03.7": number(_fired, {4: "functional", 2: "itself", 1: "inner"}),
}
