"""Running one function again and again under the same circumstances, each time with other hooks switched off."""

import random
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch

from hookviz.api.trace import Trace
from hookviz.recorder.exception_tracker import exception_text
from hookviz.recorder.record_function import begin, end, new_recording
from hookviz.recorder.recording import Recording
from hookviz.support.interrupts import Uninterrupted
from hookviz.trace import Note
from hookviz.what_if.switches import HookId, Switches

ALL = 5
"""For up to so many hooks every combination is recorded: 32 passes. For more, each hook off alone."""
MOST = 40
"""No more hooks than this can be switched: each is a pass to record."""


@dataclass
class Run:
    """One recorded run of the function."""

    trace: Trace
    signs: Mapping[int, HookId]
    """A hook's key in its dict → which registration it was."""
    error: str | None
    """What it raised, in words."""
    raised: Exception | None = None
    """The exception itself where nothing was recorded; its frames hold what ran."""

    @property
    def hooks(self) -> dict[int, HookId]:
        """The hooks in the trace (by their rows) that were registered while the function ran."""
        return {i: self.signs[row.key] for i, row in enumerate(self.trace.hook_rows) if row.key in self.signs}


def run_once(function: Callable[..., Any], given: Mapping[str, float], off: Collection[HookId] = ()) -> Run:
    """Record ``function`` with the hooks in ``off`` left out. What it raises is kept as text, with the trace so far."""
    recording, switches = new_recording(), Switches(off)
    raised: Exception | None = None
    # No ``with``: an interrupt may come between the end of its block and the first line of what ends it.
    try:
        begin(recording)
        switches.replace()
        try:
            function(**given)
        except Exception as ended:  # a hook may be what keeps the pass from failing
            raised = ended
    finally:
        try:
            _undo(recording, switches)
        except KeyboardInterrupt:  # it may have come before the first line
            _undo(recording, switches)
            raise
    trace, error = recording.trace, None if raised is None else exception_text(raised)
    if error is not None and not any(row.kind == "exception" for row in trace.rows):
        trace.remarks.append(Note.of("whatif.raised", error=error))
    run = Run(trace, switches.signs, error, None if trace.rows else raised)
    raised = None  # or its frames, of which this is one, would stay until somebody collects them
    return run


def _undo(recording: Recording, switches: Switches) -> None:
    """Put back and remove what a run has left in torch; calling it twice does no harm."""
    with Uninterrupted():
        switches.restore()
        end(recording)
        switches.clear()


def subsets(count: int) -> list[frozenset[int]]:
    """Which hooks to switch off together: none first, and then everything else that is recorded.

    >>> [sorted(off) for off in subsets(2)]
    [[], [0], [1], [0, 1]]
    >>> len(subsets(5)), len(subsets(6))
    (32, 7)
    """
    most = count if count <= ALL else 1
    return [frozenset(off) for size in range(most + 1) for off in combinations(range(min(count, MOST)), size)]


def fixed_rng() -> Callable[[], None]:
    """A function that puts the random number generators back to where they are now."""
    before = _generators()

    def again() -> None:
        for put, state in before:
            put(state)

    return again


def _generators() -> list[tuple[Callable[[Any], Any], Any]]:
    found: list[tuple[Callable[[Any], Any], Any]] = [
        (random.setstate, random.getstate()),
        (torch.random.set_rng_state, torch.random.get_rng_state()),
    ]
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        found.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found.append((numpy.random.set_state, numpy.random.get_state()))
    return found
