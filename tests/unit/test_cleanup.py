"""A recording cleans up: it restores torch's functions and settings, and keeps no tensor or closure alive."""

import gc
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from shown import shown_steps
from torch import nn

import hookviz as hv
from hookviz.autograd import deferred_values, graph, tensor_statistics
from hookviz.recorder import torch_patches
from tests.requirements import needs_threads_that_compile
from tests.scenes import Blocker, leaf
from tests.waiting import PATIENCE

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


@needs_threads_that_compile
@pytest.mark.usefixtures("compiler")
def test_a_recording_may_end_while_a_thread_is_in_a_compiled_region() -> None:
    blocker = Blocker()
    compiled = torch.compile(nn.Sequential(nn.Linear(2, 2)), backend=blocker.backend)

    def block(thread: threading.Thread) -> None:
        with hv.record(compiled):
            thread.start()
            assert blocker.entered.wait(PATIENCE)

    blocker.run_while_blocked(lambda: compiled(torch.ones(1, 2)), block)
    assert not torch_patches._recordings_by_thread and not torch_patches._recordings_before_regions


class DelayingLock:
    """A lock of the patched functions that delays one thread until the recording is over."""

    def __init__(self, blocker: Blocker) -> None:
        self.lock, self.blocker = threading.Lock(), blocker
        self.delayed_thread: int | None = None

    def __enter__(self) -> None:
        if threading.get_ident() == self.delayed_thread:
            self.blocker()
        self.lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self.lock.release()


def test_a_thread_may_call_the_model_while_the_recording_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    blocker, net = Blocker(), nn.Linear(1, 1)
    lock = DelayingLock(blocker)
    monkeypatch.setattr(torch_patches, "_lock", lock)

    def work() -> None:
        lock.delayed_thread = threading.get_ident()
        net(torch.ones(1))

    def block(thread: threading.Thread) -> None:
        with hv.record(net):
            thread.start()
            assert blocker.entered.wait(PATIENCE)

    blocker.run_while_blocked(work, block)
    assert not torch_patches._recordings_by_thread


def tensor_used_in_module_forward() -> Any:
    big = torch.zeros(9)

    class Times(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * big

    with hv.record():
        Times()(torch.ones(9, requires_grad=True)).sum().backward()
    return weakref.ref(big)


def tensor_used_in_custom_function() -> Any:
    big = torch.zeros(9)

    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * big

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return grad * big

    with hv.record():
        Times.apply(torch.ones(9, requires_grad=True)).sum().backward()  # type: ignore[no-untyped-call]
    return weakref.ref(big)


@pytest.mark.parametrize("make_reference", [tensor_used_in_module_forward, tensor_used_in_custom_function])
def test_tensors_in_the_closure_of_forward_are_released(make_reference: Callable[[], Any]) -> None:
    reference = make_reference()
    gc.collect()
    assert reference() is None


class RunsBackwardInForward(nn.Module):
    """Runs a backward pass inside its forward method."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        loss = self.inner(x).sum()
        loss.backward()
        return loss.detach()


def test_a_trace_with_keep_holds_no_device_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_statistics, "reading_waits", lambda tensor: True)
    net = RunsBackwardInForward()
    with hv.record(net, keep=2) as trace:
        for _ in range(9):
            net(torch.randn(2, 3))
    assert not any(isinstance(row, deferred_values.DeferredRow) for row in trace.values)
    assert trace.troubles is not None and "hv-" in trace._repr_mimebundle_()["text/html"]


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


@pytest.mark.usefixtures("compiler")
def test_a_model_that_ran_in_a_compiled_region_is_not_reported_as_uncalled() -> None:
    net = nn.Linear(2, 2)
    compiled = torch.compile(net, backend="eager")
    with hv.record(net) as trace:
        compiled(torch.ones(1, 2)).sum().backward()
    [note] = [note for note in trace.notes if "net" in note]
    assert "it may have run inside a compiled region" in note and "not called" not in note


class FalsyModule(nn.Module):
    """A module that is false in a condition, because its length is 0."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def __len__(self) -> int:
        return 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layer(x)
        return result


def test_state_dict_hooks_of_a_falsy_module_get_a_note() -> None:
    bag = FalsyModule()
    bag.register_state_dict_post_hook(lambda *given: None)  # type: ignore[no-untyped-call]
    with hv.record(bag) as trace:
        bag(torch.ones(1, 2)).sum().backward()
    assert any("bag" in note for note in trace.notes)


@pytest.mark.usefixtures("compiler")
def test_a_compiled_model_is_recorded_without_a_warning() -> None:
    compiled = torch.compile(nn.Linear(2, 2), backend="eager")
    with warnings.catch_warnings(record=True, action="always") as caught, hv.record(compiled) as trace:
        compiled(torch.ones(1, 2)).sum().backward()
    assert not [warning for warning in caught if warning.category is hv.HookvizWarning]
    assert "compiled" in {step.kind for step in trace.steps}


def test_a_note_repeated_in_every_pass_appears_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPTH", 5)
    with warnings.catch_warnings(action="ignore"), hv.record(keep=1) as trace:
        for _ in range(9):
            sum((leaf(1.0) for _ in range(9)), torch.zeros(())).backward()
    assert len([note for note in trace.notes if "more than" in note]) == 1


def test_next_hook_is_empty_without_a_value_to_pass_on() -> None:
    net = nn.Linear(2, 2)
    opt = torch.optim.SGD(net.parameters())
    opt.register_step_pre_hook(lambda *given: None)
    net(torch.ones(2)).sum().backward()
    with hv.record() as trace:
        with torch.no_grad():
            net(torch.ones(2))
        opt.step()
    assert [step.kind for step in trace.steps][:3] == ["call", "forward", "step_pre_hook"]
    assert [frame["next_hook"] for frame in shown_steps(trace.content())] == [""] * len(trace.steps)


def test_two_empty_traces_can_be_compared() -> None:
    with hv.record() as first:
        pass
    with hv.record() as second:
        pass
    assert "No gradient differs" in repr(first.diff(second)) and "text/html" in first.diff(second)._repr_mimebundle_()


def test_objects_of_a_failed_pass_are_released_when_it_ends() -> None:
    """The recorder releases the hook that ran when the pass failed, and with it the node of the hook."""
    x = leaf(2.0)

    def raise_error(grad: torch.Tensor) -> None:
        raise ValueError("stops")

    def do_nothing(grad: torch.Tensor) -> None:
        """Leave the gradient unchanged."""

    reference, handle = weakref.ref(do_nothing), x.register_hook(do_nothing)
    x.register_hook(raise_error)
    gc.disable()
    try:
        with hv.record(), pytest.raises(ValueError, match="stops"):
            x.backward()
        handle.remove()
        del do_nothing
        assert reference() is None
    finally:
        gc.enable()
