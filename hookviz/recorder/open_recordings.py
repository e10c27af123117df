"""Which recordings are open, and which of them follows what the calling thread does."""

import threading
from typing import TYPE_CHECKING

from hookviz.recorder.session import is_engine_thread, is_outermost

if TYPE_CHECKING:
    from hookviz.recorder.followers.optimizer_steps import OptimizerTracker
    from hookviz.recorder.recording import Recording

recordings_by_thread: dict[int, "Recording | None"] = {}
"""Thread → the recording that it began; None in a compiled region."""
open_recordings: set["Recording"] = set()
"""Recordings that have begun and not ended. While there is one, torch's functions are replaced."""


def recording_here() -> "Recording | None":
    """Return the recording that the calling thread began, or in a thread of the engine that of the pass in it."""
    thread = threading.get_ident()
    if thread in recordings_by_thread:
        return recordings_by_thread[thread]
    is_in_pass = bool(open_recordings) and is_engine_thread() and not is_outermost()
    return next(
        (one for one in tuple(open_recordings) if is_in_pass and one.session.passes.current() is not None), None
    )


def own_recording() -> "Recording | None":
    """Return the recording that the calling thread began."""
    recording = recording_here()
    return recording if recording is not None and recording.thread == threading.get_ident() else None


def recording_before_pass() -> "Recording | None":
    """Return the recording that follows the calling thread before a pass, if it records the next pass."""
    recording = recording_here()
    return recording if recording is not None and recording.sampler.is_recording() else None


def recording_after_pass() -> "Recording | None":
    """Return the recording that follows the calling thread after a pass, if it recorded that pass."""
    recording = recording_here()
    return recording if recording is not None and recording.sampler.was_recorded() else None


def optimizer_tracker_here() -> "OptimizerTracker | None":
    """Return the tracker of the calling thread's optimizer steps, or None if they are not recorded."""
    recording = own_recording()
    return recording.optimizers if recording is not None and recording.optimizers.is_following() else None


def give_way() -> "Recording":
    """Let the recording that the calling thread has just begun end if the program begins one itself; return it."""
    recording = own_recording()
    assert recording is not None
    recording.gives_way = True
    return recording
