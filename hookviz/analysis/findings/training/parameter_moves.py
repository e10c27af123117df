"""What a trace tells about the numbers of parameters: whether steps, or something between them, changed these."""

from functools import cached_property
from itertools import pairwise

from hookviz.trace import TraceData, UpdateRow
from hookviz.trace.value_rows import ValueRow


class ParameterMoves:
    """What moved the parameters of a trace, as far as it was measured: at a step, only the first ones are."""

    def __init__(self, trace: TraceData, updates: dict[int, list[UpdateRow]]) -> None:
        self.trace, self._updates = trace, updates

    def _list_updates(self, parameter: int) -> list[UpdateRow]:
        """List the steps of the optimizers that hold a parameter."""
        optimizers = self.trace.parameters[parameter].optimizers
        return [row for optimizer in optimizers for row in self._updates.get(optimizer, ())]

    def never_had_grad(self, parameter: int) -> bool:
        """Whether ``.grad`` of a parameter was None at every step of each optimizer that holds it."""
        updates = self._list_updates(parameter)
        return bool(updates) and all(parameter in row.without_grad for row in updates)

    @cached_property
    def _movers(self) -> set[int]:
        """The optimizers that move a parameter which had no gradient at any step: an evolution, or an average."""
        moved = {
            (optimizer, number)
            for optimizer, updates in self._updates.items()
            for row in updates
            for number, norm, _group in row.moves
            if norm and number in row.without_grad
        }
        return {optimizer for optimizer, number in moved if self.never_had_grad(number)}

    def needs_no_gradient(self, parameter: int) -> bool:
        """Whether something moves a parameter without a gradient: its optimizer, or the program between the steps.

        What an optimizer does to one parameter without a gradient, it may do to all others.
        """
        return self._was_changed(parameter) or not self._movers.isdisjoint(self.trace.parameters[parameter].optimizers)

    def _was_changed(self, parameter: int) -> bool:
        """Whether something changed a parameter between two steps of optimizers that had nothing to move it with."""
        return any(parameter in row.changed for row in self.trace.updates)

    @cached_property
    def _values(self) -> dict[str, list[ValueRow | None]]:
        """Name of a leaf → its value when each of its passes began; None if its numbers are not known.

        Of several leaves that had a name one after the other, it is the last one.
        """
        names, found = self.trace.lookup.leaf_names, dict[str, tuple[int, list[ValueRow | None]]]()
        for row in self.trace.tensors:
            name = names.get(row.node) if row.leaf else None
            if name is None:
                continue
            if name not in found or found[name][0] != row.node:
                found[name] = row.node, []
            value = None if row.data is None else self.trace.values[row.data]
            found[name][1].append(value if value is not None and value[-1] is None else None)
        return {name: values for name, (_node, values) in found.items()}

    def _list_values(self, parameter: int) -> list[ValueRow | None]:
        names = self.trace.parameters[parameter].names
        return next((self._values[name] for name in names if name in self._values), [])

    def was_moved(self, parameter: int) -> bool:
        """Whether something is known to have changed a parameter, between two passes or two steps of optimizers."""
        pairs = pairwise(self._list_values(parameter))
        return self._was_changed(parameter) or any(None not in (one, other) and one != other for one, other in pairs)

    def stays_equal(self, parameter: int) -> bool:
        """Whether a parameter is known to have the same numbers in each of several passes."""
        values = self._list_values(parameter)
        return len(values) > 1 and None not in values and all(value == values[0] for value in values)
