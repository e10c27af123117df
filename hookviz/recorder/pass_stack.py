"""The running passes of one recording, and which of them a hook is called in."""

import threading
from collections.abc import Iterator
from typing import Any, Protocol

from hookviz.autograd.torch_internals import current_task
from hookviz.support.interpreter import Uninterrupted


class PassWithTask(Protocol):
    """A pass observer, which knows the engine's task number once one of its observers was called."""

    task: int | None


class ObservedPass(Protocol):
    """What distinguishes a running pass from others."""

    thread: int
    observer: Any

    def observe_all_nodes(self) -> None:
        """Put an observer in front of every node."""


class PassStack:
    """The running passes of one recording, the innermost last."""

    def __init__(self) -> None:
        self._passes: list[Any] = []
        self.nodes_got_hooks = False
        """Whether a node got a hook during a pass, so that observers are needed in front of all nodes."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self._passes)

    def __len__(self) -> int:
        return len(self._passes)

    def add(self, running_pass: ObservedPass) -> None:
        """Add a pass that begins."""
        self._passes.append(running_pass)

    def remove(self, running_pass: ObservedPass) -> None:
        """Remove a pass that has ended. Calling it twice is safe."""
        if running_pass in self._passes:
            self._passes.remove(running_pass)

    def in_this_thread(self) -> list[Any]:
        """Return the passes that began in the calling thread."""
        return [running_pass for running_pass in self._passes if running_pass.thread == threading.get_ident()]

    def current(self) -> Any:
        """Return the observer of the pass in which the calling hook runs, or None outside of all passes."""
        task: int = current_task()
        for running_pass in reversed(self._passes):
            if running_pass.observer.task == task:
                return running_pass.observer
        thread = None if is_engine_thread() else threading.get_ident()
        for running_pass in reversed(self._passes):
            if running_pass.observer.task is None and thread in (None, running_pass.thread):
                running_pass.observer.task = task
                return running_pass.observer
        return None

    def observe_all_nodes(self) -> None:
        """Put an observer in front of every node of every pass, because nodes got hooks."""
        self.nodes_got_hooks = False
        with Uninterrupted():
            for running_pass in self._passes:
                running_pass.observe_all_nodes()


def is_engine_thread() -> bool:
    """Return whether this is one of the autograd engine's own threads (of a CUDA device, for example)."""
    return isinstance(threading.current_thread(), threading._DummyThread)
