"""Notes the calls of torch's functions that clip gradients, and the norm that they found."""

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import torch

from hookviz.autograd import tensor_statistics
from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import clip_norm, clip_value
from hookviz.recorder.code_place import find_code_place
from hookviz.recorder.torch.compiled_regions import is_compiling
from hookviz.recorder.torch.function_replacement import Guarded
from hookviz.recorder.torch.instrumentation import Instrumented
from hookviz.trace import ClipRow, TraceData

MAX_CLIPS = 10_000
"""A trace holds up to this many calls."""


class Given(NamedTuple):
    """How many tensors a call was given, and how many of them had a gradient; None if that is unknown."""

    tensors: int | None = None
    with_grad: int | None = None


class GradientClips:
    """Fills ``TraceData.clips``."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace

    def add(self, name: str, limit: Any, norm: Any, given: Given) -> None:
        """Add the row of a call that has just clipped gradients, and returned ``norm`` unless it computes none."""
        if isinstance(limit, (int, float)) and len(self.trace.clips) < MAX_CLIPS:
            row = ClipRow(len(self.trace.rows), name, float(limit), _read_norm(norm), find_code_place(), *given)
            self.trace.clips.append(row)


class _RecordingWithClips(Guarded, Protocol):
    """The part of a recording that the functions need."""

    clips: GradientClips


class _ClipWatcher:
    """Notifies the recording of a thread of each call that clips gradients."""

    def __init__(self, name: str, here: Callable[[], Any]) -> None:
        self.name = name
        self._here: Callable[[], _RecordingWithClips | None] = here

    def enter(self, _: Any, limit: Any, *__: Any) -> tuple[Any, list[Any]]:
        """Begin a call; return the limit and a list for what the call returns."""
        return limit, []

    def returning(self, call: tuple[Any, list[Any]], result: Any) -> Any:
        """Keep the result until the call ends."""
        call[1].append(result)
        return result

    def fail(self, call: tuple[Any, list[Any]], _: BaseException) -> None:
        """Note that the call raised: it clipped nothing."""
        call[1].append(NotImplemented)

    def leave(self, call: tuple[Any, list[Any]]) -> None:
        """Notify the recording of a call that ended well."""
        limit, results = call
        has_failed = any(result is NotImplemented for result in results)
        recording = None if has_failed or is_compiling() else self._here()
        if recording is not None:
            given = _read_given(sys._getframe(1).f_locals)
            recording.guard(recording.clips.add, self.name, limit, *(results or [None]), given)


def instrumented_clips(here: Callable[[], Any]) -> Iterator[Instrumented]:
    """Yield torch's functions that clip gradients, to be instrumented; ``here`` returns the recording to notify."""
    for name, function in (("clip_grad_norm_", clip_norm), ("clip_grad_value_", clip_value)):
        yield Instrumented(function, _ClipWatcher(name, here))


def _read_norm(norm: Any) -> float | None:
    """Read a norm; None if there is none, or on a device, whose work would have to be waited for."""
    if not is_tensor(norm) or type(norm) is not torch.Tensor or norm.numel() != 1:
        return None
    return None if norm.is_meta or tensor_statistics.reading_waits(norm) else float(norm)


def _read_given(variables: Mapping[str, Any]) -> Given:
    """Read from the variables of torch's function how many tensors it was given: an iterator is walked only once."""
    lists = (variables.get("parameters"), variables.get("grads"))
    return Given(*(len(one) if type(one) is list else None for one in lists))
