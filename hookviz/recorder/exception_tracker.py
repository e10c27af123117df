"""Remembers which exceptions have a step already, so that each gets one step, where it was raised."""

import threading
import traceback
from typing import Any

from hookviz.autograd.variable_names import find_code_place, is_library_file
from hookviz.support.source_code import shorten_filename
from hookviz.support.terminal_text import truncate
from hookviz.support.wrapped_functions import is_installed_file

MAX_LETTERS = 300
"""Longer exception texts are truncated to this many letters."""


class ExceptionTracker:
    """Remembers the propagating exception of each thread, without holding it.

    An exception is identified by its ``id``, which a later exception may reuse. So each unit of work (a module call, a
    pass, an optimizer step) starts with an empty record, and restores the earlier one when it ends well.
    """

    def __init__(self) -> None:
        self._propagating: dict[int, int] = {}

    def enter(self) -> int | None:
        """Begin a unit of work. The return value goes to ``leave``."""
        return self._propagating.pop(threading.get_ident(), None)

    def leave(self, before: int | None) -> None:
        """End a unit of work that ended well: the exception that was propagating before it still is."""
        if before is not None:
            self._propagating[threading.get_ident()] = before

    def is_new(self, error: BaseException) -> bool:
        """Return whether no step names ``error`` yet, and mark it as named."""
        here = threading.get_ident()
        new = self._propagating.get(here) != id(error)
        self._propagating[here] = id(error)
        return new


def exception_text(error: BaseException) -> str:
    """Describe an exception in one line: its type and its message, if the message can be computed.

    >>> exception_text(KeyError("x")), exception_text(ValueError())
    ("KeyError: 'x'", 'ValueError')
    >>> exception_text(ValueError("x" * 1000))[-3:]
    'xx…'
    """
    kind = type(error).__name__
    try:
        return truncate(f"{kind}: {error}".strip().rstrip(":"), MAX_LETTERS)
    except Exception:  # an exception class of the user's runs its own code to make the text
        return kind


def describe_exception(error: BaseException) -> dict[str, Any]:
    """Return the fields of a step about an exception: its text, and the line of the user's code that raised it."""
    return {"error": exception_text(error), "raised_at": _find_raising_line(error)}


def _find_raising_line(error: BaseException) -> str | None:
    """Return the innermost line of the user's own code in the traceback; without any, the line that is running.

    The traceback of an exception that torch has just raised has no frame of the user's yet: the line that called torch,
    such as that of ``backward()``, is still running.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [(file, line) for file, line in frames if not (is_library_file(file) or is_installed_file(file))]
    if not own:
        return find_code_place()
    file = shorten_filename(own[-1][0])
    return None if file is None else f"{file}:{own[-1][1]}"
