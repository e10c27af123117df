"""Several threads at once: a recording contains only its own steps, and a model called in many threads loses none."""

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
from tests.waiting import PATIENCE

THREADS = 8


@pytest.fixture(autouse=True)
def fast_thread_switching() -> Iterator[None]:
    """Switch threads as often as possible, to provoke races."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    assert sys.getswitchinterval() == pytest.approx(1e-6)
    sys.setswitchinterval(interval)


def run_in_threads(work: Callable[[int], Any]) -> list[Any]:
    """Run ``work(number)`` in all threads, started at the same moment, and return the results."""
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
    """Record a small training run whose values depend on ``number``."""
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


def test_eight_threads_record_only_their_own_models() -> None:
    traces = run_in_threads(train)
    for number, trace in enumerate(traces):
        single_trace = train(number)
        assert [(s.kind, s.on, plain(s.before), plain(s.after)) for s in trace.steps] == [
            (s.kind, s.on, plain(s.before), plain(s.after)) for s in single_trace.steps
        ]
        assert trace.notes == [] and len(trace.roots) == 20


def test_a_model_called_in_eight_threads_at_once_loses_no_step(tmp_path: Path) -> None:
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
        assert run_in_threads(work) == [4.0] * THREADS
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


def test_a_thread_that_calls_a_recorded_model_may_record_another_model() -> None:
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
def test_a_note_reports_a_pass_in_an_unobserved_thread(given: bool) -> None:
    other = nn.Linear(1, 1)

    def train() -> None:
        other(torch.ones(1)).sum().backward()

    with hv.record(*([Net()] if given else [])) as trace:
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
    assert "A backward pass ran in a thread that this recording does not follow" in repr(trace)
    assert "no backward pass ran" not in repr(trace)


def test_a_pass_in_a_thread_with_its_own_recording_adds_no_note() -> None:
    def train() -> None:
        with hv.record():
            leaf(2.0).backward()

    with hv.record() as trace:
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        leaf(3.0).backward()
    assert trace.notes == []


def test_a_recording_that_ends_during_a_call_in_another_thread_leaves_no_observer() -> None:
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


# -- owners of nodes


def run_in_thread(work: Callable[[], Any]) -> Any:
    """Run ``work`` in a new thread and return its result."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def calls_by_op(trace: hv.Trace) -> dict[str, set[str]]:
    """Kind of node → the calls that own such nodes; leaves are left out, since they belong to modules."""
    found: dict[str, set[str]] = {}
    for node, call in trace.owners.items():
        if trace.ops[node] != "AccumulateGrad":
            found.setdefault(trace.ops[node], set()).add(trace.call(call))
    return found


def test_nodes_made_in_other_threads_belong_to_their_calls() -> None:
    net = Net()
    with hv.record(net) as trace:
        for _ in range(3):
            net(leaf(1.0))
        outs = [run_in_thread(lambda: net(leaf(1.0))) for _ in range(2)]
        torch.add(*outs).backward()
    assert calls_by_op(trace) == {
        "MulBackward0": {f"net.{name} (call {number})" for name in ("l1", "l2") for number in (4, 5)},
        "ReluBackward0": {"net (call 4)", "net (call 5)"},
    }
    assert all(out.grad_fn.metadata == {} for out in outs)
