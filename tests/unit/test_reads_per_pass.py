"""Recording reads each gradient of a pass once where possible."""

import itertools
from typing import Any

import pytest
import torch

from hookviz import Trace, Value, record
from hookviz.autograd.tensor_statistics import measure
from hookviz.recorder import gradient_probe, pass_observer
from hookviz.recorder.fingerprint import fingerprint_of


@pytest.fixture
def shapes_read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the gradients that the observers of a pass read."""
    shapes: list[tuple[int, ...]] = []

    def append_and_log(values: list[Any], tensor: torch.Tensor, statistics: str) -> int:
        shapes.append(tuple(tensor.shape))
        values.append(measure(tensor))
        return len(values) - 1

    monkeypatch.setattr(gradient_probe, "append_value", append_and_log)
    return shapes


def record_chain(length: int) -> Trace:
    y = x = torch.tensor(1.0, requires_grad=True)
    for _ in range(length):
        y = y * -1
    with record(names={"x": x}) as trace:
        y.backward()
    return trace


def test_in_a_large_graph_without_hooks_each_gradient_is_read_once(shapes_read: list[tuple[int, ...]]) -> None:
    trace = record_chain(pass_observer.SMALL_GRAPH)
    arrivals = [step for step in trace.steps if step.kind == "arrive"]
    assert len(shapes_read) == len(arrivals) + 1  # plus the seed
    assert [step.after.tolist() for step in arrivals] == [(-1.0) ** n for n in range(1, pass_observer.SMALL_GRAPH + 1)]


def test_in_a_small_graph_made_while_recording_each_gradient_is_read_once(shapes_read: list[tuple[int, ...]]) -> None:
    with record() as trace:
        y = x = torch.tensor(1.0, requires_grad=True)
        for _ in range(5):
            y = y * -1
        y.backward()
    assert x.grad is not None and len(shapes_read) == 5 + 1
    assert [step.after.tolist() for step in trace.steps if step.kind == "arrive"] == [-1.0, 1.0, -1.0, 1.0, -1.0]


@pytest.mark.parametrize("reshape", [lambda x: x.view(1200).view(40, 5, 6).unsqueeze(0), lambda x: x.t().unsqueeze(1)])
def test_a_reshaped_gradient_is_not_read_again(reshape: Any, shapes_read: list[tuple[int, ...]]) -> None:
    x = torch.randn(30, 40, requires_grad=True)
    y = reshape(x)
    weights = torch.randn(y.shape)
    with record(names={"x": x}) as trace:
        (y * weights).sum().backward()
    large = [shape for shape in shapes_read if len(shape)]
    assert len(large) == 2  # the gradients that sum and mul send
    stored = next(step for step in trace.steps if step.kind == "accumulate")
    assert x.grad is not None
    assert stored.after.shape == (30, 40)
    assert stored.after.norm == pytest.approx(x.grad.norm().item(), rel=1e-6)


BASE = torch.arange(240.0)
VIEWS = {
    "whole": BASE,
    "matrix": BASE.view(12, 20),
    "transposed": BASE.view(12, 20).t(),
    "permuted": BASE.view(4, 6, 10).permute(2, 0, 1),
    "with a one": BASE.view(12, 1, 20),
    "half": BASE[:120],
    "the same half": BASE[:120].view(10, 12).t(),
    "every second": BASE[::2],
    "columns": BASE.view(12, 20)[:, :10],
    "columns, transposed": BASE.view(12, 20)[:, :10].t(),
    "diagonal blocks": BASE.as_strided((8, 10), (30, 1)),
    "expanded": BASE[:1].expand(12, 20),
    "expanded otherwise": BASE[:1].expand(240),
    "overlapping": BASE.as_strided((10, 12), (1, 1)),
}


def test_views_with_equal_layouts_have_the_same_numbers() -> None:
    layouts = {name: fingerprint_of(view).layout for name, view in VIEWS.items()}
    numbers = {name: view.flatten().sort().values for name, view in VIEWS.items()}
    assert None not in layouts.values()
    assert fingerprint_of(torch.randn(100, dtype=torch.complex64).conj().imag).layout is None  # a negated view
    pairs = [pair for pair in itertools.combinations(VIEWS, 2) if layouts[pair[0]] == layouts[pair[1]]]
    assert [(first, second) for first, second in pairs if not torch.equal(numbers[first], numbers[second])] == []


@pytest.mark.parametrize("size", [2**13, 2**16 - 1, 2**16, 2**16 + 255 * 8 - 1, 2**16 + 255 * 8])
def test_zeros_are_counted_exactly_at_any_size(size: int) -> None:
    for every in (1, 2, 7):
        tensor = -torch.ones(size)
        tensor[::every] = 0
        tensor[-1] = -0.0
        assert Value.of(tensor).zero == int((tensor == 0).sum())


def test_zeros_are_counted_in_permuted_and_strided_views() -> None:
    for order in itertools.permutations(range(3)):
        tensor = torch.randn(30, 70, 50).relu().permute(order)
        for view in (tensor, tensor[1:], tensor[:, ::2], tensor[..., 3:]):
            assert Value.of(view).zero == int((view == 0).sum())
