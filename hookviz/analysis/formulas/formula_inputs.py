"""What the names in a node's formulas stand for, as far as the trace has it."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from hookviz.analysis.formulas.derivatives import needs, passes_each, short
from hookviz.analysis.formulas.evaluation import NotRecorded
from hookviz.trace import StepRow, TraceData
from hookviz.trace.values import Value, Values


class FormulaInputs:
    """Finds in one trace what formulas are about: gradients, what nodes had saved, and what is added up."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self._shapes: dict[int, list[tuple[int, ...] | None]] = {}
        self._found: tuple[tuple[int, int] | None, dict[str, Any]] = (None, {})

    def names(self, step: int, slot: int) -> dict[str, Any]:
        """Name in the formulas of the node that computes at ``step`` → value, setting, or why it is not known."""
        if self._found[0] != (step, slot):  # asked for twice: to compute a formula, and to write it
            self._found = (step, slot), self._names(step, slot)
        return self._found[1]

    def _names(self, step: int, slot: int) -> dict[str, Any]:
        row = self._trace.rows[step]
        op = self._trace.ops[row.node]
        saved = self._saved(row)
        names = {short(name): saved.get(short(name), NotRecorded("many")) for name in needs(op)}
        if names.get("correction", 0) is None:
            names["correction"] = 1
        before = row.before if isinstance(row.before, tuple) else (row.before,)
        grads = [None if i is None else known_or_missing(self._trace.value(i)) for i in before]
        grad = grads[slot if passes_each(op) and slot < len(grads) else 0] if grads else None
        names |= {"grads": grads, "grad": NotRecorded("no_grad") if grad is None else grad, "slot": slot}
        return names | _part(names.get("dim"), self._sent_shapes(step, row), slot)

    def _saved(self, row: StepRow) -> dict[str, Any]:
        """Name in the formulas → what the node of a step had saved, or why that is not known."""
        found: dict[str, Any] = {}
        for saved in self._trace.lookup.saved(row.pass_id, row.node):
            value = self._trace.value(saved.value)
            thing = NotRecorded(saved.why) if saved.why else saved.plain if value is None else value
            found[short(saved.name)] = known_or_missing(list(value) if isinstance(value, tuple) else thing)
        return found

    def _sent_shapes(self, step: int, row: StepRow) -> list[tuple[int, ...] | None]:
        """The shapes of what the node of a step sent, None where it sent nothing."""
        if step not in self._shapes:
            after = row.after if isinstance(row.after, tuple) else (row.after,)
            self._shapes[step] = [None if i is None else Value(*self._trace.values[i]).shape for i in after]
        return self._shapes[step]

    def terms(self, step: int) -> list[Values]:
        """What is added up where gradients arrive or are accumulated, in the order in which it comes."""
        row = self._trace.rows[step]
        if row.kind == "arrive":
            return [self._trace.value(index) for _, _, index in row.parts]
        before = self._trace.value(row.before)
        of_pass = self._trace.lookup.steps(row.pass_id)
        earlier = (self._trace.rows[i] for i in reversed(of_pass[: bisect_left(of_pass, step)]))
        grad = self._trace.value(next((r.after for r in earlier if r.node == row.node and r.after is not None), None))
        return [grad] if before is None else [before, grad]


def known_or_missing(thing: Any) -> Any:
    """A value whose numbers are there, or a setting; of any other value, why its numbers are not known."""
    if isinstance(thing, list):
        return [known_or_missing(part) for part in thing]
    if isinstance(thing, Value) and (thing.note is not None or thing.tolist() is None):
        return NotRecorded("large" if thing.note is None else "hidden")
    return thing


def _part(dim: Any, shapes: Sequence[Any], slot: int) -> dict[str, Any]:
    """Where the part of ``slot`` lies in a concatenation along ``dim``; only the parts themselves tell how long."""
    shape = shapes[slot]
    if not isinstance(dim, int) or not shape or not -len(shape) <= dim < len(shape):
        return {"first": NotRecorded("part"), "length": NotRecorded("part")}
    # A vector of no numbers may stand among tensors of any shape.
    lengths = [0 if before == (0,) else None if before is None else before[dim] for before in shapes[:slot]]
    known = [length for length in lengths if length is not None]
    first = sum(known) if len(known) == slot else NotRecorded("part")
    return {"first": first, "length": shape[dim]}
