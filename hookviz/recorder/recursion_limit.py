"""Room on the stack for code of ours that runs where a person's program has come close to the recursion limit."""

import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

EXTRA_CALLS = 200
"""So many calls deeper than the program itself our own code may go."""
_NEAR_LIMIT = 3
"""From this part of the limit on the end may be near: up to three of the calls that count are no Python frames."""
_NO_CHANGE = nullcontext()


class RecursionHeadroom:
    """Raises the recursion limit while somebody takes it, for all threads at once as Python does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._takers = 0
        self._before: int | None = None

    def if_needed(self) -> AbstractContextManager[Any]:
        """This, where the caller may be near the limit or the limit could not be put back yet; nothing elsewhere."""
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
            self._takers = max(self._takers - 1, 0)  # after an interrupt somebody may leave twice
            if not self._takers and self._before is not None:
                try:
                    sys.setrecursionlimit(self._before)
                except RecursionError:  # we are beyond it: the next one who leaves, further up, will do it
                    return
                self._before = None

    def close(self) -> None:
        """Nobody is left who takes it, whatever interrupted those who did."""
        self._takers = 0
        self.__exit__()


HEADROOM = RecursionHeadroom()
"""The limit is one for all."""
