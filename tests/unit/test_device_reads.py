"""On a device nothing is read gradient by gradient; the CPU stands for the device, and every reading is counted."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

from hookviz import Trace, Value, record
from hookviz.autograd import tensor_statistics
from hookviz.autograd.tensor_statistics import fetch_pending, measure, measure_or_defer
from hookviz.storage.files import encode_trace
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS, DeferredRow
from tests.scenes import hook_everything, leaf, scene

READINGS = ("item", "tolist", "cpu", "numpy", "to", "__bool__", "__float__", "__int__", "nonzero")
"""What of a tensor in Python makes a device wait; ``to`` does if it changes the device."""


@contextmanager
def device(patch: pytest.MonkeyPatch, *, there: bool = True) -> Iterator[Counter[str]]:
    """All tensors count as being on a device, or none; what reads one of them is counted."""
    read: Counter[str] = Counter()
    with patch.context() as inside:
        inside.setattr(tensor_statistics, "reading_waits", lambda tensor: there)
        for name in READINGS:
            inside.setattr(torch.Tensor, name, counting(read, name, getattr(torch.Tensor, name)))
        yield read


def counting(read: Counter[str], name: str, reading: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        if name != "to" or any(isinstance(arg, (str, torch.device)) for arg in (*args, *kwargs.values())):
            read[name] += 1
        return reading(*args, **kwargs)

    return counted


def perceptron(layers: int) -> Trace:
    torch.manual_seed(0)
    net = nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(9, 9), nn.ReLU())))
    x = torch.randn(20, 9)
    with record(net) as trace:
        net(x).sum().backward()
    return trace


def test_the_number_of_readings_does_not_grow_with_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for layers in (2, 60):
        with device(monkeypatch) as read:
            perceptron(layers)
        counts.append(sum(read.values()))
    assert counts[0] == counts[1] <= 2, read


def test_on_the_cpu_every_value_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with device(monkeypatch, there=False) as read:
        trace = perceptron(5)
    assert sum(read.values()) >= len(trace.values)


@pytest.mark.parametrize("layers", [2, 100])
def test_what_is_read_later_is_what_is_read_at_once(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = perceptron(layers)
    with device(monkeypatch):
        later = perceptron(layers)
    values, others = later.values, at_once.values
    assert all(map(nearly, values, others))  # sums are those of float64 there
    later.values = at_once.values
    assert encode_trace(later) == encode_trace(at_once)


def nearly(one: Any, other: Any) -> bool:
    """Whether two rows of values are the same but for the rounding of mean and norm."""
    if not all(row[4] is not None and math.isfinite(row[4][3]) for row in (one, other)):
        return repr(one) == repr(other)
    alike = other[4] == pytest.approx(one[4], rel=1e-5, abs=1e-5 * one[4][3], nan_ok=True)
    return bool(alike) and (*one[:4], one[5]) == (*other[:4], other[5])


def told(trace: Trace) -> list[tuple[Any, ...]]:
    return [(step.kind, step.sentence, step.before, step.after, step.effect) for step in trace.steps]


def test_hooks_do_to_later_values_what_they_do_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Trace:
        tensors = scene(torch.add)
        hook_everything(tensors)
        tensors.d.register_hook(lambda grad: grad.mul_(3) and None)
        with record(names=tensors._asdict()) as trace:
            tensors.e.backward()
        return trace

    at_once = told(run())
    with device(monkeypatch):
        later = told(run())
    assert later == at_once


def test_a_gradient_edited_behind_a_hooks_back_is_noticed_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Trace:
        b, d = leaf(3.0), leaf(4.0)
        e = b + d
        b.register_hook(lambda grad: grad.mul_(100) and None)
        with record(names={"b": b, "d": d, "e": e}) as trace:
            e.backward()
        return trace

    at_once = told(run())
    with device(monkeypatch):
        later = told(run())
    assert later == at_once
    assert "aliased" in [kind for kind, *_ in later]


TENSORS = {
    "a number": torch.tensor(2.5),
    "a matrix": torch.arange(6.0).reshape(2, 3),
    "three dimensions": torch.arange(24).reshape(2, 3, 4),
    "empty": torch.zeros(3, 0),
    "truth values": torch.tensor([True, False]),
    "few complex numbers": torch.tensor([1 + 2j, -3j]).conj(),
    "many": torch.randn(300),
    "many, transposed": torch.randn(40, 30).t(),
    "many, expanded": torch.tensor([[1.0], [0.0]]).expand(2, 70),
    "many whole numbers": torch.arange(100),
    "half precision": torch.full((200,), 300.0, dtype=torch.float16),
    "a sum that overflows": torch.full((1000,), 3e38),
    "Inf and NaN": torch.tensor([math.inf, -math.inf, math.nan] * 40),
    "Inf alone": torch.tensor([math.inf, 1.0] * 40),
    "many complex numbers": torch.tensor([3 + 4j, 0j] * 50),
    "meta": torch.empty(100, device="meta"),
    "sparse": torch.eye(2).to_sparse(),
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_every_kind_of_tensor_has_the_same_value_later(tensor: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = measure(tensor)
    with device(monkeypatch):
        values = [
            measure_or_defer(tensor),
            measure_or_defer(torch.zeros(MAX_KEPT_NUMBERS + 1)),
            measure_or_defer(tensor),
        ]
        assert nearly(tuple(values[2]), expected)  # whoever cannot wait until the end may look before
        fetch_pending(values, 0)
    assert repr(values[0]) == repr(values[2]) and nearly(values[0], expected)
    assert Value(*values[1]).zero == MAX_KEPT_NUMBERS + 1


def test_a_value_is_of_the_moment_at_which_it_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = torch.ones(3), torch.ones(300)
    with device(monkeypatch):
        values = [measure_or_defer(few), measure_or_defer(many)]
        few.zero_()
        many.zero_()
        fetch_pending(values, 0)
    assert [Value(*row).max for row in values] == [1, 1]


def test_a_trace_holds_nothing_of_a_device_once_the_recording_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with device(monkeypatch):
        forward = nn.Linear(9, 9)
        with record() as trace:
            forward(torch.ones(20, 9))
            assert any(isinstance(row, DeferredRow) for row in trace.values)
    assert not any(isinstance(row, DeferredRow) for row in trace.values)
