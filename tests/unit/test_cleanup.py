"""A recording cleans up: it restores torch's functions and settings, and keeps no tensor or closure alive."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.autograd import deferred_values, tensor_statistics
from hookviz.recorder import torch_patches
from tests.scenes import leaf

CALL = nn.Module.__call__.__code__


@pytest.fixture(autouse=True)
def torch_is_unpatched() -> Iterator[None]:
    """Check before and after each test that torch is not patched."""
    assert nn.Module.__call__.__code__ is CALL
    yield
    assert nn.Module.__call__.__code__ is CALL and not torch_patches._installed
    with hv.record() as trace:
        (leaf(2.0) * 3).backward()
    assert len(trace.steps) > 2, "the next recording sees nothing"


def test_tensors_in_the_closure_of_forward_are_released() -> None:
    def run() -> Any:
        big = torch.zeros(9)

        class Shift(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x + big

        with hv.record():
            Shift()(torch.ones(9, requires_grad=True)).sum().backward()
        return weakref.ref(big)

    reference = run()
    gc.collect()
    assert reference() is None


def test_a_trace_with_keep_holds_no_device_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    class RunsBackwardInForward(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            loss = super().forward(x).sum()
            loss.backward()
            return loss.detach()

    monkeypatch.setattr(tensor_statistics, "reading_waits", lambda tensor: True)
    net = nn.Sequential(RunsBackwardInForward(3, 3))
    with hv.record(net, keep=2) as trace:
        for _ in range(9):
            net(torch.randn(2, 3))
    assert not any(isinstance(row, deferred_values.DeferredRow) for row in trace._data.values)
    assert trace.findings.values is not None and "hv-" in trace._repr_mimebundle_()["text/html"]


def test_a_failed_device_read_does_not_hide_the_users_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(values: Any, start: int) -> None:
        raise RuntimeError("device-side assert triggered")

    monkeypatch.setattr(tensor_statistics, "reading_waits", lambda tensor: True)
    monkeypatch.setattr(tensor_statistics, "fetch_all", fail)
    x = leaf(2.0)
    x.register_hook(lambda grad: [][1])
    with pytest.warns(hv.HookvizWarning, match="device-side assert"), hv.record() as trace, pytest.raises(IndexError):
        (x * x).backward()
    assert trace.steps[-1].kind == "unobserved" and "not shown" in trace.steps[0].sentence
