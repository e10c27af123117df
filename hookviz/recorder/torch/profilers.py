"""Tells when a profiler of torch's follows each Python call, as ``torch.profiler.profile(with_stack=True)`` does."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch.autograd.profiler as profiler

from hookviz.autograd.torch_internals import PROFILER_STARTS, PROFILER_STOPS
from hookviz.recorder.torch.function_replacement import ActiveFlag, Replacement

_FOLLOWER = "TraceContext"
"""The class of what torch gives to Python to be told of each call in a thread."""


def follows_python_calls() -> bool:
    """Return whether a profiler of torch's follows each Python call of this thread."""
    return type(sys.getprofile()).__name__ == _FOLLOWER


def replace_switches(starts: Callable[[], None], stopped: Callable[[], None]) -> tuple[Replacement, Replacement]:
    """Return replacements that call ``starts`` before such a profiler starts, and ``stopped`` after any has stopped.

    Torch runs the two functions while it does not profile: what they call is in no profile.
    """

    def observe_start(start: Callable[[], None], active: ActiveFlag) -> Callable[[], None]:
        @wraps(start)
        def observed_start() -> None:
            settings: Any = sys._getframe(1).f_locals.get("self")
            if active.on and getattr(settings, "with_stack", False):
                starts()
            start()

        return observed_start

    def observe_stop(stop: Callable[[], None], active: ActiveFlag) -> Callable[[], None]:
        @wraps(stop)
        def observed_stop() -> None:
            stop()
            if active.on:
                stopped()

        return observed_stop

    return (
        Replacement(profiler, PROFILER_STARTS, observe_start),
        Replacement(profiler, PROFILER_STOPS, observe_stop),
    )
