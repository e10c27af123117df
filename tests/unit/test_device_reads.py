"""Each number of a pass is read once, those on a device in one batch: the CPU simulates it, and reads are counted."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

from hookviz import Trace, Value, record
from hookviz.api.trace import data_of
from hookviz.autograd import tensor_statistics
from hookviz.storage.files import encode_trace
from tests.scenes import hook_everything, scene

READING_METHODS = ("item", "tolist", "cpu", "numpy", "to", "__bool__", "__float__", "__int__", "nonzero")
"""Tensor methods that synchronise with a device; ``to`` does if it changes the device."""


@contextmanager
def simulated_device(patch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Treat all tensors as on a device, and count the reads of tensors."""
    read_counts: Counter[str] = Counter()
    with patch.context() as context:
        context.setattr(tensor_statistics, "reading_waits", lambda tensor: True)
        for name in READING_METHODS:
            context.setattr(torch.Tensor, name, count_reads(read_counts, name, getattr(torch.Tensor, name)))
        yield read_counts


def count_reads(read_counts: Counter[str], name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def counting_read(*args: Any, **kwargs: Any) -> Any:
        if name != "to" or any(isinstance(arg, (str, torch.device)) for arg in (*args, *kwargs.values())):
            read_counts[name] += 1
        return method(*args, **kwargs)

    return counting_read


def record_perceptron(layers: int, *, histograms: bool = False) -> Trace:
    torch.manual_seed(0)
    net = nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(9, 9), nn.ReLU())))
    x = torch.randn(20, 9)
    with record(net, histograms=histograms) as trace:
        net(x).sum().backward()
    return trace


@pytest.mark.parametrize("histograms", [False, True])
def test_the_number_of_device_reads_does_not_grow_with_the_nodes(
    histograms: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for layers in (2, 30):
        with simulated_device(monkeypatch) as read_counts:
            trace = record_perceptron(layers, histograms=histograms)
        counts.append(read_counts["cpu"] if histograms else sum(read_counts.values()))
        assert len(data_of(trace).histograms) == (6 * layers + 1) * histograms
    assert counts[0] == counts[1] <= (1 if histograms else 2), read_counts


def test_deferred_reads_give_the_same_trace_as_immediate_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    immediate = record_perceptron(9)
    with simulated_device(monkeypatch):
        deferred = record_perceptron(9)
    deferred_values, immediate_values = deferred._data.values, immediate._data.values
    assert all(map(rows_nearly_equal, deferred_values, immediate_values))  # deferred statistics are computed in float64
    deferred._data.values = immediate._data.values
    assert not deferred._data.losses and immediate._data.losses  # whoever reads a loss waits for the device
    deferred._data.losses = immediate._data.losses
    assert encode_trace(deferred._data) == encode_trace(immediate._data)


def rows_nearly_equal(one: Any, other: Any) -> bool:
    """Return whether two rows of values are equal up to rounding of the mean and the norm."""
    if not all(row[4] is not None and math.isfinite(row[4][3]) for row in (one, other)):
        return repr(one) == repr(other)
    statistics_agree = other[4] == pytest.approx(one[4], rel=1e-5, abs=1e-5 * one[4][3], nan_ok=True)
    return bool(statistics_agree) and (*one[:4], one[5]) == (*other[:4], other[5])


def test_effects_of_hooks_are_the_same_with_deferred_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe_steps() -> list[tuple[Any, ...]]:
        tensors = scene(torch.add)
        tensors.d.register_hook(lambda grad: grad.mul_(3) and None)
        hook_everything(tensors)
        with record(names=tensors._asdict()) as trace:
            tensors.e.backward()
        return [(step.kind, step.sentence, step.before, step.after, step.effect) for step in trace.steps]

    immediate = describe_steps()
    with simulated_device(monkeypatch):
        deferred = describe_steps()
    assert deferred == immediate
    assert "aliased" in [kind for kind, *_ in deferred]


TENSORS = {
    "a number": torch.tensor(2.5),
    "a matrix": torch.arange(6.0).reshape(2, 3),
    "few complex numbers": torch.tensor([1 + 2j, -3j]).conj(),
    "many": torch.randn(300),
    "many, expanded": torch.tensor([[1.0], [0.0]]).expand(2, 70),
    "Inf and NaN": torch.tensor([math.inf, -math.inf, math.nan] * 40),
    "many complex numbers": torch.tensor([3 + 4j, 0j] * 50),
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


def test_a_deferred_value_is_not_affected_by_later_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors, net = [torch.ones(3), torch.ones(300)], nn.Identity()
    with simulated_device(monkeypatch), record(net) as trace:
        for tensor in tensors:
            net(tensor)
            tensor.zero_()
    assert [step.after.max for step in trace.steps] == [1] * 4


def test_a_part_of_a_large_gradient_at_the_same_address_is_read_by_itself() -> None:
    rows, columns = (torch.zeros(12, 10, requires_grad=True) for _ in range(2))
    with record() as trace:
        joined = torch.cat([torch.cat([rows, rows]), torch.cat([columns, columns])], dim=1)
        (joined * torch.arange(480.0).reshape(24, 20)).sum().backward()
    sent = [step.after for step in trace.steps if step.kind == "compute" and step.on.startswith("CatBackward0")]
    assert [[part.max for part in parts] for parts in sent] == [[469, 479], [239, 479], [229, 469]]


@pytest.mark.parametrize("size", [2**13, 2**16, 2**16 + 255 * 8])
def test_zeros_are_counted_exactly_at_any_size(size: int) -> None:
    tensor = -torch.ones(size)
    tensor[::7] = 0
    assert Value.of(tensor).zero == int((tensor == 0).sum())
