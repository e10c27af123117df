"""``record(statistics="norm")``: the norm equals the fully measured one, other statistics are None."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from shown import shown_steps
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import hookviz as hv
from hookviz.autograd import deferred_values, tensor_statistics
from hookviz.storage.integrity import find_fault

NOTE = 'record(statistics="norm") read only the norm, and whether NaN or Inf is among them'


def record_perceptron(**options: Any) -> hv.Trace:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 2))
    with hv.record(net, **options) as trace:
        net(torch.randn(30, 20)).sum().backward()
    return trace


TENSORS = {
    "transposed": torch.randn(40, 30).t(),
    "squares too large for float32": torch.full((1000,), 3e38),
    "complex numbers": torch.tensor([3 + 4j, 0j] * 50),
}


def norm_only(tensor: torch.Tensor) -> hv.Value:
    """What a recording of norms keeps of ``tensor``."""
    net = nn.Identity()
    with hv.record(net, statistics="norm") as trace:
        net(tensor)
    value = trace.steps[0].after
    assert isinstance(value, hv.Value)
    return value


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_the_norm_equals_the_fully_measured_one_and_other_statistics_are_none(tensor: torch.Tensor) -> None:
    full, norm = hv.Value.of(tensor), norm_only(tensor)
    assert norm.statistics == (None, None, None, full.norm, 0, 0, None)
    assert (norm.min, norm.max, norm.mean, norm.zero) == (None, None, None, None)
    assert (norm.shape, norm.dtype, norm.text()) == (full.shape, full.dtype, full.text())
    assert norm.block().endswith("(only the norm was read)")


def test_a_tensor_that_is_not_finite_or_small_is_read_in_full() -> None:
    tensor = torch.ones(100)
    tensor[:2] = torch.tensor([math.inf, -math.inf])
    assert repr(norm_only(tensor).row) == repr(hv.Value.of(tensor).row)
    assert norm_only(torch.ones(8, 8)) == hv.Value.of(torch.ones(8, 8))


def test_a_norm_only_trace_has_the_same_steps_and_a_note_also_in_files_and_pages(tmp_path: Path) -> None:
    full, norm = record_perceptron(), record_perceptron(statistics="norm")
    assert (full.statistics, norm.statistics) == (None, "norm")
    assert [(step.kind, step.sentence) for step in norm.steps] == [(step.kind, step.sentence) for step in full.steps]
    statistics_rows = [row[4] for row in norm._data.values if row[4] is not None]
    assert statistics_rows and all(row[:3] == (None, None, None) and row[6] is None for row in statistics_rows)
    assert NOTE in norm.notes[-1] and not full.notes
    assert find_fault(norm._data) == ""
    norm.save(tmp_path / "trace.json")
    loaded = hv.load(tmp_path / "trace.json")
    assert (loaded.statistics, loaded._data.values, loaded._data.rows) == ("norm", norm._data.values, norm._data.rows)
    content = loaded.content()
    assert NOTE in " ".join(content["notes"])
    assert any("(only the norm was read)" in (step["after"] or "") for step in shown_steps(content))


def test_without_a_choice_only_the_norm_of_very_large_tensors_is_read() -> None:
    large, very_large = torch.ones(2**20, requires_grad=True), torch.ones(2**20 + 1, requires_grad=True)
    with hv.record() as trace:
        (large.sum() + very_large.sum()).backward()
    means = {step.on: step.after.mean for step in trace.steps if step.kind == "accumulate"}  # type: ignore[union-attr]
    assert means == {"large": 1, "very_large": None} and trace.notes == []


def test_diff_reports_a_different_norm_if_one_trace_has_only_norms() -> None:
    def run(factor: float, **options: Any) -> hv.Trace:
        x = torch.ones(100, requires_grad=True)
        with hv.record(**options) as trace:
            (x * factor).sum().backward()
        return trace

    assert len(run(2.0).diff(run(2.0, statistics="norm"))) == 0
    assert [row.amount for row in run(2.0).diff(run(3.0, statistics="norm"))] == [10.0]


# -- troubles


def troubles_of(net: nn.Module, x: torch.Tensor, **options: Any) -> list[tuple[str, str, int]]:
    net.zero_grad()
    with hv.record(net, **options) as trace:
        net(x).sum().backward()
    return [(trouble.kind, trouble.severity, trouble.step) for trouble in trace.findings.values]


@pytest.mark.parametrize("case", ["nan", "vanishing", "healthy"])
def test_troubles_are_the_same_as_with_all_statistics(case: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(30, 30), nn.Sigmoid())), nn.Linear(30, 3))
    x = torch.randn(20, 30)
    if case == "nan":
        x[0, 0] = math.nan
    elif case == "healthy":
        net = nn.Sequential(nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, 3))
    troubles = troubles_of(net, x, statistics="norm")
    assert troubles == troubles_of(net, x)
    assert bool(troubles) is (case != "healthy")


# -- on a device


class KernelCounter(TorchDispatchMode):
    """Counts the operations that launch a kernel on a device; asserts that none waits for the device."""

    WITHOUT_KERNEL = ("empty", "unbind", "detach", "view", "select", "slice", "as_strided", "alias")

    def __init__(self) -> None:
        super().__init__()
        self.launched: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in ("_local_scalar_dense", "item", "nonzero")
        if not name.startswith(self.WITHOUT_KERNEL):
            self.launched.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("defer", "dtype", "max_kernels"),
    [
        (deferred_values.defer_statistics, torch.float32, 9),
        (deferred_values.defer_norm, torch.float32, 2),  # torch launches a separate kernel for the cast to float64
        (deferred_values.defer_norm, torch.float64, 2),
    ],
)
def test_measuring_launches_few_kernels_and_does_not_wait(defer: Any, dtype: Any, max_kernels: int) -> None:
    tensor = torch.ones(300, dtype=dtype)
    with KernelCounter() as counter:
        defer(((300,), "", ""), tensor, 1)
    casts = defer is deferred_values.defer_norm and dtype is not torch.float64
    assert len(counter.launched) + casts <= max_kernels, counter.launched


def test_on_a_device_uncounted_statistics_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensor may be freed before it turns out not to be finite."""
    monkeypatch.setattr(tensor_statistics, "reading_waits", lambda tensor: True)
    value = norm_only(torch.tensor([math.inf, *[1.0] * 99]))
    assert (value.norm, value.nan, value.inf) == (math.inf, 0, None)
    assert (value.min, value.max, value.mean, value.zero) == (None, None, None, None)
