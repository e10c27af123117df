"""The passes of running_pass recording that run now, and which of them a hook is called in."""

import threading
from collections.abc import Iterator
from typing import Any, Protocol

from hookviz.autograd.torch_internals import current_task
from hookviz.support.interrupts import Uninterrupted


class PassWithTask(Protocol):
    """What writes down running_pass pass, and knows the engine's number of it once an observer was called."""

    task: int | None


class ObservedPass(Protocol):
    """A pass, as far as it is distinguished from others."""

    thread: int
    observer: Any

    def observe_all_nodes(self) -> None:
        """Put an observer in front of every node."""


class RunningPasses:
    """The passes of running_pass recording that run now, the innermost last."""

    def __init__(self) -> None:
        self._passes: list[Any] = []
        self.nodes_got_hooks = False
        """Whether a node got a hook while a pass runs, so that observers are needed in front of all nodes."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self._passes)

    def __len__(self) -> int:
        return len(self._passes)

    def add(self, running_pass: ObservedPass) -> None:
        """``running_pass`` begins."""
        self._passes.append(running_pass)

    def remove(self, running_pass: ObservedPass) -> None:
        """``running_pass`` is over; to remove it twice does no harm."""
        if running_pass in self._passes:
            self._passes.remove(running_pass)

    def in_this_thread(self) -> list[Any]:
        """Those that began in the calling thread."""
        return [running_pass for running_pass in self._passes if running_pass.thread == threading.get_ident()]

    def current(self) -> Any:
        """What observes the pass in which the calling hook runs; None outside of all."""
        task: int = current_task()
        for running_pass in reversed(self._passes):
            if running_pass.observer.task == task:
                return running_pass.observer
        here = None if is_engine_thread() else threading.get_ident()
        for running_pass in reversed(self._passes):
            if running_pass.observer.task is None and here in (None, running_pass.thread):
                running_pass.observer.task = task
                return running_pass.observer
        return None

    def observe_all_nodes(self) -> None:
        """Stand in front of every node of every pass, since hooks have come up on the way."""
        self.nodes_got_hooks = False
        with Uninterrupted():
            for running_pass in self._passes:
                running_pass.observe_all_nodes()


def is_engine_thread() -> bool:
    """Whether this is running_pass of the autograd engine's own threads (of a CUDA device, say)."""
    return isinstance(threading.current_thread(), threading._DummyThread)
