"""Interrupts (Ctrl-C, Jupyter's stop) that wait until what must not stay half done is finished."""

import importlib
import signal
import threading
from types import FrameType
from typing import Any

# What stands behind the functions of ``signal``, which dress each number up as an enum and take ten times as long.
_signals: Any = importlib.import_module("_signal")
_SIGINT = int(signal.SIGINT)


class Uninterrupted:
    """Within this, an interrupt (Ctrl-C, Jupyter's stop) waits, and comes at the end.

    It reaches the main thread only, and stays with whoever handles it: another handler than Python's is asked in the
    end as it would have been.

    >>> with Uninterrupted():
    ...     pass
    """

    __slots__ = ("_before", "_came")

    def __enter__(self) -> None:
        self._before: Any = None
        self._came: tuple[int, FrameType | None] | None = None
        if threading.get_ident() == threading.main_thread().ident:
            before = _signals.getsignal(_SIGINT)
            if callable(before):  # else it ends the process, or is ignored, and there is nothing to wait for
                self._before = before
                _signals.signal(_SIGINT, self._wait)

    def _wait(self, number: int, frame: FrameType | None) -> None:
        self._came = number, frame

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            _signals.signal(_SIGINT, self._before)
            if self._came is not None:
                self._before(*self._came)
