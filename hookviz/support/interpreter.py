"""Switch off the garbage collector or thread switching for a while, shared by all threads."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hookviz.support.interrupts import Uninterrupted


class SharedSwitch:
    """A setting of the whole interpreter that several threads may change at once.

    The first ``take`` changes it, the last ``leave`` restores it.
    """

    def __init__(self, change: Callable[[], Any], restore: Callable[[Any], None]) -> None:
        self._change, self._restore = change, restore
        self._lock = threading.Lock()
        self._takers: set[object] = set()
        self._before: Any = None

    def take(self, taker: object) -> None:
        """Change the setting at least until ``taker`` leaves."""
        with Uninterrupted(), self._lock:
            if not self._takers:
                self._before = self._change()
            self._takers.add(taker)

    def leave(self, taker: object) -> None:
        """End the hold of ``taker``, if it has one; without any other taker the setting is restored."""
        with Uninterrupted(), self._lock:
            if taker in self._takers:
                self._takers.remove(taker)
                if not self._takers:
                    self._restore(self._before)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Change the setting within a ``with`` block."""
        taker = object()
        try:
            self.take(taker)
            yield
        finally:
            try:
                self.leave(taker)
            except KeyboardInterrupt:  # it may have come before the first line of ``leave``
                self.leave(taker)
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
