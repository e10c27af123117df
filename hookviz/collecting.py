"""Python's search for cycles, put off while very many objects are made that all stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unsearched() -> Iterator[None]:
    """Let nothing be searched for inside: of ten thousand nodes it would be a third of the time.

    >>> with unsearched():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
