"""Gives our code headroom on the stack where the user's program is close to the recursion limit."""

import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

EXTRA_CALLS = 200
"""How many calls deeper than the program our own code may go."""
_NEAR_LIMIT = 3
"""A stack deeper than the limit divided by this may be near it, since some counted calls have no Python frame."""
_NO_CHANGE = nullcontext()


class RecursionHeadroom:
    """Raises the recursion limit inside its ``with`` block; Python has one limit for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._old_limit: int | None = None

    def if_needed(self) -> AbstractContextManager[Any]:
        """Return this context manager if the limit may be near or is still raised, else one without effect."""
        try:
            sys._getframe(sys.getrecursionlimit() // _NEAR_LIMIT)
        except ValueError:  # the stack is not that deep
            return _NO_CHANGE if self._old_limit is None else self
        return self

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._old_limit is None:
                self._old_limit = sys.getrecursionlimit()
                sys.setrecursionlimit(self._old_limit + EXTRA_CALLS)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users = max(self._users - 1, 0)  # after an interrupt ``__exit__`` may run twice
            if not self._users and self._old_limit is not None:
                try:
                    sys.setrecursionlimit(self._old_limit)
                except RecursionError:  # the stack is deeper than that limit: a later exit, further up, restores it
                    return
                self._old_limit = None

    def close(self) -> None:
        """Restore the limit, whatever interrupted those who raised it."""
        self._users = 0
        self.__exit__()


HEADROOM = RecursionHeadroom()
"""The recursion limit is shared, and so is this."""
