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

    The first ``acquire`` changes it, the last ``release`` restores it.
    """

    def __init__(self, change: Callable[[], Any], restore: Callable[[Any], None]) -> None:
        self._change, self._restore = change, restore
        self._lock = threading.Lock()
        self._holders: set[object] = set()
        self._before: Any = None

    def acquire(self, holder: object) -> None:
        """Change the setting at least until ``holder`` releases it."""
        with Uninterrupted(), self._lock:
            if not self._holders:
                self._before = self._change()
            self._holders.add(holder)

    def release(self, holder: object) -> None:
        """End the hold of ``holder``, if it has one; without any other holder, restore the setting."""
        with Uninterrupted(), self._lock:
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
