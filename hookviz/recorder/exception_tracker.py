"""Which exceptions a step names already, so that each is named once, where it came up."""

import threading

from hookviz.support.printable import truncate

LONGEST = 300
"""How many letters of an exception's text are kept."""


class ExceptionTracker:
    """Knows, for each thread, the exception that is on its way, without holding it.

    A number is all there is to know an exception by, and a later exception may get the same: so whatever begins (a
    module call, a pass, an optimizer's step) starts from nothing, and gives back what it found when it ends well.
    """

    def __init__(self) -> None:
        self._on_the_way: dict[int, int] = {}

    def enter(self) -> int | None:
        """Something begins; what ``leave`` is to be given."""
        return self._on_the_way.pop(threading.get_ident(), None)

    def leave(self, before: int | None) -> None:
        """It ended well: an exception that was on its way when it began still is."""
        if before is not None:
            self._on_the_way[threading.get_ident()] = before

    def is_new(self, error: BaseException) -> bool:
        """Whether no step names ``error`` yet; from now on one does."""
        here = threading.get_ident()
        new = self._on_the_way.get(here) != id(error)
        self._on_the_way[here] = id(error)
        return new


def exception_text(error: BaseException) -> str:
    """An exception in a line: its kind and what it says, if it can say it.

    >>> exception_text(KeyError("x")), exception_text(ValueError())
    ("KeyError: 'x'", 'ValueError')
    >>> exception_text(ValueError("x" * 1000))[-3:]
    'xx…'
    """
    kind = type(error).__name__
    try:
        return truncate(f"{kind}: {error}".strip().rstrip(":"), LONGEST)
    except Exception:  # the exception is a person's, and so is the code that makes its text
        return kind
