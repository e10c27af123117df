"""Notes where optimizers get their groups of parameters, and with which learning rate."""

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from torch.optim import Optimizer

from hookviz.recorder.code_place import find_code_place
from hookviz.recorder.followers.training_tracker import read_rate
from hookviz.recorder.torch.function_replacement import ActiveFlag, Here, make_notifier
from hookviz.trace import GroupRow, TraceData

if TYPE_CHECKING:
    from hookviz.recorder.followers.optimizer_steps import OptimizerTracker


class OptimizerGroups:
    """Fills ``TraceData.groups`` once an optimizer has its number, which is when it takes its first step."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._numbers: dict[int, tuple[weakref.ref[Optimizer], int]] = {}
        """``id`` of an optimizer → its number in the trace."""
        self._waiting: dict[int, tuple[weakref.ref[Optimizer], list[GroupRow]]] = {}
        """``id`` of an optimizer without a number → its groups."""

    def add(self, optimizer: Optimizer) -> None:
        """Note the last group of an optimizer, which has just got it: most often while it is made."""
        groups = optimizer.param_groups
        row = GroupRow(0, len(groups) - 1, read_rate(groups[-1].get("lr")), find_code_place())
        known, number = self._numbers.get(id(optimizer), (None, 0))
        if known is not None and known() is optimizer:
            self.trace.groups.append(row._replace(optimizer=number))
            return
        reference, rows = self._waiting.get(id(optimizer), (None, []))
        if reference is None or reference() is not optimizer:
            reference, rows = weakref.ref(optimizer), []
            self._waiting[id(optimizer)] = reference, rows
        rows.append(row)

    def number(self, optimizer: Optimizer, number: int) -> None:
        """Write the groups of an optimizer that has got a number."""
        self._numbers[id(optimizer)] = weakref.ref(optimizer), number
        reference, rows = self._waiting.pop(id(optimizer), (None, []))
        if reference is not None and reference() is optimizer:
            self.trace.groups += [row._replace(optimizer=number) for row in rows]


class _RecordingWithGroups(Protocol):
    """The part of a recording that the method of optimizers needs."""

    optimizers: "OptimizerTracker"


def make_observer(here: Here) -> Callable[[Any, ActiveFlag], Any]:
    """Return a factory that wraps ``Optimizer.add_param_group``, which each optimizer calls while it is made."""

    def group_added(recording: _RecordingWithGroups, _: None, optimizer: Optimizer, *__: Any) -> None:
        recording.optimizers.groups.add(optimizer)

    return make_notifier(here, group_added)
