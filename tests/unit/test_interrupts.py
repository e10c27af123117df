"""Ctrl-C at any moment leaves all as it was: torch's functions, every dict of hooks, the interpreter, and the files."""

import dis
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from scenes import Net, leaf, silent

import hookviz as hv
from hookviz.recorder import record_entry, torch_patches
from hookviz.recorder.hook_observer import Observer
from hookviz.recorder.record_block import RecordBlock
from hookviz.storage.integrity import find_fault
from hookviz.support.atomic_files import write_atomically
from hookviz.support.interrupts import Uninterrupted
from hookviz.what_if.switches import _FUNCTIONS, _METHODS

pytestmark = pytest.mark.slow

PACKAGE = os.path.join(os.path.dirname(hv.__file__), "")
POINTS = int(os.environ.get("HOOKVIZ_INTERRUPTS", 25))
"""At so many moments of each scene it is interrupted; set it to a large number for all of them."""
CHECKED = {dis.opmap[name] for name in dis.opmap if name in ("RESUME", "JUMP_BACKWARD") or name.startswith("CALL")}
"""Python looks for signals in these instructions: when a function begins, a loop goes on, or a call returns."""


class Interrupt:
    """Sends Ctrl-C when this package has come to a moment at which Python looks for it the ``number``-th time.

    ``within`` is the part of the package in which moments are counted.
    """

    def __init__(self, number: int, within: str = PACKAGE) -> None:
        self.number, self.count, self.within = number, 0, within
        self._before: dict[FrameType, int] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.within):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            now = frame.f_code.co_code[frame.f_lasti]
            if self._before.get(frame) in CHECKED:
                self.count += 1
                if self.count == self.number:
                    signal.raise_signal(signal.SIGINT)
            self._before[frame] = now
        elif event in ("return", "exception"):
            self._before.pop(frame, None)
        return self


def moments(run: Callable[[], Any], points: int = POINTS, within: str = PACKAGE) -> range:
    """Some of the moments at which ``run`` can be interrupted, spread over all of it."""
    with traced(-1, within) as counted:
        run()
    return range(1, counted.count + 1, max(1, counted.count // points))


class traced:  # noqa: N801
    """Interrupts what runs in the block."""

    def __init__(self, number: int, within: str = PACKAGE) -> None:
        self.interrupt = Interrupt(number, within)

    def __enter__(self) -> Interrupt:
        sys.settrace(self.interrupt)
        return self.interrupt

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


def interrupted(run: Callable[[], Any], number: int, within: str = PACKAGE) -> bool:
    """Whether ``run`` came to that moment: a second time some things are known, and need not be looked up."""
    try:
        with traced(number, within):
            run()
    except KeyboardInterrupt:
        return True
    return False


@pytest.fixture(autouse=True)
def traceable() -> Iterator[None]:
    before, handler = sys.gettrace(), signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
    sys.settrace(before)


class Work:
    """A training loop with a hook of every sort, all recorded."""

    def __init__(self, **options: Any) -> None:
        self.net, self.options = Net(), options
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
        with hv.record(self.net, **self.options) as self.trace:
            for number in range(2):
                out = self.net(leaf(float(number)))
                out.register_hook(silent("out"))
                self.outs.append(out)
                out.backward(retain_graph=True)
                self.opt.step()

    def dicts(self) -> list[Any]:
        """Every dict of hooks there is, in the order in which torch reads it."""
        net = self.net
        found = [vars(module)[name] for module in net.modules() for name in vars(module) if "hooks" in name]
        weight = net.l1.weight
        found += [weight._backward_hooks, weight._post_accumulate_grad_hooks, self.opt._optimizer_step_post_hooks]
        return [None if hooks is None else list(dict(hooks).items()) for hooks in found]


def outside() -> list[Any]:
    """All that a recording changes beyond the things that it watches."""
    names = [*((replaced.owner, replaced.name) for replaced in torch_patches._REPLACEMENTS), *_METHODS, *_FUNCTIONS]
    codes = [inside.function.__code__ for inside in torch_patches._INSTRUMENTED]
    switches = [
        gc.isenabled(),
        sys.getswitchinterval(),
        sys.getrecursionlimit(),
        *codes,
        torch.backends.mha.get_fastpath_enabled(),
    ]
    left = [
        dict(torch_patches._recordings_by_thread),
        dict(torch_patches._recordings_by_module),
        list(torch_patches._installed),
    ]
    return [*(vars(owner).get(name) for owner, name in names), *switches, *left, signal.getsignal(signal.SIGINT)]


def on_nodes(roots: list[torch.Tensor]) -> list[Any]:
    """What stays on the nodes of graphs: observers, and keys in the metadata."""
    found: list[Any] = []
    queue = [root.grad_fn for root in roots]
    for node in queue:
        if node is None:
            continue
        handles = node.register_hook(print), node.register_prehook(print)
        found += [hook for handle in handles for hook in handle.hooks_dict_ref() if isinstance(hook, Observer)]
        for handle in handles:
            handle.remove()
        found += node.metadata
        queue += [following for following, _ in node.next_functions]
    return found


@pytest.mark.parametrize("options", [{}, {"keep": 1}, {"every": 2, "only": "l1"}], ids=str)
def test_an_interrupted_recording_leaves_everything_as_it_was(options: dict[str, Any]) -> None:
    work = Work(**options)
    work.run()
    before, hooks, told = outside(), work.dicts(), [step.kind for step in work.trace.steps]
    times = 0
    for number in moments(work.run):
        times += interrupted(work.run, number)
        assert outside() == before, number
        assert work.dicts() == hooks, number
        assert on_nodes(work.outs) == [], number
        assert find_fault(work.trace) == "", number
    assert times >= POINTS
    work.run()
    assert [step.kind for step in work.trace.steps] == told


class Switched(Work):
    """What-if over hooks on things from outside its function, which come on top of those that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.both = hv.whatif(self.step, x=(0, 5))

    def step(self, x: float = 2.0) -> None:
        self.net.l1.register_forward_hook(silent("forward"))
        out = self.net(leaf(x))
        out.grad_fn.register_prehook(silent("node"))
        self.outs[:] = [out]
        out.backward(retain_graph=True)
        self.opt.step()

    def run(self) -> None:
        self.both.change(x=4.0)

    def shown(self) -> list[int]:
        """What ``change`` changes."""
        return [id(found) for found in (self.both.values, self.both._hook_ids, self.both._runs, self.both.notes)]


@pytest.mark.parametrize(("within", "points"), [("", POINTS // 8), ("what_if", POINTS // 2)], ids=["all", "switches"])
def test_an_interrupted_what_if_leaves_everything_as_it_was(within: str, points: int) -> None:
    work = Switched()
    before, hooks, within, times = outside(), work.dicts(), os.path.join(PACKAGE, within), 0
    for number in moments(work.run, points, within):
        shown = work.shown()
        if interrupted(work.run, number, within):
            times += 1
            assert work.shown() == shown, number
        assert outside() == before, number
        assert work.dicts() == hooks, number
        assert on_nodes(work.outs) == [], number
    assert times >= points


def test_an_interrupted_look_at_hooks_leaves_them_as_they_were() -> None:
    work = Work()
    work.run()
    out = work.outs[-1]
    before, hooks = outside(), work.dicts()

    def look() -> None:
        hv.hooks(out, work.net)
        hv.draw(out)

    for number in moments(look):
        interrupted(look, number)
        assert (outside(), work.dicts(), on_nodes([out])) == (before, hooks, [])


@pytest.mark.parametrize("what", ["save", "to_html"])
def test_an_interrupted_file_is_the_one_of_before(what: str, tmp_path: Path) -> None:
    work = Work()
    work.run()
    path, trace = tmp_path / "there", work.trace
    path.write_text("as it was")
    before = [list(trace.rows), list(trace.values), list(trace.remarks)]
    for number in moments(lambda: getattr(trace, what)(tmp_path / "other"), max(8, POINTS // 3)):
        interrupted(lambda: getattr(trace, what)(path), number)
        if path.read_text() != "as it was":  # the last moments are behind the writing
            assert path.read_text() == (tmp_path / "other").read_text()
            path.write_text("as it was")
        assert {file.name for file in tmp_path.iterdir()} == {"there", "other"}
    assert [trace.rows, trace.values, trace.notes] == before


def test_an_interrupted_reading_and_playing_leave_the_trace_as_it_was(tmp_path: Path) -> None:
    work = Work()
    work.run()
    work.trace.save(tmp_path / "trace.json")

    def use() -> None:
        loaded = hv.load(tmp_path / "trace.json")
        loaded.figure(3)
        assert loaded == work.trace
        assert work.trace.firings and work.trace.quiz() and work.trace.steps[3].sentence

    for number in moments(use, max(8, POINTS // 3)):
        interrupted(use, number)
    use()


def test_what_must_not_stay_half_done_is_done_and_then_the_interrupt_comes() -> None:
    done: list[str] = []

    def act() -> None:
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
            with Uninterrupted():
                signal.raise_signal(signal.SIGINT)
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        act()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_a_persons_own_is_asked_as_ever() -> None:
    asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: asked.append(number))
    with Uninterrupted():
        signal.raise_signal(signal.SIGINT)
        assert asked == []
    assert asked == [signal.SIGINT]


def test_an_interrupt_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_atomically("one", tmp_path / "file")
    with pytest.raises(UnicodeEncodeError):
        write_atomically("\ud800", tmp_path / "file")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["one"]


def ended_by(function: Callable[..., Any]) -> tuple[list[Any], BaseException]:
    """What is outside after an interrupt before the first line of ``function``; and the interrupt, with its frames."""

    def interrupt(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is function.__code__:
            sys.settrace(None)
            raise KeyboardInterrupt

    try:
        with hv.record() as trace:
            leaf(2.0).backward()
            sys.settrace(interrupt)
    except KeyboardInterrupt as error:
        assert len(trace.rows) > 0
        return outside(), error
    raise AssertionError("nothing interrupted it")


@pytest.mark.parametrize("function", [RecordBlock.__exit__, RecordBlock.end, record_entry.end])
def test_a_block_that_is_interrupted_as_it_ends_has_ended_though_its_traceback_is_kept(function: Any) -> None:
    before = outside()
    after, error = ended_by(function)
    assert after == before and error.__traceback__ is not None
    with hv.record() as trace:
        leaf(3.0).backward()
    assert len(trace.rows) > 0


def opened() -> Iterator[hv.Trace]:
    with hv.record() as trace:
        yield trace


def entered_by_hand() -> Iterator[hv.Trace]:
    block = hv.record()
    trace = block.__enter__()
    assert callable(block.__exit__)
    yield trace
    block.__exit__(None, None, None)


def entered_on_a_stack() -> Iterator[hv.Trace]:
    stack = ExitStack()
    yield stack.enter_context(hv.record())
    stack.close()


@pytest.mark.parametrize("make", [opened, entered_by_hand, entered_on_a_stack])
def test_a_block_stays_open_while_what_it_stands_in_waits(make: Callable[[], Iterator[hv.Trace]]) -> None:
    before, waiting = outside(), make()
    trace = next(waiting)
    gc.collect()
    with pytest.raises(RuntimeError, match="already observing this thread"), hv.record():
        pass
    leaf(2.0).backward()
    assert len(trace.rows) > 0
    assert list(waiting) == [] and outside() == before


@pytest.mark.parametrize("make", [opened, entered_by_hand, entered_on_a_stack])
def test_a_block_ends_with_what_it_stands_in(make: Callable[[], Iterator[hv.Trace]]) -> None:
    before, waiting = outside(), make()
    next(waiting)
    del waiting
    gc.collect()
    assert outside() == before


def test_a_recording_that_outlives_its_block_ends_before_the_next_one_begins() -> None:
    before, block = outside(), hv.record()
    with block:
        assert block._finalizer is not None
        block._finalizer.detach()  # as if interrupts had come before the first line of all that ends it
    assert outside() != before
    with hv.record() as trace:
        leaf(2.0).backward()
    assert len(trace.rows) > 0 and outside() == before
