"""Writes down how gradients, outputs of modules and weights are distributed, for ``record(histograms=True)``."""

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.optim import Optimizer

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.tensor_samples import Sample, distribute, fetch_samples, measure_move, take_sample
from hookviz.autograd.tensor_types import is_tensor
from hookviz.recorder.follower import Follower
from hookviz.trace import TraceData
from hookviz.trace.histogram_rows import HistogramRow, HistogramSubject

MAX_WAITING = 512
"""So many samples are counted together at most: calls without passes have no end at which to count them."""


class _Taken(NamedTuple):
    """A sample that has not been counted yet."""

    step: int
    of: HistogramSubject
    total: int
    sample: Sample
    weight: "weakref.ref[torch.Tensor] | None"


class Histograms(Follower):
    """Copies a few thousand numbers of each tensor where it is at hand, and counts them when the pass is over."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._waiting: list[_Taken] = []
        self._weights: IdentityMap[tuple[int, Sample]] = IdentityMap()
        """Weight → the index of its last row, and its sample, until an optimizer has moved it."""

    def take(self, step: int, of: HistogramSubject, tensor: torch.Tensor) -> None:
        """Copy a sample of ``tensor``, which a step of the trace shows."""
        sample = take_sample(tensor)
        if sample is not None:
            weight = weakref.ref(tensor) if of == "weights" else None
            self._waiting.append(_Taken(step, of, tensor.numel(), sample, weight))

    def accumulated(self, step: int, gradient: torch.Tensor | None, leaf: torch.Tensor) -> None:
        """Take samples of a leaf and of the gradient that was added to its ``.grad``."""
        if gradient is not None:
            self.take(step, "gradients", gradient)
        self.take(step, "weights", leaf)

    def call_returned(self, step: int, items: Sequence[Any]) -> None:
        """Take a sample of the first tensor that a module returned."""
        tensor = next((item for item in items if is_tensor(item)), None)
        if tensor is not None:
            self.take(step, "outputs", tensor)
        if len(self._waiting) >= MAX_WAITING:
            self._write_waiting()

    def pass_ended(self, snapshot: GraphSnapshot) -> None:
        """Count what was taken, before steps get other numbers."""
        self._write_waiting()

    def close(self) -> None:
        """Count what no pass followed."""
        self._write_waiting()

    def dropped(self, count: int) -> None:
        """Count what is left, and follow the rows, which are about to move."""
        self._write_waiting()
        lost = sum(self.trace.rows[row.step].pass_id < count for row in self.trace.histograms)
        known = self._weights.items()
        self._weights.clear()
        for weight, (index, sample) in known:
            if index >= lost:
                self._weights.put(weight, (index - lost, sample))

    def optimizer_stepped(self, optimizer: Optimizer) -> None:
        """Note how far the step moved each weight since its gradient arrived."""
        moved = list(self._list_moved(optimizer))
        samples = fetch_samples([sample for _index, _before, sample in moved])
        for (index, before, _ignored), sample in zip(moved, samples, strict=True):
            row = self.trace.histograms[index]
            self.trace.histograms[index] = row._replace(move=measure_move(before, sample))

    def _list_moved(self, optimizer: Optimizer) -> Iterator[tuple[int, Sample, Sample]]:
        """Yield (row, sample before the step, sample now) of each weight that has a row in the last pass."""
        for group in optimizer.param_groups:
            for weight in group["params"]:
                known = self._weights.get(weight)
                now = None if known is None else take_sample(weight)
                if known is not None and now is not None and len(now) == len(known[1]):
                    yield *known, now

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a weight that is about to get other contents."""
        self._weights.forget(tensor)

    def _write_waiting(self) -> None:
        """Write the rows of all samples that wait."""
        waiting, self._waiting = self._waiting, []
        samples = fetch_samples([taken.sample for taken in waiting])
        for taken, sample in zip(waiting, samples, strict=True):
            weight = None if taken.weight is None else taken.weight()
            if weight is not None:
                self._weights.put(weight, (len(self.trace.histograms), sample))
            self.trace.histograms.append(HistogramRow(taken.step, taken.of, taken.total, *distribute(sample)))
