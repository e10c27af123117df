"""A progress bar for work that takes longer than a second: in a terminal, in Jupyter, or next to a slider.

tqdm makes the bar. In a terminal it also shows and clears it. In Jupyter we show it ourselves, since tqdm would leave
an error (its widget) or a red band (its text) in the saved notebook.
"""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

ShowLine = Callable[[str], None]
"""A function that shows a line in place of the previous one; an empty line clears it."""

DELAY = 1.0
"""In seconds: how long the work runs before a bar appears."""
INTERVAL = 0.1
"""In seconds: the shortest time between two updates of a bar."""
MIN_COUNT = 20_000
"""Fewer quick parts than this are always done within a second."""

_show_line: ContextVar[ShowLine | None] = ContextVar("_show_line", default=None)


@contextmanager
def progress(line: str, count: int, done: int = 0) -> Iterator[Callable[..., object]]:
    """Show the progress of ``count`` parts of work, of which ``done`` are already finished.

    Yields a function to call after each part, or with 10 after ten parts. ``line`` is the text of the bar, with ``{n}``
    and ``{total}`` in it.

    >>> with show_progress_with(print), progress("{n} of {total}", 2) as tick:
    ...     tick()  # shows nothing within the first second
    """
    show = _show_line.get() or _make_notebook_line()
    if show is None and not _is_terminal(sys.stderr):
        yield _ignore_tick
        return
    from tqdm.std import tqdm  # imported here to keep ``import hookviz`` fast

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # else tqdm starts a thread

        def display(self, msg: str | None = None, pos: int | None = None) -> bool:
            if show is None:
                return bool(super().display(msg, pos))
            show(str(self) if msg is None else msg)
            return False  # tells tqdm that nothing was written to its file

    output = {"file": sys.stderr} if show is None else {"file": io.StringIO(), "ascii": False}
    style = {"bar_format": f"{line} {{bar:20}}", "leave": False, "delay": DELAY, "mininterval": INTERVAL, "miniters": 1}
    with Bar(total=count, initial=done, position=0, **output, **style) as bar:
        yield bar.update


@contextmanager
def progress_if_long(line: str, count: int) -> Iterator[Callable[..., object]]:
    """As ``progress``, for quick parts: with fewer than ``MIN_COUNT`` of them, not even tqdm is imported."""
    if count < MIN_COUNT:
        yield _ignore_tick
        return
    with progress(line, count) as tick:
        yield tick


def _ignore_tick(parts: int = 1) -> None:
    """Do nothing after a part, as nothing is shown."""


@contextmanager
def show_progress_with(show: ShowLine) -> Iterator[None]:
    """Show all progress within a ``with`` block by calling ``show``."""
    token = _show_line.set(show)
    try:
        yield
    finally:
        _show_line.reset(token)


def _is_terminal(stream: Any) -> bool:
    """Whether ``stream`` writes to a terminal. It is None in a program without a console."""
    try:
        return stream is not None and bool(stream.isatty())
    except (OSError, ValueError):  # the stream is closed
        return False


def _make_notebook_line() -> ShowLine | None:
    """Return a function that shows a line below the notebook cell; None outside a notebook."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import display

    if not hasattr(get_ipython(), "kernel"):
        return None
    handle: Any = None

    def show(line: str) -> None:
        nonlocal handle
        data = {"text/plain": line} if line else {}
        if handle is None:
            handle = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            handle.update(data, raw=True)

    return show
