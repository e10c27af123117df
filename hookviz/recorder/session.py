"""The state that all components of one recording share: which passes it records, and which of them are running."""

import threading
from collections.abc import Callable
from typing import Any

from hookviz.autograd.tensor_statistics import hidden_from_tools
from hookviz.autograd.torch_internals import DisableTorchFunction, current_task
from hookviz.recorder.exception_tracker import ExceptionTracker
from hookviz.recorder.notes import Notes
from hookviz.support.interpreter import Uninterrupted
from hookviz.trace import HookIdentity, Note, StepRow, TraceData
from hookviz.trace.value_rows import VERY_MANY


class PassStack(list[Any]):
    """The running passes of one recording, the innermost last."""

    nodes_got_hooks = False
    """Whether a node got a hook during a pass, so that observers are needed in front of all nodes."""

    def current(self) -> Any:
        """Return the observer of the pass in which the calling hook runs, or None outside of all passes."""
        task: int = current_task()
        for running_pass in reversed(self):
            if running_pass.observer.task == task:
                return running_pass.observer
        thread = None if is_engine_thread() else threading.get_ident()
        for running_pass in reversed(self):
            if running_pass.observer.task is None and thread in (None, running_pass.thread):
                running_pass.observer.task = task
                return running_pass.observer
        return None

    def observe_all_nodes(self) -> None:
        """Put an observer in front of every node of every pass, because nodes got hooks."""
        self.nodes_got_hooks = False
        with Uninterrupted():
            for running_pass in self:
                running_pass.observe_all_nodes()


def is_engine_thread() -> bool:
    """Return whether this is one of the autograd engine's own threads (of a CUDA device, for example)."""
    return isinstance(threading.current_thread(), threading._DummyThread)


def is_outermost() -> bool:
    """Return whether a pass that begins here is a pass of its own, not part of a pass that is running."""
    task: int = current_task()
    return task == -1


class PassSampler:
    """Counts the passes. One that a hook or checkpointing starts is part of the enclosing one."""

    def __init__(self, every: int) -> None:
        self.every = every
        self._begun_passes = 0
        self._is_recorded = True
        """Whether the last pass is recorded."""
        self.pass_count = 0
        """How many passes have begun, recorded or not, with those that run inside another."""
        self.is_stopped = False
        """Whether nothing is recorded any more; what is running is recorded to its end."""
        self.is_paused = False
        """Whether nothing is recorded for now, between two steps of a training; such passes do not count."""

    def begin(self) -> bool:
        """Count a pass that begins in this thread, and return whether it is recorded."""
        if self.is_stopped or self.is_paused:
            return False
        self.pass_count += 1
        if is_outermost():
            self._is_recorded = self._begun_passes % self.every == 0
            self._begun_passes += 1
        return self._is_recorded

    def is_recording(self) -> bool:
        """Return whether a call belongs to a recorded pass: the running one, or else the next one.

        This runs at every module call, recorded or not.
        """
        if self.is_stopped or self.is_paused:
            return False
        if self.every == 1:
            return True
        return self._begun_passes % self.every == 0 if is_outermost() else self._is_recorded

    def was_recorded(self) -> bool:
        """Return whether the last pass is recorded; an optimizer step belongs to that pass."""
        return not (self.is_stopped or self.is_paused) and (self.every == 1 or self._is_recorded)

    def add_notes(self, notes: Notes) -> None:
        """Note how many passes were left out."""
        if self.every > 1 and self._begun_passes:
            recorded = -(-self._begun_passes // self.every)
            notes.say("every", every=self.every, recorded=recorded, begun=self._begun_passes)


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
        self.notes.warn(note)
        self.note_unobserved(note)

    def note_unobserved(self, note: Note) -> None:
        """Record what was not observed as a step and a note."""
        self.trace.rows.append(StepRow(max(len(self.trace.roots) - 1, 0), "unobserved", note=note))
        self.notes.add(note)
