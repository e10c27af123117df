"""Delay interrupts (Ctrl-C, Jupyter's stop button) until a block that must not be interrupted is finished."""

import importlib
import signal
import threading
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
