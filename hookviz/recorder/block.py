"""What ``record()`` returns: a block for a ``with`` statement, which says so to whoever uses it in another way."""

import warnings
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, overload

from hookviz.api.trace import Trace
from hookviz.autograd import graph
from hookviz.support.messages import say
from hookviz.support.warning import HookvizWarning

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

Exit = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]
"""What a ``with`` statement calls in the end."""


class _ExitOfBlock:
    """Gives each ``with`` statement an ``__exit__`` that nobody else holds, so that its end can be seen.

    An interrupt can come before the first line of any ``__exit__``, and a traceback that is kept (by Jupyter, in
    ``sys.last_value``) then holds the block for good. It does not hold this: Python's ``with`` asks for ``__exit__``
    before it enters, keeps the answer where no variable leads, and lets go of it however the statement ends.
    """

    @overload
    def __get__(self, block: None, owner: type) -> Callable[..., None]: ...
    @overload
    def __get__(self, block: "RecordBlock", owner: type) -> Exit: ...
    def __get__(self, block: "RecordBlock | None", owner: type) -> Callable[..., None]:
        """``__exit__`` of a block; without one, as ``contextlib.ExitStack`` asks, the function behind it."""
        if block is None:
            return _leave
        given = partial(_leave, block)  # in C: its own call adds no frame that would hold it
        block.asked(given)
        return given


def _leave(
    block: "RecordBlock", kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
) -> None:
    """The block is over; what was raised in it goes on."""
    try:
        block.end()
    except KeyboardInterrupt:  # it may have come before the first line
        block.end()
        raise


class RecordBlock:
    """A recording that begins where a ``with`` statement enters it, once."""

    __exit__ = _ExitOfBlock()

    def __init__(
        self,
        make: Callable[[], "Recording"],
        begin: Callable[["Recording"], None],
        end: Callable[["Recording"], None],
    ) -> None:
        self._make, self._begin, self._end = make, begin, end
        self._exit: weakref.ref[Exit] | None = None
        self._open: weakref.finalize[..., Any] | None = None
        """Ends the recording; called at the latest when the ``with`` statement is gone."""
        self._entered = False
        frame = graph.caller_frame()
        where = frame.f_code.co_filename, frame.f_lineno
        self._unused = weakref.finalize(self, _warn, *where)

    def __enter__(self) -> Trace:
        self._unused.detach()
        if self._entered:
            raise RuntimeError(say("error.record.again"))
        self._entered = True
        recording = self._make()
        # Entered by hand, it is open until somebody calls ``__exit__``, or as long as there is the block.
        owner: object = (None if self._exit is None else self._exit()) or self
        recording.within = weakref.ref(owner)
        self._open = weakref.finalize(owner, self._end, recording)
        self._open.atexit = False
        try:
            self._begin(recording)
        except BaseException:
            self.end()
            raise
        return recording.trace

    def asked(self, given: Exit) -> None:
        """Somebody asked for ``__exit__`` and got ``given``: a ``with`` statement, if it was before it is entered."""
        if not self._entered:
            self._exit = weakref.ref(given)

    def end(self) -> None:
        """End the recording, if it has begun; to do it twice does no harm."""
        opened = self._open
        known = None if opened is None else opened.peek()
        if opened is not None and known is not None:
            _, act, given, _ = known
            act(*given)
            opened.detach()  # only now: whatever interrupts, it still ends with its ``with`` statement

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
