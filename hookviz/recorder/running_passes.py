"""The passes of one recording that run now, and which of them a hook is called in."""

import threading
from collections.abc import Iterator
from typing import Any, Protocol

from hookviz.autograd.torch_internals import current_task
from hookviz.support.interrupts import Uninterrupted


class PassWithTask(Protocol):
    """What writes down one pass, and knows the engine's number of it once an observer was called."""

    task: int | None


class ObservedPass(Protocol):
    """A pass, as far as it is distinguished from others."""

    thread: int
    observer: Any

    def observe_all_nodes(self) -> None:
        """Put an observer in front of every node."""


class RunningPasses:
    """The passes of one recording that run now, the innermost last."""

    def __init__(self) -> None:
        self._passes: list[Any] = []
        self.nodes_got_hooks = False
        """Whether a node got a hook while a pass runs, so that observers are needed in front of all nodes."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self._passes)

    def __len__(self) -> int:
        return len(self._passes)

    def add(self, one: ObservedPass) -> None:
        """``one`` begins."""
        self._passes.append(one)

    def remove(self, one: ObservedPass) -> None:
        """``one`` is over; to remove it twice does no harm."""
        if one in self._passes:
            self._passes.remove(one)

    def here(self) -> list[Any]:
        """Those that began in the calling thread."""
        return [one for one in self._passes if one.thread == threading.get_ident()]

    def current(self) -> Any:
        """What observes the pass in which the calling hook runs; None outside of all."""
        task: int = current_task()
        for one in reversed(self._passes):
            if one.observer.task == task:
                return one.observer
        here = None if is_engine_thread() else threading.get_ident()
        for one in reversed(self._passes):
            if one.observer.task is None and here in (None, one.thread):
                one.observer.task = task
                return one.observer
        return None

    def observe_all_nodes(self) -> None:
        """Stand in front of every node of every pass, since hooks have come up on the way."""
        self.nodes_got_hooks = False
        with Uninterrupted():
            for one in self._passes:
                one.observe_all_nodes()


def is_engine_thread() -> bool:
    """Whether this is one of the autograd engine's own threads (of a CUDA device, say)."""
    return isinstance(threading.current_thread(), threading._DummyThread)
