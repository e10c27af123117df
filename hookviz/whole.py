"""Things that are done wholly or not at all, whatever interrupts them: a file, and what must not stay half done."""

import importlib
import os
import signal
import threading
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any

from hookviz.graph import kind_of
from hookviz.words import say

# What stands behind the functions of ``signal``, which dress each number up as an enum and take ten times as long.
_signals: Any = importlib.import_module("_signal")
_SIGINT = int(signal.SIGINT)


def write_whole(text: str, path: str | Path) -> None:
    """Write ``text`` to ``path``; a file that is there stays as it is if anything fails or interrupts.

    Raises:
        OSError: the file cannot be written; the message says why.
        TypeError: ``path`` is no path.
    """
    target = path_of(path)
    try:
        _write(text, target)
    except OSError as error:
        raise type(error)(say("error.write", path=path, why=error.strerror)) from None


def path_of(path: object) -> Path:
    """``path`` as a path.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(say("error.path", kind=kind_of(path)))
    return Path(path)


def _write(text: str, target: Path) -> None:
    if target.exists() and not target.is_file():  # a folder fails here; a device must not be replaced by a file
        target.write_text(text, encoding="utf-8", newline="\n")
        return
    target = target.resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


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
