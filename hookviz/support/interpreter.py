"""Switch off the garbage collector or thread switching for a while, shared by all threads, and delay interrupts."""

import gc
import importlib
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

# The C module behind ``signal``, whose functions take ten times as long because they convert each number to an enum.
_signals: Any = importlib.import_module("_signal")
_SIGINT = int(signal.SIGINT)


class Uninterrupted:
    """A ``with`` block that is not interrupted: an interrupt (Ctrl-C, Jupyter's stop button) waits for its end.

    Interrupts reach only the main thread, so in other threads this does nothing. The handler that was installed before
    the block is called at its end, be it Python's or another.

    >>> with Uninterrupted():
    ...     pass
    """

    __slots__ = ("_handler", "_interrupt")

    def __enter__(self) -> None:
        self._handler: Any = None
        self._interrupt: tuple[int, FrameType | None] | None = None
        if threading.get_ident() == threading.main_thread().ident:
            handler = _signals.getsignal(_SIGINT)
            if callable(handler):  # else the signal ends the process or is ignored: no handler could be delayed
                self._handler = handler
                _signals.signal(_SIGINT, self._store)

    def _store(self, number: int, frame: FrameType | None) -> None:
        self._interrupt = number, frame

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            _signals.signal(_SIGINT, self._handler)
            if self._interrupt is not None:
                self._handler(*self._interrupt)


class StateLock:
    """A lock around changes of what all threads share, which a thread never waits for while it holds it.

    The garbage collector may run meanwhile and free an abandoned recording, whose end makes such changes, too. That is
    done when the lock is released.

    >>> lock = StateLock()
    >>> with lock:
    ...     lock.call(print, "after it")
    ...     print("in it")
    in it
    after it
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._deferred: deque[Callable[[], None]] = deque()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        is_free = self._depth == 0
        self._lock.release()
        while is_free and self._deferred:
            self._deferred.popleft()()

    def call(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call ``function``: now, or if this thread holds the lock, when it releases it."""
        with self._lock:
            is_held = self._depth > 0
            if is_held:
                self._deferred.append(partial(function, *arguments))
        if not is_held:
            function(*arguments)


state_lock = StateLock()
"""Guards the switches of the interpreter, and what a recording replaces in torch."""


class SharedSwitch:
    """A setting of the whole interpreter that several threads may change at once.

    The first ``acquire`` changes it, the last ``release`` restores it.
    """

    def __init__(self, change: Callable[[], Any], restore: Callable[[Any], None]) -> None:
        self._change, self._restore = change, restore
        self._holders: set[object] = set()
        self._before: Any = None

    def acquire(self, holder: object) -> None:
        """Change the setting at least until ``holder`` releases it."""
        with Uninterrupted(), state_lock:
            if not self._holders:
                self._before = self._change()
            self._holders.add(holder)

    def release(self, holder: object) -> None:
        """End the hold of ``holder``, if it has one; without any other holder, restore the setting."""
        with Uninterrupted(), state_lock:
            if holder in self._holders:
                self._holders.remove(holder)
                if not self._holders:
                    self._restore(self._before)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Change the setting within a ``with`` block."""
        holder = object()
        try:
            self.acquire(holder)
            yield
        finally:
            try:
                self.release(holder)
            except KeyboardInterrupt:  # it may have come before the first line of ``release``
                self.release(holder)
                raise


def _disable_gc() -> bool:
    enabled = gc.isenabled()
    gc.disable()
    return enabled


def _delay_thread_switches() -> float:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    return interval


gc_paused = SharedSwitch(_disable_gc, lambda enabled: gc.enable() if enabled else None)
"""No cyclic garbage collection, which creating thousands of small objects would start again and again."""

thread_switching_paused = SharedSwitch(_delay_thread_switches, sys.setswitchinterval)
"""No switch to another thread for up to 10 seconds, unless this thread waits for something."""
