"""Several threads at once: a recording contains the steps of its own thread, and says that it missed others."""

import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from scenes import Net, leaf, plain

import hookviz as hv

THREADS = 4


@pytest.fixture(autouse=True)
def fast_thread_switching() -> Iterator[None]:
    """Switch threads as often as possible, to provoke races."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    assert sys.getswitchinterval() == pytest.approx(1e-6)
    sys.setswitchinterval(interval)


def train(number: int) -> hv.Trace:
    """Record a small training run whose values depend on ``number``."""
    net = Net()
    net.l1.register_forward_hook(lambda module, args, output: output + number)
    net.l2.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * (number + 1),))
    opt = torch.optim.SGD(net.parameters(), lr=0.001)
    opt.register_step_pre_hook(lambda *given: None)
    with hv.record() as trace:
        for _ in range(10):
            y = net(leaf(float(number)))
            y.register_hook(lambda grad: grad * 2)
            y.backward()
            opt.step()
    return trace


def test_threads_that_record_at_the_same_time_record_only_their_own_models() -> None:
    start, traces = threading.Barrier(THREADS), dict[int, hv.Trace]()

    def work(number: int) -> None:
        start.wait()
        traces[number] = train(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(THREADS):
        trace, alone = traces[number], train(number)
        assert [(s.kind, s.on, plain(s.before), plain(s.after)) for s in trace.steps] == [
            (s.kind, s.on, plain(s.before), plain(s.after)) for s in alone.steps
        ]
        assert trace.notes == []
        assert len(trace._data.roots) == 10


def run_in_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("given", [False, True])
def test_a_note_reports_a_pass_in_an_unobserved_thread(given: bool) -> None:
    with hv.record(*([Net()] if given else [])) as trace:
        run_in_thread(leaf(2.0).backward)
    assert "A backward pass ran in another thread than the recording" in repr(trace)
    assert "no backward pass ran" not in repr(trace)
