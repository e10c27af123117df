"""A progress bar for work that takes longer than a second, in a terminal or in Jupyter.

tqdm makes the bar. In a terminal it also shows and clears it. In Jupyter we show it ourselves, since tqdm would leave
an error (its widget) or a red band (its text) in the saved notebook.
"""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ShowLine = Callable[[str], None]
"""A function that shows a line in place of the previous one; an empty line clears it."""

DELAY = 1.0
"""In seconds: how long the work runs before a bar appears."""
INTERVAL = 0.1
"""In seconds: the shortest time between two updates of a bar."""


@contextmanager
def progress(line: str, count: int, done: int = 0) -> Iterator[Callable[..., object]]:
    """Show the progress of ``count`` parts of work, of which ``done`` are already finished.

    Yields a function to call after each part, or with 10 after ten parts. ``line`` is the text of the bar, with ``{n}``
    and ``{total}`` in it.

    >>> with progress("{n} of {total}", 2) as tick:
    ...     tick()  # shows nothing within the first second
    """
    show = _make_notebook_line()
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


def _ignore_tick(parts: int = 1) -> None:
    """Do nothing after a part, as nothing is shown."""


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
