"""Record runs of one function from the same random state, each with other hooks switched off."""

import random
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from hookviz.recorder.exception_tracker import exception_text
from hookviz.recorder.options import RecordOptions
from hookviz.recorder.record_entry import new_recording
from hookviz.recorder.recording import Recording
from hookviz.recorder.torch_patches import start_observing, stop_observing
from hookviz.support.interpreter import Uninterrupted
from hookviz.trace import Note, TraceData
from hookviz.what_if.switches import HookId, Switches


@dataclass
class RecordedRun:
    """One recorded run of the function."""

    trace: TraceData
    hook_ids: Mapping[int, HookId]
    """A hook's key in its dict → the id of its registration."""
    error: str | None
    """The exception that the function raised, as text."""
    exception: Exception | None = None
    """The exception itself, if nothing was recorded; otherwise None, since its frames hold the tensors of the run."""

    @property
    def hooks(self) -> dict[int, HookId]:
        """Row of a hook in the trace → its id, for the hooks that were registered while the function ran."""
        keys: list[Any] = [row.key for row in self.trace.hook_rows]
        return {i: self.hook_ids[key] for i, key in enumerate(keys) if key in self.hook_ids}


def run_once(function: Callable[..., Any], given: Mapping[str, float], off: Collection[HookId] = ()) -> RecordedRun:
    """Record ``function`` without the hooks in ``off``. If it raises, keep the error as text, and the trace so far."""
    recording, switches = new_recording(RecordOptions()), Switches(off)
    exception: Exception | None = None
    # Not a ``with``: an interrupt may come between the end of its block and the first line of ``__exit__``.
    try:
        start_observing(recording)
        switches.replace()
        try:
            function(**given)
        except Exception as caught:  # without some hooks the pass may fail
            exception = caught
    finally:
        try:
            _restore_torch(recording, switches)
        except KeyboardInterrupt:  # it may have come before the first line of ``_restore_torch``
            _restore_torch(recording, switches)
            raise
    recording.trace.expand()
    trace, error = recording.trace, None if exception is None else exception_text(exception)
    if error is not None and not any(row.kind == "exception" for row in trace.rows):
        trace.remarks.append(Note.of("whatif.raised", error=error))
    run = RecordedRun(trace, switches.hook_ids, error, None if trace.rows else exception)
    exception = None  # else its traceback and this frame are a reference cycle until the next garbage collection
    return run


def _restore_torch(recording: Recording, switches: Switches) -> None:
    """Restore torch's functions and remove the hooks of a run. Calling it twice is safe."""
    with Uninterrupted():
        switches.restore()
        stop_observing(recording)
        switches.clear()


def fixed_rng() -> Callable[[], None]:
    """Return a function that restores the current state of the random number generators in use."""
    states: list[tuple[Callable[[Any], Any], Any]] = [
        (random.setstate, random.getstate()),
        (torch.random.set_rng_state, torch.random.get_rng_state()),
    ]
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states.append((numpy.random.set_state, numpy.random.get_state()))

    def restore_rng() -> None:
        for set_state, state in states:
            set_state(state)

    return restore_rng
