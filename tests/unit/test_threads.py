"""Several threads at once: a recording contains the steps of its own thread, and says that it missed others."""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from scenes import Net, leaf, plain
from torch import nn

import hookviz as hv

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
        assert trace.notes == [] and len(trace._data.roots) == 20


@pytest.mark.parametrize("given", [False, True])
def test_a_note_reports_a_pass_in_an_unobserved_thread(given: bool) -> None:
    other = nn.Linear(1, 1)

    def train() -> None:
        other(torch.ones(1)).sum().backward()

    with hv.record(*([Net()] if given else [])) as trace:
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
    assert "A backward pass ran in another thread than the recording" in repr(trace)
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


@torch.enable_grad()  # a hook runs without
def run_inside_passes(depth: int, work: Callable[[], Any]) -> None:
    """Run ``work`` in a hook of a pass in a hook of a pass, and so on: beyond 60, torch uses a thread of its engine."""
    if not depth:
        work()
        return
    y = leaf(1.0) * 2
    y.register_hook(lambda grad: run_inside_passes(depth - 1, work))
    y.backward()


def test_what_runs_in_a_thread_of_the_engine_belongs_to_the_recording_of_the_pass() -> None:
    net, threads = Net(), []

    def work() -> None:
        threads.append(threading.current_thread())
        net(leaf(1.0)).backward()

    with hv.record(net) as trace:
        run_inside_passes(70, work)
    assert isinstance(threads[0], threading._DummyThread)
    assert len(trace._data.roots) == 71 and trace.notes == []
    assert [trace._data.module(row.module) for row in trace._data.calls] == ["net", "net.l1", "net.l2"]
