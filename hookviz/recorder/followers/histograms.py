"""Writes down how gradients, outputs of modules and weights are distributed, for ``record(histograms=True)``."""

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.optim import Optimizer

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.tensor_samples import Sample, distribute, fetch_samples, measure_move, take_sample
from hookviz.autograd.tensor_types import is_tensor
from hookviz.recorder.follower import Follower
from hookviz.recorder.followers.training_tracker import list_parameters
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
        self._weights: IdentityMap[int] = IdentityMap()
        """Weight → the index of its last row."""
        self._before: dict[int, list[Sample | None]] = {}
        """``id`` of each optimizer that takes a step → samples of its weights from before."""

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
        self._weights.renumber({index: index - lost for index in range(lost, len(self.trace.histograms))})

    def optimizer_begins(self, optimizer: Optimizer) -> None:
        """Copy samples of the weights before a step: it may run passes itself, as that of LBFGS does."""
        self._before[id(optimizer)] = list(map(take_sample, list_parameters(optimizer)))

    def optimizer_stepped(self, optimizer: Optimizer) -> None:
        """Note how far the step moved each weight, in its row in the last pass."""
        before = zip(list_parameters(optimizer), self._before.pop(id(optimizer), ()), strict=False)
        indexes, olds, news = list[int](), list[Sample](), list[Sample]()
        for weight, old in before:
            index, new = self._weights.get(weight), take_sample(weight)
            if index is not None and old is not None and new is not None and len(new) == len(old):
                indexes.append(index)
                olds.append(old)
                news.append(new)
        for index, old, new in zip(indexes, fetch_samples(olds), fetch_samples(news), strict=True):
            row = self.trace.histograms[index]
            self.trace.histograms[index] = row._replace(move=measure_move(old, new))

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
                self._weights.put(weight, len(self.trace.histograms))
            self.trace.histograms.append(HistogramRow(taken.step, taken.of, taken.total, *distribute(sample)))
