"""The state that all components of one recording share."""

import threading
from collections.abc import Callable
from typing import Any

from hookviz.autograd.tensor_statistics import hidden_from_tools
from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.recorder.exception_tracker import ExceptionTracker
from hookviz.recorder.notes import Notes, warn_user
from hookviz.recorder.pass_sampler import PassSampler
from hookviz.recorder.pass_stack import PassStack
from hookviz.trace import HookIdentity, Note, StepRow, TraceData
from hookviz.trace.value_rows import VERY_MANY


class Session:
    """The trace of a recording, a lock, its notes, the running passes, and a guard around our own code.

    Each component of a recording gets it, along with the components that it needs.
    """

    def __init__(self, trace: TraceData, every: int) -> None:
        self.trace, self.thread = trace, threading.get_ident()
        self.lock = threading.RLock()
        """Only one thread at a time writes into the trace: on devices, the engine runs a pass in several."""
        self.notes, self.exceptions, self.sampler = Notes(trace), ExceptionTracker(), PassSampler(every)
        self.passes = PassStack()
        self.last_pass = 0
        """The last pass that began outside of all others: an optimizer step belongs to it."""
        self.unseen_firings: set[HookIdentity] = set()
        """The hooks that ran, or may have run, without a step."""
        self._reported: set[str | Note] = set()
        """The internal errors that have been reported: one for all passes, and one for each module."""

    def limit_statistics(self) -> None:
        """Before an outermost call or pass: with very many values, read only the norm of large tensors from now on."""
        if self.trace.statistics is None and len(self.trace.values) > VERY_MANY:
            self.trace.statistics = "norm"
            self.notes.say("statistics.many", most=f"{VERY_MANY:,}")

    def is_own_thread(self) -> bool:
        """Return whether the calling thread is the one that began the recording."""
        return threading.get_ident() == self.thread

    def guard(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Call one of our own functions, and report its exceptions instead of raising them to the user."""
        try:
            with self.lock, DisableTorchFunction(), hidden_from_tools():
                return act(*arguments)
        except Exception as error:
            self.report_internal_error(error)
            return None

    def attempt(self, act: Callable[..., Any], *arguments: Any) -> None:
        """Do the same as ``guard``, inside a guard: if this fails, the next action still runs."""
        try:
            act(*arguments)
        except Exception as error:
            self.report_internal_error(error)

    def report_internal_error(self, error: Exception, module: str | None = None) -> None:
        """Report an internal error once, in a warning and in the trace; it is never raised into the pass.

        ``module`` is the name of the module whose call could not be observed, if it was a call.
        """
        key = "trace.trouble" if module is None else "trace.trouble.call"
        module_name = {} if module is None else {"module": module}
        note = Note.of(key, error=f"{type(error).__name__}: {error}", **module_name)
        identity = key if module is None else note
        if identity not in self._reported:
            self._reported.add(identity)
            self.report_unobserved(note)

    def report_unobserved(self, note: Note) -> None:
        """Record what was not observed as a step and a note, and warn of it once."""
        if note not in self.trace.remarks:
            warn_user(note.text)
        self.note_unobserved(note)

    def note_unobserved(self, note: Note) -> None:
        """Record what was not observed as a step and a note."""
        self.trace.rows.append(StepRow(max(len(self.trace.roots) - 1, 0), "unobserved", note=note))
        self.notes.add(note)
