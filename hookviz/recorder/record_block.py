"""The object that ``record()`` returns: a block for a ``with`` statement.

Any other use of it raises or warns.
"""

import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from hookviz.api.trace import Trace
from hookviz.autograd import variable_names
from hookviz.support.messages import N_, _
from hookviz.trace.notes import HookvizWarning

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

_UNUSED_BLOCK = N_(
    "Nothing is recorded: record() only records in a with block. Write: with hv.record(net) as "
    "trace: and call the model in the block."
)


class RecordBlock:
    """A recording that begins when a ``with`` statement enters it. It can be entered once.

    It ends at the latest when the block is freed: entered by hand, it may never be left, and Ctrl-C may come before the
    first line of ``__exit__``.
    """

    def __init__(
        self,
        make: Callable[[], "Recording"],
        begin: Callable[["Recording"], None],
        end: Callable[["Recording"], None],
    ) -> None:
        self._make, self._begin, self._end = make, begin, end
        self._finalizer: weakref.finalize[..., Any] | None = None
        self._write_exception: Callable[[BaseException], None] | None = None
        self._note_exception: Callable[[BaseException], None] | None = None
        self._entered = False
        frame = variable_names.caller_frame()
        location = frame.f_code.co_filename, frame.f_lineno
        self._unused = weakref.finalize(self, _warn_unused, *location)

    def __enter__(self) -> Trace:
        self._unused.detach()
        if self._entered:
            raise RuntimeError(
                _("This recording has been used: call record() again, as in: with hv.record(net) as trace:")
            )
        self._entered = True
        recording = self._make()
        self._write_exception, self._note_exception = recording.write_exception, recording.note_exception
        self._finalizer = weakref.finalize(self, self._end, recording)
        self._finalizer.atexit = False
        try:
            self._begin(recording)
        except BaseException:
            self.end()
            raise
        return Trace(recording.trace)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the recording. An exception that was raised in the block propagates, after ``on_trouble`` is written."""
        try:
            self.end(error)
        except KeyboardInterrupt:  # it may come before the first line of ``end``
            self.end()
            raise
        self.write_exception(error)

    def end(self, error: BaseException | None = None) -> None:
        """End the recording if it has begun, because of ``error`` if there was one. Calling it twice is safe."""
        note, self._note_exception = self._note_exception, None
        if error is not None and note is not None:
            note(error)
        finalizer = self._finalizer
        pending = None if finalizer is None else finalizer.peek()
        if finalizer is not None and pending is not None:
            _ignored, end, arguments, _ignored = pending
            end(*arguments)
            finalizer.detach()  # after ``end``: if that is interrupted, the end of the block repeats it

    def write_exception(self, error: BaseException | None) -> None:
        """Write the file that ``record(on_trouble=...)`` asks for, if ``error`` left the block."""
        write, self._write_exception = self._write_exception, None
        if error is not None and write is not None:
            write(error)

    def __call__(self, *_ignored: Any, **__: Any) -> NoReturn:
        """Refuse to be used as a decorator, since nobody would get the trace.

        Raises:
            TypeError: always.
        """
        self._unused.detach()
        raise TypeError(
            _(
                "record() is not a decorator: you would never get the trace. Write: with hv.record(net) as "
                "trace: and call the function in the block."
            )
        )

    def __repr__(self) -> str:
        return (
            _(
                "This recording has started or ended. Its trace is the variable after 'as': with "
                "hv.record(net) as trace:"
            )
            if self._entered
            else _(_UNUSED_BLOCK)
        )


def _warn_unused(file: str, line: int) -> None:
    """Warn that a block was never entered. ``weakref.finalize`` calls this, also when a script ends."""
    warnings.warn_explicit(_(_UNUSED_BLOCK), HookvizWarning, file, line)
