"""A progress bar for what takes longer than a second: in a terminal, in Jupyter, or beside a slider.

The bar is tqdm's; where it is shown is ours. In a terminal tqdm shows and clears it by itself. In Jupyter tqdm leaves
something in a saved notebook: its widget becomes an error, its line a red band.
"""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Show = Callable[[str], None]
"""Shows a line in the place of the one before; an empty one takes it away."""

DELAY = 1.0
"""Seconds until a bar is shown."""
PAUSE = 0.1
"""Seconds from one line to the next, at least."""
MANY = 20_000
"""Fewer parts, each of which takes no time to speak of, are done within a second."""

_place: ContextVar[Show | None] = ContextVar("_place", default=None)


@contextmanager
def progress(line: str, count: int, done: int = 0) -> Iterator[Callable[..., object]]:
    """Gives a function to be called after each of ``count`` parts, or with 10 after ten; some may be ``done``.

    ``line`` says in words what is done, with ``{n}`` and ``{total}`` in it.

    >>> with shown_by(print), progress("{n} of {total}", 2) as tick:
    ...     tick()  # within a second
    """
    show = _place.get() or _in_notebook()
    if show is None and not _is_terminal(sys.stderr):
        yield _nothing
        return
    from tqdm.std import tqdm  # only now: hookviz is imported more often than somebody waits

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no thread of its own

        def display(self, msg: str | None = None, pos: int | None = None) -> bool:
            if show is None:
                return bool(super().display(msg, pos))
            show(str(self) if msg is None else msg)
            return False  # nothing was written to its file

    place = {"file": sys.stderr} if show is None else {"file": io.StringIO(), "ascii": False}
    look = {"bar_format": f"{line} {{bar:20}}", "leave": False, "delay": DELAY, "mininterval": PAUSE, "miniters": 1}
    with Bar(total=count, initial=done, position=0, **place, **look) as bar:
        yield bar.update


@contextmanager
def maybe(line: str, count: int) -> Iterator[Callable[..., object]]:
    """As ``progress``, for parts that are quickly done: fewer than ``MANY`` do not even load tqdm."""
    if count < MANY:
        yield _nothing
        return
    with progress(line, count) as tick:
        yield tick


def _nothing(parts: int = 1) -> None:
    """Shows nothing."""


@contextmanager
def shown_by(show: Show) -> Iterator[None]:
    """Within this, progress is shown by ``show``."""
    token = _place.set(show)
    try:
        yield
    finally:
        _place.reset(token)


def _is_terminal(stream: Any) -> bool:
    """Whether somebody sees what is written to ``stream``, which is None in a program without a console."""
    try:
        return stream is not None and bool(stream.isatty())
    except (OSError, ValueError):  # it is closed
        return False


def _in_notebook() -> Show | None:
    """Shows a line below the cell; an output without content stays in its place."""
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
