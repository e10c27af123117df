"""What ``record()`` returns: a block for a ``with`` statement, which says so to whoever uses it in another way."""

import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from types import TracebackType
from typing import Any, NoReturn, ParamSpec

from hookviz import graph
from hookviz.recorder.notices import HookvizWarning
from hookviz.trace import Trace
from hookviz.words import say

P = ParamSpec("P")


class Block:
    """A recording that begins where a ``with`` statement enters it, once."""

    def __init__(self, manager: AbstractContextManager[Trace]) -> None:
        self._manager = manager
        self._entered = False
        frame = graph.caller()
        where = frame.f_code.co_filename, frame.f_lineno
        self._unused = weakref.finalize(self, _warn, *where)

    def __enter__(self) -> Trace:
        self._unused.detach()
        if self._entered:
            raise RuntimeError(say("error.record.again"))
        self._entered = True
        return self._manager.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._manager.__exit__(kind, error, traceback)

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse to be a decorator: nobody would get the trace.

        Raises:
            TypeError: always.
        """
        self._unused.detach()
        raise TypeError(say("error.record.decorator"))

    def __repr__(self) -> str:
        return say("record.entered" if self._entered else "record.unused")


def _warn(file: str, line: int) -> None:
    """Say that nobody entered a block; ``weakref.finalize`` calls this also where a script ends."""
    warnings.warn_explicit(say("record.unused"), HookvizWarning, file, line)


def with_block(function: Callable[P, Iterator[Trace]]) -> Callable[P, Block]:
    """Make a generator function one that returns a ``Block``, as ``contextlib.contextmanager`` makes it a manager."""
    manager = contextmanager(function)

    @wraps(function)
    def made(*args: P.args, **kwargs: P.kwargs) -> Block:
        return Block(manager(*args, **kwargs))

    return made
