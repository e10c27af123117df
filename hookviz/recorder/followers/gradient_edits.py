"""What a program does to gradients between the pass that wrote them and the step that uses them.

Gradients that were changed are noticed, and calls of torch's functions that clip them, with the norm that they found.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.tensor_statistics import append_value, can_be_read, measure_or_defer
from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import read_grad
from hookviz.autograd.variable_names import find_code_place
from hookviz.recorder.follower import Follower
from hookviz.recorder.open_recordings import recording_after_pass
from hookviz.recorder.torch.compiled_regions import is_compiling
from hookviz.recorder.torch.instrumentation import Watcher
from hookviz.trace import ClipRow, TraceData
from hookviz.trace.values import is_same_value

MAX_EDITS = 100
"""Of one step, this many changed gradients are measured."""
MAX_READ = 100
"""Of one pass, the numbers of this many gradients are read: a write through ``.data`` leaves the version as it is."""
MAX_CLIPS = 10_000
"""A trace holds up to this many calls that clip gradients."""


class _Written(NamedTuple):
    """A gradient as a pass left it."""

    identity: int
    version: int
    value: Any = None
    """Its numbers, or their norm; None if they are not read, as on a device."""


class GradientEdits(Follower):
    """Knows which ``.grad`` the last pass left in each leaf, and what it was by then."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._written: IdentityMap[_Written] = IdentityMap()
        """Leaf → its gradient."""

    def pass_ended(self, snapshot: GraphSnapshot) -> None:
        """Note what the pass has written."""
        for count, reference in enumerate(snapshot.leaves.values()):
            leaf = reference()
            grad = None if leaf is None else read_grad(leaf)
            if leaf is not None and grad is not None:
                self._written.put(leaf, _look_at(grad, reads=count < MAX_READ))

    def find(self, parameters: Sequence[torch.Tensor]) -> Iterator[tuple[int, int]]:
        """Yield the position of each parameter whose gradient has changed since, and the number of its value now."""
        changed = (index for index, parameter in enumerate(parameters) if self._has_changed(parameter))
        for _count, index in zip(range(MAX_EDITS), changed, strict=False):
            grad = read_grad(parameters[index])
            assert grad is not None
            yield index, append_value(self.trace.values, grad, self.trace.statistics)

    def note_used(self, parameters: Iterable[torch.Tensor]) -> None:
        """Note the gradients of these parameters as those that a step has used: they are no news for the next one."""
        for parameter in parameters:
            grad = read_grad(parameter)
            if grad is not None:
                self._written.put(parameter, _look_at(grad, reads=True))

    def _has_changed(self, parameter: torch.Tensor) -> bool:
        written = self._written.get(parameter)
        grad = None if written is None else read_grad(parameter)
        if grad is None or written is None:
            return False
        now = _look_at(grad, reads=written.value is not None)
        return now[:2] != written[:2] or not is_same_value(now.value, written.value)

    def add_clip(self, name: str, limit: Any, norm: Any, given: "Given") -> None:
        """Add the row of a call that has just clipped gradients, and returned ``norm`` unless it computes none."""
        if isinstance(limit, (int, float)) and len(self.trace.clips) < MAX_CLIPS:
            row = ClipRow(len(self.trace.rows), name, float(limit), _read_norm(norm), find_code_place(), *given)
            self.trace.clips.append(row)

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self._written.forget(tensor)


def _look_at(grad: torch.Tensor, *, reads: bool) -> _Written:
    """Look at a gradient, and at its numbers if that waits for no device."""
    value = measure_or_defer(grad, "norm") if reads and can_be_read(grad) else None
    return _Written(id(grad), grad._version, value)


class Given(NamedTuple):
    """How many tensors a call was given, and how many of them had a gradient; None if that is unknown."""

    tensors: int | None = None
    with_grad: int | None = None


class ClipWatcher(Watcher):
    """Notifies the recording of a thread of each call of a function that clips gradients."""

    def __init__(self, name: str) -> None:
        self.name = name

    def enter(self, _: Any, limit: Any, *__: Any) -> list[Any]:
        """Begin a call; return a list of the limit, for what the call returns."""
        return [limit]

    def returning(self, call: list[Any], result: Any) -> Any:
        """Keep the result until the call ends."""
        call.append(result)
        return result

    def fail(self, call: list[Any], _: BaseException) -> None:
        """Note that the call raised: it clipped nothing."""
        call.clear()

    def leave(self, call: list[Any]) -> None:
        """Notify the recording of a call that ended well."""
        recording = recording_after_pass() if call and not is_compiling() else None
        if recording is not None:
            given = _read_given(sys._getframe(1).f_locals)
            recording.guard(recording.edits.add_clip, self.name, call[0], *(call[1:] or [None]), given)


def _read_norm(norm: Any) -> float | None:
    """Read a norm; None if there is none, or on a device, whose work would have to be waited for."""
    return float(norm) if is_tensor(norm) and can_be_read(norm) and norm.numel() == 1 else None


def _read_given(variables: Mapping[str, Any]) -> Given:
    """Read from the variables of torch's function how many tensors it was given: an iterator is walked only once."""
    lists = (variables.get("parameters"), variables.get("grads"))
    return Given(*(len(one) if type(one) is list else None for one in lists))
