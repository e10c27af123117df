"""Ctrl-C at any moment restores all state: torch's functions, the hook dicts, and the interpreter."""

import dis
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import torch
from scenes import Net, leaf, silent

import hookviz as hv
from hookviz.recorder.hook_observer import Observer
from hookviz.storage.integrity import find_fault
from hookviz.support.interpreter import Uninterrupted
from tests.torch_state import hook_dicts, process_state

pytestmark = pytest.mark.slow

PACKAGE = os.path.join(os.path.dirname(hv.__file__), "")
POINTS = int(os.environ.get("HOOKVIZ_INTERRUPTS", 15))
"""The number of moments at which each scenario is interrupted; a large number tests all of them."""
SIGNAL_CHECKING_OPCODES = {
    dis.opmap[name]
    for name in dis.opmap
    if name in ("RESUME", "JUMP_BACKWARD") or (name.startswith("CALL") and "INTRINSIC" not in name)
}
"""Opcodes in which Python checks for signals: a function begins, a loop continues, or a call returns."""


class Interrupt:
    """A trace function that sends SIGINT at the ``number``-th moment at which Python checks for signals.

    Only moments in files whose path begins with ``path_prefix`` are counted.
    """

    def __init__(self, number: int, path_prefix: str = PACKAGE) -> None:
        self.number, self.count, self.path_prefix = number, 0, path_prefix
        self._before: dict[FrameType, int] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.path_prefix):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            opcode = frame.f_code.co_code[frame.f_lasti]
            if self._before.get(frame) in SIGNAL_CHECKING_OPCODES:
                self.count += 1
                if self.count == self.number:
                    signal.raise_signal(signal.SIGINT)
            self._before[frame] = opcode
        elif event in ("return", "exception"):
            self._before.pop(frame, None)
        return self


def list_interrupt_points(run: Callable[[], Any], points: int = POINTS, path_prefix: str = PACKAGE) -> range:
    """Return the numbers of about ``points`` moments at which ``run`` can be interrupted, evenly spread."""
    with send_interrupt(-1, path_prefix) as counted:
        run()
    return range(1, counted.count + 1, max(1, counted.count // points))


class send_interrupt:  # noqa: N801
    """Context manager that interrupts the code in its block at one moment."""

    def __init__(self, number: int, path_prefix: str = PACKAGE) -> None:
        self.interrupt = Interrupt(number, path_prefix)

    def __enter__(self) -> Interrupt:
        # Python 3.12 traces opcodes only if some frame has asked for it before.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(self.interrupt)
        return self.interrupt

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


def catch_interrupt(run: Callable[[], Any], number: int, path_prefix: str) -> KeyboardInterrupt | None:
    """Return what ended ``run`` at the moment; None if it ended before: results are cached, and later runs shorter."""
    try:
        with send_interrupt(number, path_prefix):
            run()
    except KeyboardInterrupt as interrupt:
        return interrupt
    return None


def passed_through_hookviz(interrupt: KeyboardInterrupt) -> bool:
    return any(frame.filename.startswith(PACKAGE) for frame in traceback.extract_tb(interrupt.__traceback__))


@pytest.fixture(autouse=True)
def restore_trace_and_signal_handler() -> Iterator[None]:
    before, handler = sys.gettrace(), signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
    sys.settrace(before)


class RecordedTraining:
    """A recorded training loop with a hook of every kind, which drops its first pass."""

    def __init__(self) -> None:
        self.net = Net()
        self.net.l1.register_forward_pre_hook(silent("pre"))
        self.net.l1.register_forward_hook(silent("forward"), always_call=True)
        self.net.l2.register_full_backward_hook(silent("backward"))
        self.net.l1.weight.register_hook(silent("weight"))
        self.net.l1.weight.register_post_accumulate_grad_hook(silent("post"))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.0)
        self.opt.register_step_post_hook(silent("step"))
        self.outs: list[torch.Tensor] = []
        self.trace = hv.Trace()

    def run(self) -> None:
        self.outs.clear()
        with hv.record(self.net, keep=1) as self.trace:
            for number in range(2):
                out = self.net(leaf(float(number)))
                out.register_hook(silent("out"))
                self.outs.append(out)
                out.backward(retain_graph=True)
                self.opt.step()

    def state(self) -> list[Any]:
        """Return what an interrupt must leave as it is: the process, hook dicts, and nodes without observers."""
        return [process_state(), hook_dicts(self.net, self.opt), objects_left_on_nodes(self.outs)]


def objects_left_on_nodes(roots: list[torch.Tensor]) -> list[Any]:
    """Return the observers left on the nodes of graphs."""
    leftovers: list[Any] = []
    queue = [root.grad_fn for root in roots]
    for node in queue:
        if node is None:
            continue
        handles = node.register_hook(print), node.register_prehook(print)
        leftovers += [hook for handle in handles for hook in handle.hooks_dict_ref() if isinstance(hook, Observer)]
        for handle in handles:
            handle.remove()
        queue += [following for following, _ in node.next_functions]
    return leftovers


# torch's own __del__ fails if its constructor was interrupted, and Python reports that on stderr.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function StorageWeakRef.__del__")
@pytest.mark.parametrize("path_prefix", [PACKAGE, os.path.dirname(torch.__file__)], ids=["hookviz", "torch"])
def test_an_interrupted_recording_restores_all_state(path_prefix: str) -> None:
    work, points = RecordedTraining(), POINTS if path_prefix == PACKAGE else POINTS // 2
    work.run()
    before, step_kinds = work.state(), [step.kind for step in work.trace.steps]
    interrupt_count = 0
    for number in list_interrupt_points(work.run, points, path_prefix):
        interrupt = catch_interrupt(work.run, number, path_prefix)
        interrupt_count += interrupt is not None
        if interrupt is not None and not passed_through_hookviz(interrupt):
            torch.set_grad_enabled(
                True
            )  # without a recording, too, torch's optimizers can be stopped before they do it
        assert work.state() == before, number
        assert find_fault(work.trace._data) == "", number
    assert interrupt_count >= points
    work.run()
    assert [step.kind for step in work.trace.steps] == step_kinds


def test_a_handler_of_the_user_gets_the_signal_after_the_block_that_it_may_not_interrupt() -> None:
    received_signals: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: received_signals.append(number))
    with Uninterrupted():
        signal.raise_signal(signal.SIGINT)
        assert received_signals == []
    assert received_signals == [signal.SIGINT]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def record_in_a_generator() -> Iterator[hv.Trace]:
    with hv.record() as trace:
        yield trace


def test_a_record_block_stays_open_while_its_generator_is_suspended_and_ends_with_it() -> None:
    before, suspended = process_state(), record_in_a_generator()
    trace = next(suspended)
    gc.collect()
    with pytest.raises(RuntimeError, match="already observing this thread"), hv.record():
        pass
    leaf(2.0).backward()
    assert len(trace._data.rows) > 0
    del suspended
    gc.collect()
    assert process_state() == before
