"""Where only the norm is read, it is that of all statistics, what follows from it is true, and the rest is None."""

import math
from typing import Any

import pytest
import torch
from scenes import leaf
from shown import shown_notes, shown_steps
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import hookviz as hv
from hookviz.autograd import deferred_values, tensor_statistics
from hookviz.autograd.tensor_statistics import fetch_pending, measure_or_defer
from hookviz.storage.integrity import find_fault

NOTE = 'record(statistics="norm") read only the norm, and whether NaN or Inf is among them'


def perceptron(**how: Any) -> hv.Trace:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 2))
    with hv.record(net, **how) as trace:
        net(torch.randn(30, 20)).sum().backward()
    return trace


TENSORS = {
    "many": torch.randn(300),
    "transposed": torch.randn(40, 30).t(),
    "expanded": torch.tensor([[1.0], [0.0]]).expand(2, 70),
    "whole numbers": torch.arange(100),
    "half precision": torch.full((200,), 300.0, dtype=torch.float16),
    "squares too large for float32": torch.full((1000,), 3e38),
    "squares too small for float32": torch.full((1000,), 3e-30),
    "zeros": torch.zeros(100),
    "complex numbers": torch.tensor([3 + 4j, 0j] * 50),
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_the_norm_is_that_of_all_statistics_and_the_rest_is_none(tensor: torch.Tensor) -> None:
    full, norm = hv.Value(*measure_or_defer(tensor)), hv.Value(*measure_or_defer(tensor, "norm"))
    assert norm.statistics == (None, None, None, full.norm, 0, 0, None)
    assert (norm.min, norm.max, norm.mean, norm.zero) == (None, None, None, None)
    assert (norm.shape, norm.dtype, norm.text()) == (full.shape, full.dtype, full.text())
    assert norm.block().endswith("(only the norm was read)")


@pytest.mark.parametrize("strange", [[math.nan], [math.inf], [math.inf, -math.inf, math.nan]], ids=str)
def test_a_tensor_that_is_not_finite_is_read_in_full(strange: list[float]) -> None:
    tensor = torch.ones(100)
    tensor[: len(strange)] = torch.tensor(strange)
    assert repr(measure_or_defer(tensor, "norm")) == repr(measure_or_defer(tensor))


def test_few_numbers_are_kept_all_the_same() -> None:
    assert measure_or_defer(torch.ones(8, 8), "norm") == measure_or_defer(torch.ones(8, 8))


def test_norms_of_numbers_whose_squares_are_too_small_are_not_lost() -> None:
    """In float32 the square of 3e-30 is 0, and a gradient that vanishes is one that people look for."""
    value = hv.Value.of(torch.full((100,), 3e-30))
    assert value.norm == pytest.approx(3e-29, rel=1e-6)
    assert hv.Value.of(torch.full((100,), 2e-22)).norm == pytest.approx(2e-21, rel=1e-6)


def test_the_trace_is_the_same_but_for_what_was_not_read_and_says_so() -> None:
    full, norm = perceptron(), perceptron(statistics="norm")
    assert (full.statistics, norm.statistics) == ("all", "norm")
    assert [step.kind for step in norm.steps] == [step.kind for step in full.steps]
    assert [step.sentence for step in norm.steps] == [step.sentence for step in full.steps]
    left_out = [row[4] for row in norm.values if row[4] is not None]
    assert left_out and all(found[:3] == (None, None, None) and found[6] is None for found in left_out)
    assert NOTE in norm.notes[-1] and not full.notes
    assert find_fault(norm) == ""


def test_a_file_and_a_page_keep_it_and_say_it(tmp_path: Any) -> None:
    trace = perceptron(statistics="norm")
    trace.save(tmp_path / "trace.json")
    loaded = hv.load(tmp_path / "trace.json")
    assert (loaded.statistics, loaded.values, loaded.rows) == ("norm", trace.values, trace.rows)
    content = loaded.content()
    assert NOTE in " ".join(shown_notes(content))
    assert any("(only the norm was read)" in (step["after"] or "") for step in shown_steps(content))


@pytest.mark.parametrize(("which", "error"), [("max", ValueError), ("", ValueError), (None, TypeError), (2, TypeError)])
def test_another_word_is_refused_with_those_that_there_are(which: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match='"all" or "norm"'):
        hv.record(statistics=which).__enter__()


def test_two_traces_are_compared_by_their_norms_where_one_has_no_more() -> None:
    assert len(perceptron().diff(perceptron(statistics="norm"))) == 0


def test_a_norm_that_differs_is_told_though_one_trace_has_no_more() -> None:
    def run(factor: float, **how: Any) -> hv.Trace:
        x = torch.ones(100, requires_grad=True)
        with hv.record(**how) as trace:
            (x * factor).sum().backward()
        return trace

    assert len(run(2.0).diff(run(2.0, statistics="norm"))) == 0
    assert [row.amount for row in run(2.0).diff(run(3.0, statistics="norm"))] == [10.0]
    assert [row.amount for row in run(-2.0, statistics="norm").diff(run(3.0))] == [10.0]


# -- what is found


def vanishing(net: nn.Module, x: torch.Tensor, **how: Any) -> list[tuple[str, str, int]]:
    net.zero_grad()
    with hv.record(net, **how) as trace:
        net(x).sum().backward()
    return [(trouble.kind, trouble.severity, trouble.step) for trouble in trace.troubles]


@pytest.mark.parametrize("last", ["dead", "nan", "vanishing", "healthy"])
def test_troubles_are_those_that_all_statistics_show(last: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(*(part for _ in range(6) for part in (nn.Linear(30, 30), nn.Sigmoid())), nn.Linear(30, 3))
    x = torch.randn(20, 30)
    if last == "dead":
        net = nn.Sequential(nn.Linear(30, 30), nn.ReLU(), nn.Linear(30, 3))
        torch.nn.init.constant_(net[0].bias, -1e3)  # type: ignore[arg-type]
    elif last == "nan":
        x[0, 0] = math.nan
    elif last == "healthy":
        net = nn.Sequential(nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, 3))
    found = vanishing(net, x, statistics="norm")
    assert found == vanishing(net, x)
    assert bool(found) is (last != "healthy")


def test_a_cause_that_would_show_in_the_minimum_is_said_to_be_unread() -> None:
    class Log(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.log()

    with hv.record(statistics="norm") as trace:
        Log()(torch.linspace(-1, 1, 100).requires_grad_()).sum().backward()
    assert 'record(statistics="norm") read only the norm of the input' in trace.troubles[0].sentence


# -- on a device


class Launches(TorchDispatchMode):
    """Counts the operations that start a kernel on a device, and refuses those that wait for one."""

    FREE = ("empty", "unbind", "detach", "view", "select", "slice", "as_strided", "alias")

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in ("_local_scalar_dense", "item", "nonzero")
        if not name.startswith(self.FREE):
            self.seen.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("read", "dtype", "most"),
    [
        (deferred_values.defer_statistics, torch.float32, 9),
        (deferred_values.defer_statistics, torch.bfloat16, 9),
        (deferred_values.defer_statistics, torch.float64, 9),
        (deferred_values.defer_norm, torch.float32, 2),  # torch casts to float64 by itself: a kernel of its own
        (deferred_values.defer_norm, torch.float64, 2),
        (deferred_values.defer_norm, torch.complex64, 2),
    ],
)
def test_few_kernels_are_started_for_a_tensor_and_none_is_waited_for(read: Any, dtype: Any, most: int) -> None:
    tensor = torch.ones(300, dtype=dtype)
    with Launches() as launches:
        read(((300,), "", ""), tensor, 1)
    casts = read is deferred_values.defer_norm and dtype is not torch.float64
    assert len(launches.seen) + casts <= most, launches.seen


DEVICE = {
    "finite": (torch.arange(100.0), (0, 0)),
    "squares too large for float32": (torch.full((100,), 3e38), (0, 0)),
    "squares too large for float64": (torch.full((100,), 1e200, dtype=torch.float64), (0, 0)),
    "NaN": (torch.tensor([math.nan, *[1.0] * 99]), (None, None)),
    "Inf": (torch.tensor([math.inf, *[1.0] * 99]), (0, None)),
    "Inf in float64": (torch.tensor([-math.inf, *[1.0] * 99], dtype=torch.float64), (0, None)),
}


@pytest.mark.parametrize(("tensor", "counts"), DEVICE.values(), ids=DEVICE)
def test_on_a_device_what_nobody_counted_is_none(
    tensor: torch.Tensor, counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the tensor may be gone when it turns out not to be finite."""
    monkeypatch.setattr(tensor_statistics, "reading_waits", lambda tensor: True)
    values = [measure_or_defer(tensor, "norm")]
    fetch_pending(values, 0)
    value = hv.Value(*values[0])
    assert (value.nan, value.inf) == counts
    assert (value.min, value.max, value.mean, value.zero) == (None, None, None, None)
    assert repr(value.norm) == repr(torch.linalg.vector_norm(tensor, dtype=torch.float64).item())


@pytest.mark.parametrize("strange", [math.nan, math.inf])
def test_on_a_device_troubles_are_found_all_the_same(strange: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_statistics, "reading_waits", lambda tensor: True)
    x = leaf(1.0)
    with hv.record(statistics="norm") as trace:
        (x * torch.full((100,), strange)).sum().backward()
    assert [trouble.kind for trouble in trace.troubles] == ["nan" if math.isnan(strange) else "inf"]
