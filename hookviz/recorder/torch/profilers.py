"""Hides hookviz from a profiler that follows each Python call, as ``torch.profiler.profile(with_stack=True)`` does."""

import ctypes
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch.autograd.profiler as profiler

# Python's own way to suspend tracing. These are no functions in Python or of a C module: calling them is no event.
this_thread: Any = ctypes.pythonapi.PyThreadState_Get
this_thread.restype, this_thread.argtypes = ctypes.c_void_p, []
pause: Any = ctypes.pythonapi.PyThreadState_EnterTracing
resume: Any = ctypes.pythonapi.PyThreadState_LeaveTracing
pause.restype = resume.restype = None
pause.argtypes = resume.argtypes = [ctypes.c_void_p]


def follows_python_calls() -> bool:
    """Return whether a profiler of torch's runs and one follows each Python call of this thread."""
    return profiler._is_profiler_enabled and sys.getprofile() is not None


def unprofiled(act: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``act``: while a profiler of torch's runs, only the frame of the wrapper is an event, and nothing inside."""

    def unprofiled(*arguments: Any, **options: Any) -> Any:
        if not profiler._is_profiler_enabled:  # read without a call, which would be an event
            return act(*arguments, **options)
        thread = this_thread()
        pause(thread)
        try:
            return act(*arguments, **options)
        finally:
            resume(thread)

    return unprofiled


def with_code_of_torch(restore: Callable[[], None], instrument: Callable[[], None]) -> Callable[[Any, Any], Any]:
    """Return a factory that wraps the function that starts a profiler: it runs while torch has its own code back.

    To tell calls of modules, a profiler that follows Python calls keeps the code of ``Module.__call__``, for good, that
    it finds at the first Python call of the process's first profile.
    """

    def make(start: Callable[..., Any], active: Any) -> Callable[..., Any]:
        @wraps(start)
        def start_with_code_of_torch(*arguments: Any, **options: Any) -> Any:
            if not active.on:
                return start(*arguments, **options)
            restore()
            try:
                result = start(*arguments, **options)
                _be_called()
            finally:
                unprofiled(instrument)()
            return result

        return start_with_code_of_torch

    return make


def _be_called() -> None:
    """Be the first Python call of a profile."""
