"""Gives our code headroom on the stack where the user's program is close to the recursion limit."""

import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

EXTRA_CALLS = 200
"""How many calls deeper than the program our own code may go."""
_NEAR_LIMIT = 3
"""A stack deeper than this fraction of the limit may be near it: up to three calls count per Python frame."""
_NO_CHANGE = nullcontext()


class RecursionHeadroom:
    """Raises the recursion limit while somebody is in its ``with`` block; Python has one limit for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._takers = 0
        self._before: int | None = None

    def if_needed(self) -> AbstractContextManager[Any]:
        """Return this context manager if the caller may be near the limit, or the limit is still raised.

        Else a no-op.
        """
        try:
            sys._getframe(sys.getrecursionlimit() // _NEAR_LIMIT)
        except ValueError:  # the stack is not that deep
            return _NO_CHANGE if self._before is None else self
        return self

    def __enter__(self) -> None:
        with self._lock:
            self._takers += 1
            if self._before is None:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(self._before + EXTRA_CALLS)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._takers = max(self._takers - 1, 0)  # after an interrupt ``__exit__`` may run twice
            if not self._takers and self._before is not None:
                try:
                    sys.setrecursionlimit(self._before)
                except RecursionError:  # the stack is deeper than that limit: a later exit, further up, restores it
                    return
                self._before = None

    def close(self) -> None:
        """Restore the limit, whatever interrupted those who raised it."""
        self._takers = 0
        self.__exit__()


HEADROOM = RecursionHeadroom()
"""The recursion limit is shared, and so is this."""
