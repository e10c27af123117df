"""Programs that notice when their own code runs: recorded, they do what they do alone."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import hookviz as hv

Recorder = Callable[[], AbstractContextManager[Any]]
Outcome = tuple[list[str], list[torch.Tensor]]
"""What ran, and the numbers that came out."""


class Item(nn.Module):
    """Uses one part of what it is given, and a random number."""

    def __init__(self, part: Callable[[Any], Any]) -> None:
        super().__init__()
        self.weight, self.part = nn.Parameter(torch.ones(2)), part

    def forward(self, batch: Any) -> torch.Tensor:
        return self.part(batch) * self.weight * torch.rand(2)  # type: ignore[no-any-return]


def use(record: Recorder, batch: Any, part: Callable[[Any], Any], ran: list[str]) -> Outcome:
    torch.manual_seed(0)
    net = Item(part)
    net.register_forward_hook(lambda _module, _inputs, _output: None)
    with record():
        net(batch).sum().backward()
    assert net.weight.grad is not None
    return ran, [net.weight.grad]


def lazy_dict(record: Recorder) -> Outcome:
    ran: list[str] = []

    class Lazy(dict[str, Any]):
        """Loads a field when it is asked for; ``items`` loads all of them."""

        def __getitem__(self, key: str) -> torch.Tensor:
            ran.append(key)
            return torch.rand(2)

        def items(self) -> Any:
            return [(key, self[key]) for key in self]

    return use(record, Lazy(image=None, audio=None), lambda batch: batch["image"], ran)


def iterators(record: Recorder) -> Outcome:
    ran: list[str] = []

    class Parts(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            ran.append("list")
            return super().__iter__()

    class Pair(NamedTuple):
        first: Any
        second: Any

    class OwnPair(Pair):
        def __iter__(self) -> Iterator[Any]:
            ran.append("tuple")
            return super().__iter__()

    return use(record, (Parts([1, 2]), OwnPair(1, 2)), lambda batch: batch[0][0], ran)


def getters(record: Recorder) -> Outcome:
    ran: list[str] = []

    class Loud:
        """A descriptor that notes who reads the field."""

        def __get__(self, item: Any, owner: type | None = None) -> int:
            ran.append("field")
            return 1

        def __set__(self, item: Any, value: Any) -> None:
            """Take what the dataclass gives."""

    @dataclass
    class Batch:
        image: Any
        mask: Any = Loud()  # noqa: RUF009 - it is the descriptor that is meant

    batch = Batch(torch.ones(2), 1)
    ran.clear()
    return use(record, batch, lambda one: one.image, ran)


def claimed_class(record: Recorder) -> Outcome:
    return use(record, {"x": 1, "mock": MagicMock(spec=torch.Tensor)}, lambda batch: batch["x"], [])


def hidden_grad(record: Recorder) -> Outcome:
    ran, real = [], torch.Tensor.grad

    class Counted(nn.Parameter):
        """A parameter that notes who reads its gradient."""

        @property
        def grad(self) -> Any:
            ran.append("grad")
            return real.__get__(self)  # type: ignore[attr-defined]

        @grad.setter
        def grad(self, value: Any) -> None:
            real.__set__(self, value)  # type: ignore[attr-defined]

    layer = nn.Linear(2, 1)
    layer.weight = Counted(torch.ones(1, 2))
    with record():
        for _ in range(2):
            layer(torch.ones(2)).sum().backward()
    return list(ran), [real.__get__(layer.weight)]  # type: ignore[attr-defined]


def counted_hooks(record: Recorder) -> Outcome:
    weight, calls = nn.Parameter(torch.ones(2)), list[int]()

    def scale_in_the_last(grad: torch.Tensor) -> torch.Tensor:
        calls.append(len(weight._backward_hooks or ()))
        return grad * 10 if len(calls) == calls[-1] else grad

    for _ in range(2):
        weight.register_hook(scale_in_the_last)
    with record():
        (weight * 2).sum().backward()
    assert weight.grad is not None
    return [str(count) for count in calls], [weight.grad]


def exported(record: Recorder) -> Outcome:
    ran: list[str] = []
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net[0].register_forward_hook(lambda _module, _inputs, output: output * 2)
    with record():
        program = torch.export.export(net, (torch.ones(1, 2),), strict=True)
        net(torch.ones(1, 2)).sum().backward()
    ran += [str(node.target) for node in program.graph.nodes]
    return ran, []


def symbolic_sizes(record: Recorder) -> Outcome:
    symbols = ShapeEnv()
    mode = FakeTensorMode(shape_env=symbols, allow_non_fake_inputs=True)
    x = mode.from_tensor(torch.randn(5, 3))
    with record(), mode:
        y = nn.Linear(3, 4)(x)
        y.sum().backward()
    return [str(guard.expr) for guard in symbols.guards], []


PROGRAMS = (lazy_dict, iterators, getters, claimed_class, hidden_grad, counted_hooks, exported, symbolic_sizes)


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_of_the_program_runs_because_it_is_recorded(program: Callable[[Recorder], Outcome]) -> None:
    plain = program(nullcontext)
    recorded = program(hv.record)
    assert recorded[0] == plain[0]
    assert all(torch.equal(one, other) for one, other in zip(recorded[1], plain[1], strict=True))


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_of_these_programs_is_observed(program: Callable[[Recorder], Outcome]) -> None:
    traces: list[hv.Trace] = []

    class Kept:
        def __enter__(self) -> None:
            self.recorder = hv.record()
            traces.append(self.recorder.__enter__())

        def __exit__(self, *error: Any) -> None:
            self.recorder.__exit__(*error)

    program(Kept)  # type: ignore[arg-type]
    assert traces[0].notes == [] and len(traces[0].steps) > 2
