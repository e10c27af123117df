"""Find out whether formulas explain the recorded gradients: read from the trace if stored there, else checked now."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any

from hookviz.analysis.formulas.derivatives import find_formulas, has_output_per_input, is_reading
from hookviz.analysis.formulas.formula_inputs import FormulaInputs
from hookviz.trace import Note, StepRow, TraceData
from hookviz.trace.reason_rows import SYMBOLS, ReasonRow, Verifier
from hookviz.trace.values import Value, Values


class Verdicts:
    """Finds the reason rows of the gradients of one trace."""

    def __init__(self, trace: TraceData, inputs: FormulaInputs) -> None:
        self._trace, self._inputs = trace, inputs
        self._by_signature: dict[tuple[Any, ...], ReasonRow] = {}
        """Signature (see ``_signature``) → the row that gradients with this signature share."""

    @cached_property
    def _paused(self) -> Callable[[], AbstractContextManager[None]]:
        """Pauses torch's modes for one check; does nothing while ``modes_paused`` has paused them for many."""
        return self._verifier.modes_paused

    @cached_property
    def _verifier(self) -> Verifier:
        """Checks the formulas that are not stored in the trace; torch is imported when it is first used."""
        if any(note.key == "redacted.values" for note in self._trace.remarks):
            return _SymbolicVerifier("why.redacted")
        return self._trace.verifier or _SymbolicVerifier("why.no_torch")

    def find_sent(self, step: int, slot: int) -> ReasonRow | None:
        """The reason row for what the node at ``step`` sent to its input ``slot``; None if no formula is known."""
        row = self._trace.rows[step]
        op = self._trace.ops[row.own_node]
        stored = self._read_stored(step, slot)
        if stored is not None and is_reading(stored.reading, op, slot):
            return stored
        formulas = find_formulas(op, slot)
        if not formulas:
            return None
        signature = self._signature(row, slot, (op, formulas[0].key, slot if has_output_per_input(op) else 0))
        if signature in self._by_signature:
            return self._by_signature[signature]
        value = self._trace.value((row.after if isinstance(row.after, tuple) else (row.after,))[slot])
        assert isinstance(value, Value)
        with self._paused():
            reason_row = self._verifier.check_sent(op, slot, self._inputs.names(step, slot), value)
        if signature and reason_row.verdict == SYMBOLS:
            self._by_signature[signature] = reason_row
        return reason_row

    def find_sum(self, step: int) -> ReasonRow:
        """The reason row for the sum that arrives or is accumulated at ``step``."""
        stored = self._read_stored(step, None)
        if stored is not None:
            return stored
        with self._paused():
            return self._verifier.check_sum(self._inputs.terms(step), self._trace.value(self._trace.rows[step].after))

    @contextmanager
    def modes_paused(self) -> Iterator[None]:
        """Pause torch's modes once for many checks, which makes each of them cheaper."""
        with self._verifier.modes_paused():
            self._paused = nullcontext
            try:
                yield
            finally:
                self._paused = self._verifier.modes_paused

    def _read_stored(self, step: int, slot: int | None) -> ReasonRow | None:
        """The row that the trace holds for a gradient; None if it holds none."""
        explained = self._trace.explained[step] if self._trace.explained else None
        if isinstance(explained, tuple):
            explained = explained[slot] if slot is not None and slot < len(explained) else None
        return None if explained is None else self._trace.reasons[explained]

    def _signature(self, row: StepRow, slot: int, formula: tuple[Any, ...]) -> tuple[Any, ...]:
        """A key that decides the verdict on a formula without values; empty if the node saved values.

        In a large graph no values are saved: thousands of gradients have equal keys, and one check serves all of them.
        """
        if self._trace.saved and self._trace.lookup.saved(row.pass_id, row.own_node):
            return ()
        before = row.before if isinstance(row.before, tuple) else (row.before,)
        after = row.after[slot] if isinstance(row.after, tuple) else row.after
        return (*formula, *map(self._value_signature, (after, *before)))

    def _value_signature(self, index: int | None) -> tuple[Any, ...] | None:
        """The shape and dtype of a value, and whether its numbers are known."""
        if index is None:
            return None
        shape, dtype, _, numbers, _, note = self._trace.values[index]
        return shape, dtype, numbers is None, note is None


class _SymbolicVerifier:
    """A verifier that computes nothing: it gives every formula in symbols only, with a note that says why."""

    def __init__(self, why: str) -> None:
        self._notes = (Note.of(why),)

    def check_sent(self, op: str, slot: int, names: Mapping[str, Any], value: Value) -> ReasonRow:
        """The formula of the installed torch, or the first one in ``formulas.json``."""
        first = find_formulas(op, slot)[0]
        return ReasonRow(first.text, first.source, SYMBOLS, self._notes)

    def modes_paused(self) -> AbstractContextManager[None]:
        """A context that does nothing, since nothing is computed."""
        return nullcontext()

    def check_sum(self, terms: Sequence[Values], value: Values) -> ReasonRow:
        """A row without a formula: a sum has only its terms."""
        return ReasonRow("", None, SYMBOLS, self._notes)
