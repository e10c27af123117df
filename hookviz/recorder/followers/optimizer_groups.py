"""Notes where optimizers get their groups of parameters, with which learning rate, and which take no step."""

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from torch.optim import Optimizer

from hookviz.autograd import variable_names
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.variable_names import find_code_place
from hookviz.recorder.follower import Follower
from hookviz.recorder.followers.training_tracker import TrainingTracker, read_rate
from hookviz.recorder.torch.function_replacement import ActiveFlag, Here, make_notifier
from hookviz.trace import GroupRow, ModuleRow, TraceData

if TYPE_CHECKING:
    from hookviz.recorder.followers.optimizer_steps import OptimizerTracker

_PASSES = 2
"""After so many passes an optimizer should have taken a step."""


class _Waiting:
    """An optimizer that was made during the recording and has not taken a step."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.reference = weakref.ref(optimizer)
        self.rows: list[GroupRow] = []
        self.parameters: set[int] = set()
        """The ``id`` of each parameter that it holds."""
        self.passes = 0
        """How many passes wrote gradients of these."""
        self.row: ModuleRow | None = None
        self.held: list[int] = []
        """Its parameters as indexes of ``TraceData.parameters``, once several passes have written their gradients."""


class OptimizerGroups(Follower):
    """Fills ``TraceData.groups``: of an optimizer when it takes its first step, of the others at the end.

    Of one without a step, only those have a row whose parameters got gradients in several passes.
    """

    def __init__(self, trace: TraceData, training: TrainingTracker) -> None:
        self.trace, self._training = trace, training
        self._numbers: IdentityMap[int] = IdentityMap()
        """Optimizer → its number in the trace."""
        self._waiting: dict[int, _Waiting] = {}
        """``id`` of an optimizer → what is known of it before its first step."""

    def add(self, optimizer: Optimizer) -> None:
        """Note the last group of an optimizer, which has just got it: most often while it is made."""
        groups = optimizer.param_groups
        rate, decay = (read_rate(groups[-1].get(name)) for name in ("lr", "weight_decay"))
        row = GroupRow(0, len(groups) - 1, rate, decay, find_code_place())
        number = self._numbers.get(optimizer)
        if number is not None:
            self.trace.groups.append(row._replace(optimizer=number))
            return
        entry = self._waiting.get(id(optimizer))
        if entry is None or entry.reference() is not optimizer:
            self._write_last(self._waiting.pop(id(optimizer), None))
            entry = self._waiting[id(optimizer)] = _Waiting(optimizer)
        entry.rows.append(row)
        entry.parameters.update(map(id, groups[-1]["params"]))

    def number(self, optimizer: Optimizer, number: int) -> None:
        """Write the groups of an optimizer that has got a number."""
        self._numbers.put(optimizer, number)
        entry = self._waiting.pop(id(optimizer), None)
        if entry is not None and entry.reference() is optimizer:
            self.trace.groups += [row._replace(optimizer=number) for row in entry.rows]

    def pass_ended(self, snapshot: GraphSnapshot) -> None:
        """Count the passes that write gradients of the parameters of optimizers without a step."""
        leaves = {id(reference()) for reference in snapshot.leaves.values()} if self._waiting else set()
        for entry in self._waiting.values():
            optimizer = entry.reference()
            if optimizer is not None and not leaves.isdisjoint(entry.parameters):
                entry.passes += 1
                if entry.passes == _PASSES:
                    kind = type(optimizer).__name__
                    name = variable_names.expression_for(optimizer, variable_names.caller_frame())
                    entry.row, entry.held = ModuleRow(name or kind, kind), self._training.list_held(optimizer)

    def close(self) -> None:
        """Write the optimizers that took no step."""
        for entry in self._waiting.values():
            self._write_last(entry)

    def _write_last(self, entry: _Waiting | None) -> None:
        if entry is None or entry.row is None:
            return
        number = len(self.trace.optimizers)
        self.trace.optimizers.append(entry.row)
        self.trace.groups += [row._replace(optimizer=number) for row in entry.rows]
        for parameter in entry.held:
            self._training.note_holder(parameter, number)


class _RecordingWithGroups(Protocol):
    """The part of a recording that the method of optimizers needs."""

    optimizers: "OptimizerTracker"


def make_observer(here: Here) -> Callable[[Any, ActiveFlag], Any]:
    """Return a factory that wraps ``Optimizer.add_param_group``, which each optimizer calls while it is made."""

    def group_added(recording: _RecordingWithGroups, _: None, optimizer: Optimizer, *__: Any) -> None:
        recording.optimizers.groups.add(optimizer)

    return make_notifier(here, group_added)
