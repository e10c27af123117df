"""What the rows of a trace tell about a training: which parameters got gradients, and which optimizers hold them."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

from hookviz.analysis.findings.training.parameter_moves import ParameterMoves
from hookviz.analysis.findings.training.program_calls import list_pass_lines
from hookviz.support.messages import _
from hookviz.support.source_code import CodePlace, read_place
from hookviz.trace import ParameterRow, TraceData, UpdateRow
from hookviz.trace.value_rows import ValueRow
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

    def list_rounds(self, optimizer: int) -> list[tuple[int, UpdateRow]]:
        """List what an optimizer was given at each of its steps, each with the step before; -1 before the first one."""
        updates = self.updates[optimizer]
        return list(zip([-1, *(row.step for row in updates)], updates, strict=False))

    @cached_property
    def unscales(self) -> dict[int, list[int]]:
        """Optimizer → the steps in which a GradScaler divided its gradients, in order."""
        found: dict[int, list[int]] = {}
        for step in self.trace.lookup.steps_of_kinds("unscale"):
            optimizer = self.trace.rows[step].optimizer
            if optimizer is not None:
                found.setdefault(optimizer, []).append(step)
        return found

    @cached_property
    def _accumulations(self) -> dict[str, list[Accumulation]]:
        """Name of a leaf → the accumulations of its gradient, in order."""
        names = self.trace.lookup.leaf_names
        accumulations: dict[str, list[Accumulation]] = {}
        for index, row in enumerate(self.trace.rows):
            if row.kind == "accumulate" and row.node in names:
                before = 0.0 if row.before is None else self.find_norm(row.before)
                found = Accumulation(index, row.pass_id, before, self.find_norm(row.after))
                accumulations.setdefault(names[row.node], []).append(found)
        return accumulations

    def find_norm(self, index: Any) -> float | None:
        """Return the norm of a value; None if its numbers are not known."""
        if index is None or self.trace.values[index][-1] is not None:
            return None
        return get_norm_nan_inf(self.trace.values[index])[0]

    def accumulations(self, parameter: int) -> list[Accumulation]:
        """The accumulations of the gradient of a parameter of a module, in order."""
        names = self.parameters[parameter].names
        return next((self._accumulations[name] for name in names if name in self._accumulations), [])

    def was_cleared(self, parameter: int) -> bool:
        """Whether the ``.grad`` of a parameter was None or 0 when a pass wrote to it again."""
        return any(each.before == 0 for each in self.accumulations(parameter)[1:])

    def is_finite(self, parameter: int) -> bool:
        """Whether all gradients that were written to a parameter are known to be finite."""
        return all(each.after is not None and isfinite(each.after) for each in self.accumulations(parameter))

    def first_update(self, optimizers: Sequence[int]) -> int:
        """The first step of one of these optimizers."""
        return min(row.step for optimizer in optimizers for row in self.updates.get(optimizer, ()))

    def list_held(self, optimizer: int) -> list[int]:
        """List the parameters that an optimizer holds."""
        return [number for number, row in enumerate(self.parameters) if optimizer in row.optimizers]

    def find_making(self, optimizer: int) -> CodePlace | None:
        """Return the line that made an optimizer; None if it is older than the recording."""
        rows = (row for row in self.trace.groups if row.optimizer == optimizer and not row.number)
        return next((read_place(row.made_at) for row in rows), None)

    def has_stepped(self, row: ParameterRow) -> bool:
        """Whether an optimizer that holds a parameter took a step which the trace still has."""
        return any(optimizer in self.updates for optimizer in row.optimizers)

    @cached_property
    def moves(self) -> ParameterMoves:
        """What moved the parameters."""
        return ParameterMoves(self.trace, self.updates)

    @cached_property
    def evaluated_calls(self) -> dict[int, int]:
        """The calls of modules in evaluation mode, but for recomputations: call → its step, in order."""
        calls = {index for index, call in enumerate(self.trace.calls) if call.evaluates and not call.recomputed}
        rows = enumerate(self.trace.rows) if calls else ()
        return {row.own_call: step for step, row in rows if row.kind == "call" and row.call in calls}

    # -- the order of passes and steps

    @cached_property
    def lacks_passes(self) -> bool:
        """Whether passes ran that the trace does not have, or parts of them."""
        notes = {note.fact for note in self.trace.remarks}
        hiding = self.trace.lookup.steps_of_kinds("unobserved", "compiled")
        return bool(hiding) or not notes.isdisjoint(("every", "elsewhere"))

    @property
    def is_cut_short(self) -> bool:
        """Whether an exception or ``until`` ended the recording, so that a step may be missing."""
        has_stopped = any(note.fact.startswith("until.") and note.fact != "until.error" for note in self.trace.remarks)
        return has_stopped or bool(self.trace.lookup.steps_of_kinds("exception"))

    @cached_property
    def pass_lines(self) -> dict[int, CodePlace]:
        """Pass → the line that starts it, where it is known."""
        return list_pass_lines(self.trace)

    @cached_property
    def leaf_values(self) -> dict[int, dict[int, ValueRow | None]]:
        """Pass with leaves → each leaf → its value when the pass began; None if its numbers are not known."""
        found: dict[int, dict[int, ValueRow | None]] = {}
        for row in self.trace.tensors:
            if row.leaf:
                value = None if row.data is None else self.trace.values[row.data]
                is_known = value is not None and value[-1] is None
                found.setdefault(row.pass_id, {})[row.node] = value if is_known else None
        return found

    @cached_property
    def written_of(self) -> dict[int, list[int]]:
        """Leaf, named or not → the steps that wrote its gradient, in order."""
        found: dict[int, list[int]] = {}
        for step, row in enumerate(self.trace.rows):
            if row.kind == "accumulate" and row.node is not None:
                found.setdefault(row.node, []).append(step)
        return found

    @cached_property
    def _written(self) -> list[int]:
        """The steps that wrote a gradient of a leaf, in order."""
        return sorted(each.step for found in self._accumulations.values() for each in found)

    @cached_property
    def _update_steps(self) -> list[int]:
        """The steps of all optimizers, in order."""
        return sorted(row.step for row in self.trace.updates)

    def find_written(self, start: int | None, end: int | None) -> list[int]:
        """Return the steps between two that wrote a gradient of a leaf; None stands for begin or end of the trace."""
        first = 0 if start is None else bisect_left(self._written, start)
        return self._written[first : None if end is None else bisect_left(self._written, end)]

    def find_update(self, start: int) -> int | None:
        """Return the first step of an optimizer from a step on."""
        position = bisect_left(self._update_steps, start)
        return self._update_steps[position] if position < len(self._update_steps) else None

    def find_update_before(self, end: int) -> int | None:
        """Return the last step of an optimizer before a step."""
        position = bisect_left(self._update_steps, end)
        return self._update_steps[position - 1] if position else None

    def list_last_norms(self, written: Sequence[int]) -> list[float | None]:
        """List the norms that the gradients of the leaves had after these steps; None for one that is not known."""
        last = {self.trace.rows[step].node: self.trace.rows[step].after for step in written}
        return [self.find_norm(value) for value in last.values()]

    def find_scale(self, written: int) -> float | None:
        """Return the scale of a GradScaler that a gradient had when it was written; None if it was not scaled."""
        row = self.trace.rows[written]
        scales = self.trace.lookup.scales(row.pass_id)
        return next((one.scale for one in scales if row.node not in one.others), None)

    @property
    def steps_come_first(self) -> bool:
        """Whether an optimizer took a step before the first pass, and none took one after the last pass."""
        if not self._update_steps or not self._written:
            return False
        return self._update_steps[0] < self._written[0] and self._update_steps[-1] < self._written[-1]

    def name_parameters(self, parameters: Iterable[int]) -> tuple[str, ...]:
        """Return all names of some parameters."""
        return tuple(name for number in parameters for name in self.parameters[number].names)

    def describe(self, parameters: Sequence[int]) -> str:
        """Name some parameters: ``net.0.bias and 3 more``."""
        first = self.parameters[parameters[0]]
        name = first.names[0] if first.names else _("a tensor of shape {shape}").format(shape=str(first.shape))
        more = len(parameters) - 1
        return _("{on} and {count} more").format(on=name, count=f"{more:,}") if more else name

    def describe_optimizers(self, optimizers: Sequence[int]) -> str:
        """Name the optimizers."""
        return ", ".join(dict.fromkeys(self.trace.optimizer(optimizer) for optimizer in optimizers))

    def has_left_gradient(self, parameter: int, start: int, end: int) -> bool:
        """Whether the last pass between two steps left a gradient other than 0 in the ``.grad`` of a parameter."""
        found = self.accumulations_between(parameter, start, end)
        return bool(found) and bool(found[-1].after)

    def accumulations_between(self, parameter: int, start: int, end: int) -> list[Accumulation]:
        """The accumulations of the gradient of a parameter between two steps."""
        found = self.accumulations(parameter)
        return found[bisect_left(found, (start,)) : bisect_left(found, (end,))]
