"""Nothing stays behind a recording: no function of torch's replaced, no switch turned, no tensor or closure kept."""

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
from torch.backends import mha

import hookviz as hv
from hookviz.autograd import deferred_values, graph, tensor_statistics
from hookviz.recorder import torch_patches
from tests.scenes import Waits, leaf
from tests.waiting import PATIENCE

CALL = nn.Module.__call__.__code__


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Before and after each test, torch is as it came."""
    assert nn.Module.__call__.__code__ is CALL
    yield
    assert nn.Module.__call__.__code__ is CALL and not torch_patches._installed
    with hv.record() as trace:
        (leaf(2.0) * 3).backward()
    assert len(trace.steps) > 2, "the next recording sees nothing"


@pytest.mark.usefixtures("compiler")
def test_a_thread_may_still_be_in_a_compiled_region() -> None:
    waits = Waits()
    compiled = torch.compile(nn.Sequential(nn.Linear(2, 2)), backend=waits.backend)

    def block(thread: threading.Thread) -> None:
        with hv.record(compiled):
            thread.start()
            assert waits.inside.wait(PATIENCE)

    waits.around(lambda: compiled(torch.ones(1, 2)), block)
    assert not torch_patches._recordings_by_thread and not torch_patches._recordings_before_regions


class Late:
    """The lock of the replaced functions, for which one thread waits until the recording is over."""

    def __init__(self, waits: Waits) -> None:
        self.lock, self.waits = threading.Lock(), waits
        self.late: int | None = None

    def __enter__(self) -> None:
        if threading.get_ident() == self.late:
            self.waits()
        self.lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self.lock.release()


def test_a_thread_may_call_the_model_at_the_last_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, net = Waits(), nn.Linear(1, 1)
    lock = Late(waits)
    monkeypatch.setattr(torch_patches, "_lock", lock)

    def work() -> None:
        lock.late = threading.get_ident()
        net(torch.ones(1))

    def block(thread: threading.Thread) -> None:
        with hv.record(net):
            thread.start()
            assert waits.inside.wait(PATIENCE)

    waits.around(work, block)
    assert not torch_patches._recordings_by_thread


def test_the_fast_path_comes_back_when_the_last_that_did_without_it_ends() -> None:
    assert mha.get_fastpath_enabled()
    first, second = hv.record(fastpath=False), hv.record()
    begun, ended = threading.Event(), threading.Event()

    def other() -> None:
        with second:
            begun.set()
            assert ended.wait(PATIENCE)

    thread = threading.Thread(target=other)
    with first:
        thread.start()
        assert begun.wait(PATIENCE) and not mha.get_fastpath_enabled()
    ended.set()
    thread.join()
    assert mha.get_fastpath_enabled()


def test_what_a_user_does_to_the_fast_path_stays_done() -> None:
    with hv.record():
        mha.set_fastpath_enabled(False)
    assert not mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(True)


def in_a_forward() -> Any:
    big = torch.zeros(9)

    class Times(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * big

    with hv.record():
        Times()(torch.ones(9, requires_grad=True)).sum().backward()
    return weakref.ref(big)


def in_a_function() -> Any:
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


@pytest.mark.parametrize("made", [in_a_forward, in_a_function])
def test_what_a_forward_refers_to_is_let_go_of(made: Callable[[], Any]) -> None:
    reference = made()
    gc.collect()
    assert reference() is None


class Steps(nn.Module):
    """Its backward runs inside its forward."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        loss = self.inner(x).sum()
        loss.backward()
        return loss.detach()


def test_no_tensor_on_a_device_stays_in_a_trace_that_keeps_the_last_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_statistics, "reading_waits", lambda tensor: True)
    net = Steps()
    with hv.record(net, keep=2) as trace:
        for _ in range(9):
            net(torch.randn(2, 3))
    assert not any(isinstance(row, deferred_values.DeferredRow) for row in trace.values)
    assert trace.troubles is not None and "hv-" in trace._repr_mimebundle_()["text/html"]


def test_a_device_that_does_not_answer_hides_no_error_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(values: Any, start: int) -> None:
        raise RuntimeError("device-side assert triggered")

    monkeypatch.setattr(tensor_statistics, "reading_waits", lambda tensor: True)
    monkeypatch.setattr(tensor_statistics, "fetch_all", fails)
    x = leaf(2.0)
    x.register_hook(lambda grad: [][1])
    with pytest.warns(hv.HookvizWarning, match="device-side assert"), hv.record() as trace, pytest.raises(IndexError):
        (x * x).backward()
    assert trace.steps[-1].kind == "unobserved" and "not shown" in trace.steps[0].sentence


@pytest.mark.usefixtures("compiler")
def test_a_model_that_ran_in_a_compiled_region_is_not_said_to_have_been_left_alone() -> None:
    net = nn.Linear(2, 2)
    compiled = torch.compile(net, backend="eager")
    with hv.record(net) as trace:
        compiled(torch.ones(1, 2)).sum().backward()
    [note] = [note for note in trace.notes if "net" in note]
    assert "it may have run inside a compiled region" in note and "not called" not in note


class Bag(nn.Module):
    """A module whose truth is that of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def __len__(self) -> int:
        return 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layer(x)
        return result


def test_a_module_that_is_false_has_its_hooks_on_state_dict_named() -> None:
    bag = Bag()
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


def test_a_note_on_every_pass_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPTH", 5)
    with warnings.catch_warnings(action="ignore"), hv.record(keep=1) as trace:
        for _ in range(9):
            sum((leaf(1.0) for _ in range(9)), torch.zeros(())).backward()
    assert len([note for note in trace.notes if "more than" in note]) == 1


def test_only_what_is_handed_on_is_said_to_come_next() -> None:
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


def test_two_traces_of_nothing_are_compared() -> None:
    with hv.record() as one:
        pass
    with hv.record() as two:
        pass
    assert "No gradient differs" in repr(one.diff(two)) and "text/html" in one.diff(two)._repr_mimebundle_()


def test_what_a_pass_has_held_is_let_go_of_as_soon_as_it_is_over() -> None:
    """A hook that was being called when the pass failed, and with it the node that it knows."""
    x = leaf(2.0)

    def stops(grad: torch.Tensor) -> None:
        raise ValueError("stops")

    def looks(grad: torch.Tensor) -> None:
        """Holds nothing."""

    gone, handle = weakref.ref(looks), x.register_hook(looks)
    x.register_hook(stops)
    gc.disable()
    try:
        with hv.record(), pytest.raises(ValueError, match="stops"):
            x.backward()
        handle.remove()
        del looks
        assert gone() is None
    finally:
        gc.enable()
