"""Notices gradients that were changed between the pass that wrote them and the step that uses them, as by clipping."""

import weakref
from collections.abc import Iterator, Sequence

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.tensor_statistics import measure_or_defer
from hookviz.autograd.torch_internals import read_grad
from hookviz.recorder.follower import Follower
from hookviz.trace import TraceData

MAX_EDITS = 100
"""Of one step, this many changed gradients are measured."""


class GradientEdits(Follower):
    """Knows which ``.grad`` the last pass left in each leaf, and how often it had been written to by then."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._written: dict[int, tuple[weakref.ref[torch.Tensor], int, int]] = {}
        """``id`` of a leaf → the leaf, the ``id`` of its gradient, and the version of that."""
        self._room = MAX_EDITS
        """With more leaves than this, those that are gone are forgotten."""

    def pass_ended(self, snapshot: GraphSnapshot) -> None:
        """Note what the pass has written; a loop may make new leaves for each pass."""
        if len(self._written) > self._room:
            self._written = {key: entry for key, entry in self._written.items() if entry[0]() is not None}
            self._room = 2 * len(self._written) + MAX_EDITS
        for reference in snapshot.leaves.values():
            leaf = reference()
            grad = None if leaf is None else read_grad(leaf)
            if leaf is not None and grad is not None:
                self._written[id(leaf)] = reference, id(grad), grad._version

    def find(self, parameters: Sequence[torch.Tensor]) -> Iterator[tuple[int, int]]:
        """Yield the position of each parameter whose gradient has changed since, and the number of its value now."""
        changed = (index for index, parameter in enumerate(parameters) if self._has_changed(parameter))
        for _count, index in zip(range(MAX_EDITS), changed, strict=False):
            grad = read_grad(parameters[index])
            assert grad is not None
            self.trace.values.append(measure_or_defer(grad, self.trace.statistics))
            self._written[id(parameters[index])] = weakref.ref(parameters[index]), id(grad), grad._version
            yield index, len(self.trace.values) - 1

    def _has_changed(self, parameter: torch.Tensor) -> bool:
        reference, identity, version = self._written.get(id(parameter), (None, 0, 0))
        grad = read_grad(parameter) if reference is not None and reference() is parameter else None
        return grad is not None and (id(grad), grad._version) != (identity, version)

    def steps_aside(self) -> None:
        """Forget the gradients: passes may write to them unseen."""
        self._written.clear()

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self._written.pop(id(tensor), None)
