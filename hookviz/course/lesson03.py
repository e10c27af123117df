"""Judges the answers to the exercises of lesson 03."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from hookviz.course.judges import (
    Feedback,
    Judge,
    as_float,
    call_hook,
    call_safely,
    check_callable,
    check_parameters,
    judge_letters,
    judge_number,
)


class _SumNet(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return a + b + c


class _ReluTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.relu = nn.Linear(1, 1), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.relu(self.linear(x)))


HOOK_ORDER = "ABDC"
"""The order of the hooks of a module: forward pre-hook, forward hook, full backward pre-hook, full backward hook."""
ORDER_RULES = {"forward": ["AB"], "passes": ["BD", "BC"], "backward": ["DC"]}
"""A usual mistake → pairs of letters, one of which is in the wrong order then."""


def _sum_net_result(call: Callable[[nn.Module], Callable[..., torch.Tensor]]) -> float:
    """The result of SumNet with its two hooks; ``call`` picks the method to call."""
    net = _SumNet()
    net.register_forward_pre_hook(lambda module, args: (args[0] + 10, args[1]))
    net.register_forward_hook(lambda module, args, output: output + 100)
    a, b, c = (torch.tensor(number) for number in (1.0, 2.0, 3.0))
    return call(net)(a, b, c=c).item()


def _count_positional_inputs() -> float:
    """How many arguments a pre-hook of SumNet is given in ``net(a, b=b, c=c)``."""
    net, given = _SumNet(), []
    net.register_forward_pre_hook(lambda module, args: given.extend(args))
    a, b, c = (torch.tensor(number) for number in (1.0, 2.0, 3.0))
    net(a, b=b, c=c)
    return float(len(given))


def _count_reached_parameters() -> float:
    """How many of four parameters get a gradient if a hook detaches the output of the first of two layers."""
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    model[0].register_forward_hook(lambda module, args, output: output.detach())
    torch.autograd.backward(model(torch.ones(1, 1)))
    return float(sum(parameter.grad is not None for parameter in model.parameters()))


def _count_firings() -> float:
    """How many forward hooks fire in one call of ReluTwice, with a hook on each of its modules."""
    model, fired = _ReluTwice(), []
    for module in model.modules():
        module.register_forward_hook(lambda module, args, output: fired.append(module))
    model(torch.ones(1))
    return float(len(fired))


def _judge_doubling(answer: Any) -> Feedback:
    """Call the learner's pre-hook as SumNet would, with two pairs of inputs, and judge the results."""
    factors = set()
    for given in ((1.0, 2.0), (5.0, 7.0)):
        result, fault = call_hook(answer, _SumNet(), tuple(torch.tensor(number) for number in given))
        if fault:
            return fault
        if not isinstance(result, tuple):
            return Feedback("bare")
        if len(result) != len(given):
            return Feedback("count", str(len(result)))
        numbers = [as_float(value) for value in result]
        factors.add(tuple(None if n is None else n / g for n, g in zip(numbers, given, strict=True)))
    usual = {(2, 2): "right", (2, 1): "first", (1, 2): "second", (1, 1): "unchanged"}
    return Feedback(usual.get(factors.pop(), "other") if len(factors) == 1 else "constant")  # type: ignore[arg-type]


def _judge_times_c(answer: Any) -> Feedback:
    """Call the learner's forward hook as SumNet would, ``with_kwargs``, for two values of c."""
    numbers = []
    for c in (3.0, 5.0):
        a, b, kwargs = torch.tensor(1.0), torch.tensor(2.0), {"c": torch.tensor(c)}
        net, args, output = _SumNet(), (a, b), a + b + kwargs["c"]
        result, fault = call_hook(answer, net, args, kwargs, output)
        if fault and fault.name == "raised" and not call_safely(answer, net, args, output, kwargs)[1]:
            return Feedback("parameters")
        if fault:
            return fault
        numbers.append(as_float(result))
    usual = {(18, 40): "right", (6, 8): "unchanged", (9, 13): "added", (18, 24): "constant", (18, 18): "constant"}
    return Feedback(usual.get(tuple(numbers), "other"))  # type: ignore[arg-type]


class _Named(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


_FIRST, _SECOND, _THIRD = (torch.tensor([float(number)], requires_grad=True) * 1 for number in (1, 2, 3))
_OUTPUTS: list[tuple[str, Any, list[torch.Tensor]]] = [
    ("tensor", _FIRST, [_FIRST]),
    ("tuple", (_FIRST, _SECOND), [_FIRST, _SECOND]),
    ("tuple", [_FIRST, _SECOND], [_FIRST, _SECOND]),
    ("nested", (_FIRST, (_SECOND, _THIRD)), [_FIRST, _SECOND, _THIRD]),
    ("other_values", (_FIRST, None, "mask", 3), [_FIRST]),
    ("other_values", None, []),
    ("dict", {"logits": _FIRST, "states": _SECOND}, [_FIRST, _SECOND]),
    ("inside", {"logits": _FIRST, "states": [_SECOND, {"last": _THIRD}]}, [_FIRST, _SECOND, _THIRD]),
    ("subclass", _Named(_FIRST, _SECOND), [_FIRST, _SECOND]),
]
"""Outputs of modules, each with the name of the feedback for a function that fails on it, and with its tensors."""


def _judge_find_tensors(answer: Any) -> Feedback:
    """Call the learner's function with outputs of several kinds."""
    if fault := check_callable(answer):
        return fault
    if fault := check_parameters(answer, _FIRST):
        return fault
    for name, output, expected in _OUTPUTS:
        found, error = call_safely(answer, output)
        if error:
            return Feedback(f"{name}_raises", error) if name != "tensor" else Feedback("raised", error)
        if found is None and name == "tensor":
            return Feedback("no_return")
        if not isinstance(found, list):
            return Feedback("no_list", "None" if found is None else type(found).__name__)
        if not all(isinstance(tensor, torch.Tensor) for tensor in found):
            return Feedback(name if name != "tensor" else "other")
        numbers, right = ([tensor.tolist() for tensor in tensors] for tensors in (found, expected))
        if numbers != right:
            if len(numbers) > len(right) and numbers[-len(right) :] == right and _grows(answer, output):
                return Feedback("grows")
            if sorted(numbers) == sorted(right):
                return Feedback("order")
            return Feedback(name if name != "tensor" else "other")
        if any(tensor.requires_grad for tensor in found):
            return Feedback("graph")
    return Feedback("right")


def _grows(answer: Any, output: Any) -> bool:
    """Whether the list that the learner's function returns gets longer from call to call."""
    one, _ = call_safely(lambda: len(answer(output)))
    two, _ = call_safely(lambda: len(answer(output)))
    return one is not None and two is not None and one < two


JUDGES: dict[str, Judge] = {
    "03.1": judge_letters(HOOK_ORDER, ORDER_RULES),
    "03.2": judge_number(
        lambda: _sum_net_result(lambda net: net),
        {6: "no_hooks", 16: "only_pre", 106: "only_after", 126: "each", 136: "each"},
    ),
    "03.3": judge_number(lambda: _sum_net_result(lambda net: net.forward), {116: "as_call", 106: "half", 16: "half"}),
    "03.4": judge_number(_count_positional_inputs, {3: "keyword", 2: "as_before", 0: "empty"}),
    "03.5": judge_number(_count_reached_parameters, {4: "looked", 0: "all_cut", 1: "layer", 3: "layer"}),
    "03.6": _judge_doubling,
    "03.7": _judge_times_c,
    "03.8": judge_number(_count_firings, {4: "functional", 2: "itself", 1: "inner"}),
    "03.9": _judge_find_tensors,
}
