"""Values on a device are read in one batch, not one by one; the CPU simulates the device, and reads are counted."""

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
from hookviz.storage.files import encode_trace
from tests.scenes import hook_everything, scene

READING_METHODS = ("item", "tolist", "cpu", "numpy", "to", "__bool__", "__float__", "__int__", "nonzero")
"""Tensor methods that synchronise with a device; ``to`` does if it changes the device."""


@contextmanager
def simulated_device(patch: pytest.MonkeyPatch, *, on_device: bool = True) -> Iterator[Counter[str]]:
    """Treat all tensors as on a device (or none, if ``on_device`` is false), and count the reads of tensors."""
    read_counts: Counter[str] = Counter()
    with patch.context() as context:
        context.setattr(tensor_statistics, "reading_waits", lambda tensor: on_device)
        for name in READING_METHODS:
            context.setattr(torch.Tensor, name, count_reads(read_counts, name, getattr(torch.Tensor, name)))
        yield read_counts


def count_reads(read_counts: Counter[str], name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def counting_read(*args: Any, **kwargs: Any) -> Any:
        if name != "to" or any(isinstance(arg, (str, torch.device)) for arg in (*args, *kwargs.values())):
            read_counts[name] += 1
        return method(*args, **kwargs)

    return counting_read


def record_perceptron(layers: int) -> Trace:
    torch.manual_seed(0)
    net = nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(9, 9), nn.ReLU())))
    x = torch.randn(20, 9)
    with record(net) as trace:
        net(x).sum().backward()
    return trace


def test_the_number_of_device_reads_does_not_grow_with_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for layers in (2, 60):
        with simulated_device(monkeypatch) as read_counts:
            record_perceptron(layers)
        counts.append(sum(read_counts.values()))
    assert counts[0] == counts[1] <= 2, read_counts


@pytest.mark.parametrize("layers", [2, 100])
def test_deferred_reads_give_the_same_trace_as_immediate_reads(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    immediate = record_perceptron(layers)
    with simulated_device(monkeypatch):
        deferred = record_perceptron(layers)
    deferred_values, immediate_values = deferred.values, immediate.values
    assert all(map(rows_nearly_equal, deferred_values, immediate_values))  # deferred statistics are computed in float64
    deferred.values = immediate.values
    assert encode_trace(deferred) == encode_trace(immediate)


def rows_nearly_equal(one: Any, other: Any) -> bool:
    """Return whether two rows of values are equal up to rounding of the mean and the norm."""
    if not all(row[4] is not None and math.isfinite(row[4][3]) for row in (one, other)):
        return repr(one) == repr(other)
    statistics_agree = other[4] == pytest.approx(one[4], rel=1e-5, abs=1e-5 * one[4][3], nan_ok=True)
    return bool(statistics_agree) and (*one[:4], one[5]) == (*other[:4], other[5])


def describe_steps(trace: Trace) -> list[tuple[Any, ...]]:
    return [(step.kind, step.sentence, step.before, step.after, step.effect) for step in trace.steps]


def test_effects_of_hooks_are_the_same_with_deferred_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def record_scene() -> Trace:
        tensors = scene(torch.add)
        tensors.d.register_hook(lambda grad: grad.mul_(3) and None)
        hook_everything(tensors)
        with record(names=tensors._asdict()) as trace:
            tensors.e.backward()
        return trace

    immediate = describe_steps(record_scene())
    with simulated_device(monkeypatch):
        deferred = describe_steps(record_scene())
    assert deferred == immediate
    assert "aliased" in [kind for kind, *_ in deferred]


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
def test_every_kind_of_tensor_has_the_same_value_when_deferred(
    tensor: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simulated_device(monkeypatch):
        net = nn.Identity()
        with record(net) as trace:
            net(tensor)
            early = tuple(trace.steps[0].after.row)  # a deferred value can be read before the batch
            net(torch.zeros(65))
    assert rows_nearly_equal(early, Value.of(tensor).row)
    assert rows_nearly_equal(trace.steps[0].after.row, Value.of(tensor).row)
    assert trace.steps[2].after.zero == 65


@pytest.mark.parametrize("size", [3, 300])
def test_a_deferred_value_is_not_affected_by_later_edits(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor, net = torch.ones(size), nn.Identity()
    with simulated_device(monkeypatch), record(net) as trace:
        net(tensor)
        tensor.zero_()
    assert trace.steps[0].after.max == 1
