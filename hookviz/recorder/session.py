"""What all parts of one recording share."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch

from hookviz.api.trace import Trace
from hookviz.autograd.tensor_statistics import hidden_from_tools
from hookviz.recorder.exception_tracker import ExceptionTracker
from hookviz.recorder.notes import Notes, warn
from hookviz.recorder.pass_sampler import PassSampler
from hookviz.trace import Note, StepRow


class Session(ABC):
    """The trace of a recording, one lock, its notes, and a guard around our own code.

    Each part of a recording gets it, and besides it the parts that it needs.
    """

    def __init__(self, trace: Trace, every: int) -> None:
        self.trace, self.thread = trace, threading.get_ident()
        self.lock = threading.RLock()
        """Several threads may call a model that was given: one at a time writes into the trace."""
        self.notices, self.raised, self.turns = Notes(trace), ExceptionTracker(), PassSampler(every)
        self.disturbed = False
        """Whether a node got a hook while a pass runs: the next observer sees to it that it is followed."""
        self._troubles: set[str | Note] = set()
        """What has been said of faults of our own: one sentence for all passes, and one for each module."""

    @abstractmethod
    def current(self) -> Any:
        """The pass of this recording in which the calling hook runs."""

    @abstractmethod
    def settle_down(self) -> None:
        """Stand in front of every node of the passes that run, since hooks have come up on the way."""

    # -- a guard around our own code

    def carefully(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Call one of our own functions; a fault in it must not reach the user."""
        try:
            with self.lock, torch._C.DisableTorchFunction(), hidden_from_tools():
                return act(*arguments)
        except Exception as error:
            self.trouble(error)
            return None

    def attempt(self, act: Callable[..., Any], *arguments: Any) -> None:
        """As ``carefully``, within it: what comes next is done even if this fails."""
        try:
            act(*arguments)
        except Exception as error:
            self.trouble(error)

    def trouble(self, error: Exception, module: str | None = None) -> None:
        """A fault of our own: said once, in a warning and in the trace, and never raised into the pass.

        ``module`` is called what could not be observed, if it was a call.
        """
        key = "trace.trouble" if module is None else "trace.trouble.call"
        which = {} if module is None else {"module": module}
        note = Note.of(key, error=f"{type(error).__name__}: {error}", **which)
        once = key if module is None else note
        if once not in self._troubles:
            self._troubles.add(once)
            self._unobserved(note)

    def _unobserved(self, note: Note) -> None:
        """Say what was not observed, here and among the notes; warn of it once."""
        self.trace.rows.append(StepRow(max(len(self.trace.roots) - 1, 0), "unobserved", note=note))
        if note not in self.trace.remarks:
            self.notices.add(note)
            warn(note.text)
