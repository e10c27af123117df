"""Moments in which the interpreter holds still, for all threads at once; afterwards it goes on as before."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hookviz.support.interrupts import Uninterrupted


class SharedSwitch:
    """A switch of the whole interpreter that several threads may turn at once: the last one to leave turns it back."""

    def __init__(self, turn: Callable[[], Any], back: Callable[[Any], None]) -> None:
        self._turn, self._back = turn, back
        self._lock = threading.Lock()
        self._takers: set[object] = set()
        self._before: Any = None

    def take(self, taker: object) -> None:
        """Turn the switch until ``taker`` leaves."""
        with Uninterrupted(), self._lock:
            if not self._takers:
                self._before = self._turn()
            self._takers.add(taker)

    def leave(self, taker: object) -> None:
        """``taker`` is done with it, if it ever took it."""
        with Uninterrupted(), self._lock:
            if taker in self._takers:
                self._takers.remove(taker)
                if not self._takers:
                    self._back(self._before)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Turn the switch for the time of the block."""
        taker = object()
        try:
            self.take(taker)
            yield
        finally:
            try:
                self.leave(taker)
            except KeyboardInterrupt:  # it may have come before the first line
                self.leave(taker)
                raise


def _stop_collecting() -> bool:
    enabled = gc.isenabled()
    gc.disable()
    return enabled


def _stop_switching() -> float:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    return interval


gc_paused = SharedSwitch(_stop_collecting, lambda enabled: gc.enable() if enabled else None)
"""Thousands of small objects at once would set off the cyclic garbage collector again and again."""

thread_switching_paused = SharedSwitch(_stop_switching, sys.setswitchinterval)
"""The interpreter does not change threads for so short a time unless somebody waits."""
