"""What lesson 05 asks."""

import copy
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from hookviz.course.judges import Found, Judge, hook_fault, no_function, number, tried


def _layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))


def _piled() -> float:
    """How many outputs a list holds when each of three calls has registered a hook that appends, and removed none."""
    found: list[Any] = []
    net = _layers()
    for _ in range(3):
        net[0].register_forward_hook(lambda module, args, output: found.append(output))
        net(torch.ones(1))
    return float(len(found))


def _late() -> float:
    """The gradient after three hooks that were made in a loop and look up its variable when they run."""
    t = torch.tensor(1.0, requires_grad=True)
    for factor in (2, 3, 4):
        t.register_hook(lambda grad: grad * factor)  # type: ignore[no-untyped-call]  # noqa: B023
    torch.autograd.backward(t * 1)
    assert t.grad is not None
    return t.grad.item()


def _copied() -> float:
    """How many hooks a deep copy has, of a model with one on each of two layers and one on a weight."""
    net = _layers()
    for layer in net:
        layer.register_forward_hook(lambda *given: None)
    parameter: Any = net[0].weight
    parameter.register_hook(lambda grad: None)
    twin: Any = copy.deepcopy(net)
    return float(sum(len(layer._forward_hooks) + len(layer.weight._backward_hooks or ()) for layer in twin))


def _watching(answer: Any) -> Found:
    """Enter and leave the learner's context manager, once in peace and once by an error."""
    if fault := no_function(answer):
        return fault
    net, calls = _layers(), []
    others = [layer.register_forward_hook(lambda *given: None) for layer in net]

    def hook(module: nn.Module, args: Any, output: Any) -> None:
        calls.append(module)

    for ends in (_in_peace, _by_an_error):
        manager, error = tried(answer, net, hook)
        if error:
            return Found("raised", error)
        if inspect.isgenerator(manager):
            return Found("generator")
        if not isinstance(manager, AbstractContextManager):
            return Found("no_manager")
        _, error = tried(ends, manager, net)
        if error and not error.endswith(_ERROR):
            return Found("raised", error)
        inside = calls[:]
        net(torch.ones(1))
        found = _sat(net, inside, left=len(calls) > len(inside), by_an_error=ends is _by_an_error)
        if found.name != "right":
            return found
        if not all(other.id in layer._forward_hooks for other, layer in zip(others, net, strict=True)):
            return Found("foreign")
        calls.clear()
    return Found("right")


_ERROR = "an error inside the block"


def _in_peace(manager: AbstractContextManager[Any], net: Callable[..., Any]) -> None:
    with manager:
        net(torch.ones(1))


def _by_an_error(manager: AbstractContextManager[Any], net: Callable[..., Any]) -> None:
    with manager:
        net(torch.ones(1))
        raise ValueError(_ERROR)


def _sat(net: nn.Sequential, inside: list[Any], *, left: bool, by_an_error: bool) -> Found:
    """What to say of hooks that were called by the modules ``inside`` the block, and may be left after it."""
    if net in inside:
        return Found("whole")
    if inside != list(net):
        return Found("some" if inside else "never")
    if left:
        return Found("error" if by_an_error else "stays")
    return Found("right")


def _factory(answer: Any) -> Found:
    """Make three hooks with the learner's function, and only then run them."""
    if fault := no_function(answer):
        return fault
    factors = (2, 3, 4)
    made = [tried(answer, factor) for factor in factors]
    error = next((error for _, error in made if error), "")
    if error:
        return Found("raised", error)
    if all(hook is None for hook, _ in made):
        return Found("no_return")
    if not all(callable(hook) for hook, _ in made):
        return Found("no_hook")
    fault = next((fault for hook, _ in made if (fault := hook_fault(hook, torch.tensor(1.0)))), None)
    if fault is not None:
        return fault
    results = [hook(torch.tensor(10.0)).item() for hook, _ in made]
    if results == [10.0 * factor for factor in factors]:
        return Found("right")
    return Found("same" if len(set(results)) == 1 else "other")


JUDGES: dict[str, Judge] = {
    "05.1": number(_piled, {3: "each", 9: "all", 1: "overwritten", 0: "never"}),
    "05.2": number(_late, {24: "own", 4: "last", 12: "added", 9: "summed", 1: "never"}),
    "05.3": number(_copied, {3: "all", 0: "empty", 1: "one"}),
    "05.4": _watching,
    "05.5": _factory,
}
