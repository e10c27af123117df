"""Shared test helpers: the graph a, b, c, d, e, small modules, and short descriptions of the steps of a trace."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn

from hookviz import Step, Trace, Value, record


class Scene(NamedTuple):
    """The tensors of the graph of ``scene``."""

    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor
    d: torch.Tensor
    e: torch.Tensor

    def grads(self) -> list[float | None]:
        """Return the gradients of a to e, with None where torch keeps none."""
        gradients = [x.grad if x.is_leaf or x.retains_grad else None for x in self]
        return [None if grad is None else grad.item() for grad in gradients]


def leaf(*numbers: float) -> torch.Tensor:
    """Return a leaf tensor: a scalar for one number, else a vector."""
    return torch.tensor(numbers[0] if len(numbers) == 1 else list(numbers), requires_grad=True)


def scene(join: Callable[[Any, Any], torch.Tensor] = torch.mul) -> Scene:
    """Compute the graph of most tests: a=2, b=3, c=a*b, d=4, e=c*d; ``join`` replaces the last product."""
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    c = a * b
    return Scene(a, b, c, d, join(c, d))


def c_hook(grad: torch.Tensor) -> torch.Tensor:
    return grad + 2


def hook_everything(tensors: Scene) -> Any:
    """Register hooks on c, d and e, retain the gradients of c and e, and return the handle of c_hook."""
    tensors.e.register_hook(lambda grad: grad * 2)
    handle = tensors.c.register_hook(c_hook)
    tensors.c.register_hook(print)
    tensors.c.retain_grad()
    tensors.d.register_hook(lambda grad: grad + 100)
    tensors.e.retain_grad()
    return handle


def recorded() -> Trace:
    """Record the backward pass of ``scene`` with all hooks of ``hook_everything``."""
    tensors = scene()
    hook_everything(tensors)
    with record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    return trace


def silent(name: str) -> Callable[..., None]:
    """Return a hook with the given name that does nothing."""

    def hook(*_: Any) -> None:
        return None

    hook.__name__ = name
    return hook


def accumulator(tensor: torch.Tensor) -> Any:
    """Return the AccumulateGrad node of a leaf."""
    return torch.autograd.graph.get_gradient_edge(tensor).node


def plain(values: Any) -> Any:
    """Convert a ``Value`` to numbers, and several values to a tuple."""
    if isinstance(values, Value):
        return values.tolist()
    return None if values is None else tuple(map(plain, values))


def line(step: Step) -> tuple[Any, ...]:
    """Return (kind, on) of a step, and the name of its hook if it has one."""
    return (step.kind, step.on) if step.hook is None else (step.kind, step.on, step.hook.name)


def lines(trace: Trace) -> list[tuple[Any, ...]]:
    return [line(step) for step in trace.steps]


def firings(trace: Trace) -> list[tuple[Any, ...]]:
    """Return (hook, on, before, after, effect) of each firing."""
    return [(s.hook.name, s.on, plain(s.before), plain(s.after), s.effect) for s in trace.firings]


def steps_of(trace: Trace, kind: str, on: str | None = None) -> list[Step]:
    return [step for step in trace.steps if step.kind == kind and on in (None, step.on)]


def stored_gradients(trace: Trace, kind: str = "accumulate") -> dict[str, tuple[Any, Any]]:
    """Return name → (before, after) of the gradients stored in ``.grad`` by steps of ``kind``."""
    return {step.on: (plain(step.before), plain(step.after)) for step in steps_of(trace, kind)}


class SumNet(nn.Module):
    """Adds its three inputs."""

    def forward(self, a: Any, b: Any, c: Any) -> Any:
        return a + b + c


class Doubled(nn.Module):
    """Multiplies its input by one parameter, 2."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


class Net(nn.Module):
    """Two ``Doubled`` layers with a ReLU function between them."""

    def __init__(self) -> None:
        super().__init__()
        self.l1, self.l2 = Doubled(), Doubled()

    def forward(self, x: torch.Tensor) -> Any:
        return self.l2(self.l1(x).relu())


def describe_steps(trace: Trace, *kinds: str) -> list[tuple[Any, ...]]:
    """Return (kind, on, before, after) of each step of these kinds; by default of calls and module hooks."""
    selected_kinds = kinds or ("call", "forward", *FORWARD, *BACKWARD)
    return [(s.kind, s.on, plain(s.before), plain(s.after)) for s in trace.steps if s.kind in selected_kinds]


FORWARD = ("forward_pre_hook", "forward_hook")
BACKWARD = ("full_backward_pre_hook", "full_backward_hook", "backward_hook")


def chain(count: int, *, ops: int = 2) -> torch.Tensor:
    """Return the end of a chain of ``count`` nodes; of each ``ops`` of them, one adds and the others multiply."""
    x = leaf(1.0)
    for i in range(count):
        x = x * 1.001 if i % ops else x + 0.001
    return x


def fan(count: int) -> torch.Tensor:
    """Return the sum of ``count`` leaves, which are all inputs of one node."""
    return torch.stack([leaf(float(i)) for i in range(count)]).sum()


def count_calls(work: Callable[[], object]) -> int:
    """Count the function calls of ``work``: a measure of cost that is the same on every machine."""
    count = 0

    def count_event(_frame: FrameType, event: str, _what: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_event)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
