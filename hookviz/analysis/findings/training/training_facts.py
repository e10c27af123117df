"""What the rows of a trace tell about a training: which parameters got gradients, and which optimizers hold them."""

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from hookviz.support.messages import _
from hookviz.trace import ParameterRow, TraceData, UpdateRow
from hookviz.trace.values import get_norm_nan_inf


class Accumulation(NamedTuple):
    """A step in which a gradient was written to the ``.grad`` of a parameter, or added to it."""

    step: int
    pass_id: int
    before: float | None
    """The norm of ``.grad`` before; 0 if there was none, None if its numbers are not known."""
    after: float | None
    """The norm of ``.grad`` after; None if its numbers are not known."""


class TrainingFacts:
    """The parameters, gradients and optimizer steps of a trace."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.parameters = trace.parameters

    @cached_property
    def updates(self) -> dict[int, list[UpdateRow]]:
        """Optimizer → what it was given at each of its steps, in order."""
        updates: dict[int, list[UpdateRow]] = {}
        for row in self.trace.updates:
            optimizer = self.trace.rows[row.step].optimizer
            if optimizer is not None:
                updates.setdefault(optimizer, []).append(row)
        return updates

    @cached_property
    def _accumulations(self) -> dict[str, list[Accumulation]]:
        """Name of a leaf → the accumulations of its gradient, in order."""
        names = self.trace.lookup.leaf_names
        accumulations: dict[str, list[Accumulation]] = {}
        for index, row in enumerate(self.trace.rows):
            if row.kind == "accumulate" and row.node in names:
                before = 0.0 if row.before is None else self._norm(row.before)
                found = Accumulation(index, row.pass_id, before, self._norm(row.after))
                accumulations.setdefault(names[row.node], []).append(found)
        return accumulations

    def _norm(self, index: Any) -> float | None:
        if index is None or self.trace.values[index][-1] is not None:
            return None
        return get_norm_nan_inf(self.trace.values[index])[0]

    def accumulations(self, parameter: int) -> list[Accumulation]:
        """The accumulations of the gradient of a parameter of a module, in order."""
        names = self.parameters[parameter].names
        return next((self._accumulations[name] for name in names if name in self._accumulations), [])

    def first_update(self, optimizers: Sequence[int]) -> int:
        """The first step of one of these optimizers."""
        return min(row.step for optimizer in optimizers for row in self.updates.get(optimizer, ()))

    def has_stepped(self, row: ParameterRow) -> bool:
        """Whether an optimizer that holds a parameter took a step which the trace still has."""
        return any(optimizer in self.updates for optimizer in row.optimizers)

    def never_had_grad(self, parameter: int) -> bool:
        """Whether ``.grad`` of a parameter was None at every step of each optimizer that holds it."""
        optimizers = self.parameters[parameter].optimizers
        updates = [row for optimizer in optimizers for row in self.updates.get(optimizer, ())]
        return bool(updates) and all(parameter in row.without_grad for row in updates)

    def describe(self, parameters: Sequence[int]) -> str:
        """Name some parameters: ``net.0.bias and 3 more``."""
        first = self.parameters[parameters[0]]
        name = first.names[0] if first.names else _("a tensor of shape {shape}").format(shape=str(first.shape))
        more = len(parameters) - 1
        return _("{on} and {count} more").format(on=name, count=f"{more:,}") if more else name

    def describe_optimizers(self, optimizers: Sequence[int]) -> str:
        """Name the optimizers."""
        return ", ".join(dict.fromkeys(self.trace.optimizer(optimizer) for optimizer in optimizers))

    def accumulations_between(self, parameter: int, start: int, end: int) -> list[Accumulation]:
        """The accumulations of the gradient of a parameter between two steps."""
        found = self.accumulations(parameter)
        return found[bisect_left(found, (start,)) : bisect_left(found, (end,))]
