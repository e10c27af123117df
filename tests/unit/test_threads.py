"""Several threads at once: each recording sees its own, and a model that is called in many loses nothing."""

import _thread
import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import Doubled, Net, leaf, plain
from torch import nn

import hookviz as hv
from hookviz.autograd import node_marks
from hookviz.autograd.node_marks import NodeMarks
from hookviz.recorder import node_owners
from hookviz.support.interpreter import gc_paused, thread_switching_paused
from tests.waiting import PATIENCE

THREADS = 8


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Threads take turns as often as they can, so that what may go wrong does."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    assert sys.getswitchinterval() == pytest.approx(1e-6)
    sys.setswitchinterval(interval)


def together(work: Callable[[int], Any]) -> list[Any]:
    """What ``work`` returns in each of the threads, which begin at the same moment."""
    start, results, failures = threading.Barrier(THREADS), [None] * THREADS, []

    def guarded(number: int) -> None:
        try:
            start.wait()
            results[number] = work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def train(number: int) -> hv.Trace:
    """A small training run, recorded, whose numbers tell whose it is."""
    net = Net()
    net.l1.register_forward_hook(lambda module, args, output: output + number)
    net.l2.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * (number + 1),))
    opt = torch.optim.SGD(net.parameters(), lr=0.001)
    opt.register_step_pre_hook(lambda *given: None)
    with hv.record() as trace:
        for _ in range(20):
            y = net(leaf(float(number)))
            y.register_hook(lambda grad: grad * 2)
            y.backward()
            opt.step()
    return trace


def test_eight_threads_recording_different_models_see_only_their_own() -> None:
    traces = together(train)
    for number, trace in enumerate(traces):
        alone_trace = train(number)
        assert [(s.kind, s.on, plain(s.before), plain(s.after)) for s in trace.steps] == [
            (s.kind, s.on, plain(s.before), plain(s.after)) for s in alone_trace.steps
        ]
        assert trace.notes == [] and len(trace.roots) == 20


def test_a_model_that_is_called_in_eight_threads_at_once_loses_no_step(tmp_path: Path) -> None:
    net = Net()
    net.l1.register_forward_hook(lambda module, args, output: output * 1)
    net.l1.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    calls = 25

    def work(number: int) -> float:
        for _ in range(calls):
            x = leaf(number + 1.0)
            net(x).backward()
        return x.grad.item()

    with hv.record(net) as trace:
        assert together(work) == [4.0] * THREADS
    assert trace.notes == []
    count = Counter(step.kind for step in trace.steps)
    total = THREADS * calls
    assert (count["call"], count["forward"], count["forward_hook"]) == (3 * total, 3 * total, total)
    assert count["seed"] == count["full_backward_hook"] == len(trace.roots) == total
    assert sorted(call.number for call in trace.calls if trace.module(call.module) == "net") == list(
        range(1, total + 1)
    )
    for step in trace.firings:
        if step.kind == "forward_hook":
            assert plain(step.before) == plain(step.after) and step.effect == "replaced"
    for index, call in enumerate(trace.calls):
        parent = None if call.parent is None else trace.module(trace.calls[call.parent].module)
        assert parent == (None if trace.module(call.module) == "net" else "net"), index
    trace.save(tmp_path / "trace.json")
    assert hv.load(tmp_path / "trace.json") == trace
    assert len(net.l1._forward_hooks) == 1


def test_a_thread_that_calls_a_recorded_model_may_record_another() -> None:
    theirs, mine = Doubled(), Doubled()
    inner: list[hv.Trace] = []

    def work() -> None:
        theirs(leaf(1.0))
        with hv.record(mine) as trace:
            mine(leaf(1.0))
        inner.append(trace)
        theirs(leaf(1.0))

    with hv.record(theirs) as trace:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [row.name for row in inner[0].modules] == ["mine"]
    assert len(trace.calls) == 2 and {row.name for row in trace.modules} == {"theirs"}


@pytest.mark.parametrize("given", [False, True])
def test_a_pass_in_a_thread_that_is_not_followed_is_told_of(given: bool) -> None:
    other = nn.Linear(1, 1)

    def train() -> None:
        other(torch.ones(1)).sum().backward()

    with hv.record(*([Net()] if given else [])) as trace:
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
    assert "A backward pass ran in a thread that this recording does not follow" in repr(trace)
    assert "no backward pass ran" not in repr(trace)


def test_a_pass_in_a_thread_of_the_engine_is_none_that_a_person_could_record() -> None:
    """On a device, checkpointing begins a pass there; Python has not begun such a thread."""
    done = threading.Event()

    def inner() -> None:
        leaf(2.0).backward()
        done.set()

    with hv.record() as trace:
        _thread.start_new_thread(inner, ())
        assert done.wait(PATIENCE)
        leaf(3.0).backward()
    assert trace.notes == []


def test_a_thread_with_a_recording_of_its_own_is_not_told_of_in_another() -> None:
    def train() -> None:
        with hv.record():
            leaf(2.0).backward()

    with hv.record() as trace:
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        leaf(3.0).backward()
    assert trace.notes == []


def test_a_recording_that_ends_while_another_thread_calls_leaves_nothing() -> None:
    inside, ended = threading.Event(), threading.Event()

    class Waits(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inside.set()
            assert ended.wait(PATIENCE)
            return x

    net = Waits()
    net.register_forward_hook(lambda module, args, output: output + 1)
    result: list[float] = []
    thread = threading.Thread(target=lambda: result.append(net(leaf(1.0)).item()))
    with hv.record(net) as trace:
        thread.start()
        assert inside.wait(PATIENCE)
    assert len(net._forward_hooks) == 1
    ended.set()
    thread.join()
    assert result == [2.0] and trace.notes == []


def test_switches_of_the_interpreter_are_turned_back_by_the_last_to_leave() -> None:
    interval = sys.getswitchinterval()

    def work(number: int) -> None:
        for _ in range(200):
            with gc_paused(), thread_switching_paused():
                assert not gc.isenabled() and sys.getswitchinterval() == 10

    together(work)
    assert gc.isenabled() and sys.getswitchinterval() == interval


# -- which call made a node


def in_a_thread(work: Callable[[], Any]) -> Any:
    """What ``work`` returns in a thread of its own."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def owned(trace: hv.Trace) -> dict[str, set[str]]:
    """Kind of node → the calls that are said to have made one; leaves belong to modules and are left out."""
    found: dict[str, set[str]] = {}
    for node, call in trace.owners.items():
        if trace.ops[node] != "AccumulateGrad":
            found.setdefault(trace.ops[node], set()).add(trace.call(call))
    return found


def test_nodes_made_in_other_threads_belong_to_the_calls_that_made_them() -> None:
    net = Net()
    with hv.record(net) as trace:
        for _ in range(3):
            net(leaf(1.0))
        outs = [in_a_thread(lambda: net(leaf(1.0))) for _ in range(2)]
        torch.add(*outs).backward()
    assert owned(trace) == {
        "MulBackward0": {f"net.{name} (call {number})" for name in ("l1", "l2") for number in (4, 5)},
        "ReluBackward0": {"net (call 4)", "net (call 5)"},
    }
    assert all(out.grad_fn.metadata == {} for out in outs)


def test_a_node_that_another_thread_made_outside_of_any_call_has_no_owner() -> None:
    net, x = Net(), leaf(1.0)

    def prepared() -> torch.Tensor:
        y = x.exp()
        for _ in range(4):
            y = y.sin()
        return y

    with hv.record(net) as trace:
        net(leaf(1.0))
        net(in_a_thread(prepared)).backward()
        in_a_thread(lambda: net(leaf(1.0)))
        torch.mul(net(in_a_thread(prepared)), 2).backward()
    assert "ExpBackward0" in trace.ops and "ExpBackward0" not in owned(trace)
    assert "SinBackward0" not in owned(trace)
    assert "net.l2 (call 4)" in owned(trace)["MulBackward0"]


def test_a_call_given_what_a_call_in_another_thread_made_owns_its_own_nodes_only() -> None:
    first, second = Net(), Net()
    with hv.record(first, second) as trace:
        second(in_a_thread(lambda: first(leaf(1.0)))).backward()
    nodes = [(trace.ops[node], trace.call(call)) for node, call in sorted(trace.owners.items())]
    assert [call for op, call in nodes if op == "MulBackward0"] == ["first.l1", "first.l2", "second.l1", "second.l2"]
    assert [call for op, call in nodes if op == "ReluBackward0"] == ["first", "second"]


def test_marks_of_graphs_that_are_gone_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_marks, "_FIRST_SWEEP", 8)
    net, recording = Doubled(), node_owners.NodeOwners(marks_threads=True)
    kept = [net(leaf(1.0)) for _ in range(20)]
    for out in kept:
        recording.mark_outputs([out], 0)
    assert len(list(recording._marks.items())) == 20
    kept[5:] = []
    for _ in range(40):
        recording.mark_outputs([net(leaf(1.0))], 0)
    assert len(list(recording._marks.items())) < 20
    assert all(out.grad_fn in recording._marks for out in kept)
    assert all(out.grad_fn.metadata == {} for out in kept)
    recording.close()
    assert not recording._marks


def test_marks_can_be_made_in_one_thread_while_another_looks_through_all() -> None:
    """A recording that begins in one thread must not disturb the recording of another."""
    stop, made = threading.Event(), []

    def make() -> None:
        while not stop.is_set():
            made.append(NodeMarks())
            del made[:-50]

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        marks: NodeMarks[int] = NodeMarks()
        node = leaf(2.0).exp().grad_fn
        marks.put(node, 1)
        for _ in range(3000):
            marks.sweep()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert marks.get(node) == 1
