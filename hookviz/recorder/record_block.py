"""The object that ``record()`` returns: a block for a ``with`` statement.

Any other use of it raises or warns.
"""

import warnings
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, overload

from hookviz.api.trace import Trace
from hookviz.autograd import variable_names
from hookviz.support.messages import say
from hookviz.support.warning import HookvizWarning

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

Exit = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]
"""The function that a ``with`` statement calls at its end."""


class _ExitDescriptor:
    """Gives each ``with`` statement its own ``__exit__``, so that hookviz notices when the statement is gone.

    An interrupt can come before the first line of any ``__exit__``, and a traceback that is kept (by Jupyter, in
    ``sys.last_value``) then holds the block forever. It does not hold this ``__exit__``: Python's ``with`` fetches it
    before it enters, keeps it where no variable refers to it, and drops it however the statement ends.
    """

    @overload
    def __get__(self, block: None, owner: type) -> Callable[..., None]: ...
    @overload
    def __get__(self, block: "RecordBlock", owner: type) -> Exit: ...
    def __get__(self, block: "RecordBlock | None", owner: type) -> Callable[..., None]:
        """Return the ``__exit__`` of a block.

        Without a block, as ``contextlib.ExitStack`` asks, return the plain function.
        """
        if block is None:
            return _exit_block
        exit_function = partial(_exit_block, block)  # a C object: calling it adds no frame that would hold it
        block.exit_requested(exit_function)
        return exit_function


def _exit_block(
    block: "RecordBlock", kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
) -> None:
    """End the block. An exception that was raised in it propagates, after the file of ``on_trouble`` is written."""
    try:
        block.end()
    except KeyboardInterrupt:  # it may come before the first line of ``end``
        block.end()
        raise
    block.write_exception(error)


class RecordBlock:
    """A recording that begins when a ``with`` statement enters it. It can be entered once."""

    __exit__ = _ExitDescriptor()

    def __init__(
        self,
        make: Callable[[], "Recording"],
        begin: Callable[["Recording"], None],
        end: Callable[["Recording"], None],
    ) -> None:
        self._make, self._begin, self._end = make, begin, end
        self._exit: weakref.ref[Exit] | None = None
        self._finalizer: weakref.finalize[..., Any] | None = None
        """Ends the recording; called at the latest when the ``with`` statement is gone."""
        self._write_exception: Callable[[BaseException], None] | None = None
        self._entered = False
        frame = variable_names.caller_frame()
        location = frame.f_code.co_filename, frame.f_lineno
        self._unused = weakref.finalize(self, _warn_unused, *location)

    def __enter__(self) -> Trace:
        self._unused.detach()
        if self._entered:
            raise RuntimeError(say("error.record.again"))
        self._entered = True
        recording = self._make()
        self._write_exception = recording.write_exception
        # Entered by hand, the recording is open until somebody calls ``__exit__`` or the block is freed.
        owner: object = (None if self._exit is None else self._exit()) or self
        recording.with_statement = weakref.ref(owner)
        self._finalizer = weakref.finalize(owner, self._end, recording)
        self._finalizer.atexit = False
        try:
            self._begin(recording)
        except BaseException:
            self.end()
            raise
        return recording.trace

    def exit_requested(self, exit_function: Exit) -> None:
        """Remember ``exit_function``, which was handed out as ``__exit__``.

        If the block has not been entered yet, a ``with`` statement asked for it.
        """
        if not self._entered:
            self._exit = weakref.ref(exit_function)

    def end(self) -> None:
        """End the recording if it has begun. Calling it twice is safe."""
        finalizer = self._finalizer
        pending = None if finalizer is None else finalizer.peek()
        if finalizer is not None and pending is not None:
            _, end, arguments, _ = pending
            end(*arguments)
            finalizer.detach()  # after ``end``: if that is interrupted, the end of the ``with`` statement repeats it

    def write_exception(self, error: BaseException | None) -> None:
        """Write the file that ``record(on_trouble=...)`` asks for, if ``error`` left the block."""
        write, self._write_exception = self._write_exception, None
        if error is not None and write is not None:
            write(error)

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse to be used as a decorator, since nobody would get the trace.

        Raises:
            TypeError: always.
        """
        self._unused.detach()
        raise TypeError(say("error.record.decorator"))

    def __repr__(self) -> str:
        return say("record.entered" if self._entered else "record.unused")


def _warn_unused(file: str, line: int) -> None:
    """Warn that a block was never entered. ``weakref.finalize`` calls this, also when a script ends."""
    warnings.warn_explicit(say("record.unused"), HookvizWarning, file, line)
