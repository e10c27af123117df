"""Look up the values of the names in a node's formulas, as far as the trace holds them."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from hookviz.analysis.formulas.derivatives import formula_name, has_output_per_input, required_names
from hookviz.analysis.formulas.evaluation import NotRecorded
from hookviz.trace import StepRow, TraceData
from hookviz.trace.values import Value


class FormulaInputs:
    """Looks up the inputs of formulas in one trace: gradients, values saved by nodes, and the terms of sums."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self._shapes: dict[int, list[tuple[int, ...] | None]] = {}

    def names(self, step: int, slot: int) -> dict[str, Any]:
        """Name in the formulas of the node that computes at ``step`` → a value, a setting, or a ``NotRecorded``."""
        row = self._trace.rows[step]
        op = self._trace.ops[row.own_node]
        saved = self._collect_saved(row)
        required = (formula_name(name) for name in required_names(op))
        names = {name: saved.get(name, NotRecorded("many")) for name in required}
        if names.get("correction", 0) is None:
            names["correction"] = 1
        before = row.before if isinstance(row.before, tuple) else (row.before,)
        grads = [self._trace.value(index) for index in before]
        grad = grads[slot if has_output_per_input(op) and slot < len(grads) else 0] if grads else None
        names |= {"grads": grads, "grad": NotRecorded("no_grad") if grad is None else grad, "slot": slot}
        return names | _locate_part(names.get("dim"), self._sent_shapes(step, row), slot)

    def _collect_saved(self, row: StepRow) -> dict[str, Any]:
        """Name in the formulas → what the node of a step saved, or a ``NotRecorded``."""
        names: dict[str, Any] = {}
        for saved in self._trace.lookup.saved(row.pass_id, row.own_node):
            value = self._trace.value(saved.value)
            single = NotRecorded(saved.why) if saved.why else saved.plain if value is None else value
            names[formula_name(saved.name)] = list(value) if isinstance(value, tuple) else single
        return names

    def _sent_shapes(self, step: int, row: StepRow) -> list[tuple[int, ...] | None]:
        """The shapes of the gradients that the node of a step sent; None for a slot to which it sent none."""
        if step not in self._shapes:
            after = row.after if isinstance(row.after, tuple) else (row.after,)
            self._shapes[step] = [None if i is None else Value(*self._trace.values[i]).shape for i in after]
        return self._shapes[step]

    def terms(self, step: int) -> list[Any]:
        """The gradients that are added up when they arrive or are accumulated at ``step``, in the order of the sum."""
        row = self._trace.rows[step]
        if row.kind == "arrive":
            return [self.term(index) for _, _, index in row.parts]
        steps = self._trace.lookup.steps(row.pass_id)
        earlier = (self._trace.rows[i] for i in reversed(steps[: bisect_left(steps, step)]))
        grad = self.term(next((r.after for r in earlier if r.node == row.node and r.after is not None), None))
        return [grad] if row.before is None else [self.term(row.before), grad]

    def term(self, index: Any) -> Any:
        """A gradient of a sum; a ``NotRecorded`` if its step was not observed."""
        return NotRecorded("unseen") if index is None else self._trace.value(index)


def _locate_part(dim: Any, shapes: Sequence[Any], slot: int) -> dict[str, Any]:
    """The first index and the length of input ``slot`` in a concatenation of tensors with ``shapes`` along ``dim``."""
    shape = shapes[slot]
    if not isinstance(dim, int) or not shape or not -len(shape) <= dim < len(shape):
        return {"first": NotRecorded("part"), "length": NotRecorded("part")}
    # torch.cat accepts an empty vector among tensors of any shape.
    lengths = [0 if before == (0,) else None if before is None else before[dim] for before in shapes[:slot]]
    known = [length for length in lengths if length is not None]
    first = sum(known) if len(known) == slot else NotRecorded("part")
    return {"first": first, "length": shape[dim]}
