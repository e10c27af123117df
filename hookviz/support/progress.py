"""How far something has come that takes longer than a second; when it is over, nothing of that is left."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Show = Callable[[str], None]
"""Shows a line in the place of the one before; an empty one takes it away."""

DELAY = 1.0
"""Nothing is shown of what is over within so many seconds."""
PAUSE = 0.1
"""Seconds from one line to the next, at least."""

_place: ContextVar[Show | None] = ContextVar("_place", default=None)


@contextmanager
def progress(line: str, count: int, done: int = 0) -> Iterator[Callable[..., None]]:
    """Gives a function to be called after each of ``count`` parts, or ``tick(10)`` after ten; some may be ``done``.

    ``line`` says in words what is done, with ``{n}`` and ``{total}`` in it. It is shown in a terminal and in Jupyter.

    >>> with shown_by(print), progress("{n} of {total}", 2) as tick:
    ...     tick()  # within a second
    """
    show = _place.get() or _in_notebook()
    if show is None and not _is_terminal(sys.stderr):
        yield lambda parts=1: None
        return
    from tqdm.std import tqdm  # only now: hookviz is imported more often than somebody waits

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no thread of its own

    look = {"bar_format": f"{line} {{bar:20}}", "leave": False, "delay": DELAY, "mininterval": PAUSE, "miniters": 1}
    file = sys.stderr if show is None else _Line(show)
    with Bar(total=count, initial=done, file=file, disable=None, position=0, **look) as bar:

        def tick(parts: int = 1) -> None:
            bar.update(parts)

        yield tick


MANY = 20_000
"""What has fewer parts, each of which takes no time to speak of, is over within a second."""


@contextmanager
def maybe(line: str, count: int) -> Iterator[Callable[..., None]]:
    """As ``progress``, for parts that are quickly done: of fewer than ``MANY`` nothing is shown."""
    if count < MANY:
        yield lambda parts=1: None
        return
    with progress(line, count) as tick:
        yield tick


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


class _Line:
    """What tqdm takes for a terminal."""

    encoding = "utf-8"

    def __init__(self, show: Show) -> None:
        self._show, self._shown = show, ""

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        """All is shown at once."""

    def write(self, text: str) -> None:
        line = text.strip()
        if line != self._shown:
            self._show(line)
        self._shown = line


def _in_notebook() -> Show | None:
    """Shows a line below the cell. Where it stood an output without content is kept, of which nobody sees anything.

    Not tqdm's own widget: Jupyter keeps that in a saved notebook, and shows an error in its place.
    """
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
