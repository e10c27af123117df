"""The picture that the tests share, and what a trace says in a line for each step."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn

from hookviz import Step, Trace, Value, record
from tests.waiting import PATIENCE


class Scene(NamedTuple):
    """The tensors of one picture, under their names."""

    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor
    d: torch.Tensor
    e: torch.Tensor

    def grads(self) -> list[float | None]:
        """The gradients of a to e; None where torch keeps none."""
        kept = [x.grad if x.is_leaf or x.retains_grad else None for x in self]
        return [None if grad is None else grad.item() for grad in kept]


def leaf(*numbers: float) -> torch.Tensor:
    """A leaf: of no dimension for one number, else a vector."""
    return torch.tensor(numbers[0] if len(numbers) == 1 else list(numbers), requires_grad=True)


def scene(join: Callable[[Any, Any], torch.Tensor] = torch.mul) -> Scene:
    """The picture that everything starts from: a=2, b=3, c=a*b, d=4, e=c*d."""
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    c = a * b
    return Scene(a, b, c, d, join(c, d))


def c_hook(grad: torch.Tensor) -> torch.Tensor:
    return grad + 2


def hook_everything(tensors: Scene) -> Any:
    """The hooks of the facts; the handle of c_hook."""
    tensors.e.register_hook(lambda grad: grad * 2)
    handle = tensors.c.register_hook(c_hook)
    tensors.c.register_hook(print)
    tensors.c.retain_grad()
    tensors.d.register_hook(lambda grad: grad + 100)
    tensors.e.retain_grad()
    return handle


def recorded() -> Trace:
    """The pass over ``scene`` with every hook of the facts."""
    tensors = scene()
    hook_everything(tensors)
    with record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    return trace


def silent(name: str) -> Callable[..., None]:
    """A hook that does nothing, under a name of its own."""

    def hook(*_: Any) -> None:
        return None

    hook.__name__ = name
    return hook


def accumulator(tensor: torch.Tensor) -> Any:
    """The AccumulateGrad node of a leaf."""
    return torch.autograd.graph.get_gradient_edge(tensor).node


def plain(values: Any) -> Any:
    """A value as numbers, several as a tuple."""
    if isinstance(values, Value):
        return values.tolist()
    return None if values is None else tuple(map(plain, values))


def line(step: Step) -> tuple[Any, ...]:
    """(kind, on) of a step, and the hook's name if it has one."""
    return (step.kind, step.on) if step.hook is None else (step.kind, step.on, step.hook.name)


def lines(trace: Trace) -> list[tuple[Any, ...]]:
    return [line(step) for step in trace.steps]


def firings(trace: Trace) -> list[tuple[Any, ...]]:
    """(hook, on, before, after, effect) of each firing."""
    return [(s.hook.name, s.on, plain(s.before), plain(s.after), s.effect) for s in trace.firings]


def steps_of(trace: Trace, kind: str, on: str | None = None) -> list[Step]:
    return [step for step in trace.steps if step.kind == kind and on in (None, step.on)]


def written(trace: Trace, kind: str = "accumulate") -> dict[str, tuple[Any, Any]]:
    """Name → (before, after) of what was stored in ``.grad``."""
    return {step.on: (plain(step.before), plain(step.after)) for step in steps_of(trace, kind)}


class SumNet(nn.Module):
    """Adds what it is given."""

    def forward(self, a: Any, b: Any, c: Any) -> Any:
        return a + b + c


class Doubled(nn.Module):
    """One parameter, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


class Net(nn.Module):
    """Two layers and a function between them."""

    def __init__(self) -> None:
        super().__init__()
        self.l1, self.l2 = Doubled(), Doubled()

    def forward(self, x: torch.Tensor) -> Any:
        return self.l2(self.l1(x).relu())


def told(trace: Trace, *kinds: str) -> list[tuple[Any, ...]]:
    """(kind, on, before, after) of each step of these kinds, or of all that modules make."""
    chosen = kinds or ("call", "forward", *FORWARD, *BACKWARD)
    return [(s.kind, s.on, plain(s.before), plain(s.after)) for s in trace.steps if s.kind in chosen]


FORWARD = ("forward_pre_hook", "forward_hook")
BACKWARD = ("full_backward_pre_hook", "full_backward_hook", "backward_hook")


def calls(work: Callable[[], object]) -> int:
    """How many functions are called while ``work`` runs: what it costs, and the same on every machine."""
    count = 0

    def note(_frame: FrameType, event: str, _what: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


class Waits:
    """What calls it waits inside until it may go on."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()

    def __call__(self, *_: Any) -> None:
        self.inside.set()
        assert self.go_on.wait(PATIENCE)

    def backend(self, module: Any, example: Any) -> Callable[..., Any]:
        """For ``torch.compile``: what is compiled waits before it runs."""
        return lambda *given: [self(), module.forward(*given)][1]

    def around(self, work: Callable[[], Any], block: Callable[[threading.Thread], None]) -> None:
        thread = threading.Thread(target=work)
        block(thread)
        self.go_on.set()
        thread.join()
