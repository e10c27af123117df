"""Whether formulas come to what was recorded: read from the trace where its file says so, else checked now."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any

from hookviz.analysis.formulas.derivatives import formulas, is_reading, passes_each
from hookviz.analysis.formulas.formula_inputs import FormulaInputs
from hookviz.trace import Note, StepRow, TraceData
from hookviz.trace.reason_rows import SYMBOLS, ReasonRow, Verifier
from hookviz.trace.values import Value, Values


class Verdicts:
    """What is known of the formulas of one trace."""

    def __init__(self, trace: TraceData, inputs: FormulaInputs) -> None:
        self._trace, self._inputs = trace, inputs
        self._by_signature: dict[tuple[Any, ...], ReasonRow] = {}
        """All that decides which value a formula lacks → the row that thousands of gradients share."""

    @cached_property
    def _paused(self) -> Callable[[], AbstractContextManager[None]]:
        return self._verifier.modes_paused

    @cached_property
    def _verifier(self) -> Verifier:
        """Checks what is not stored; torch is imported only if something is not."""
        if any(note.key == "redacted.values" for note in self._trace.remarks):
            return _Symbols("why.redacted")
        return self._trace.verifier or _Symbols("why.no_torch")

    def find_sent(self, step: int, slot: int) -> ReasonRow | None:
        """About what the node that computes at ``step`` sent to its input ``slot``; None where no formula is known."""
        row = self._trace.rows[step]
        op = self._trace.ops[row.node]
        stored = self._stored(step, slot)
        if stored is not None and is_reading(stored.reading, op, slot):
            return stored
        known = formulas(op, slot)
        if not known:
            return None
        signature = self._signature(row, slot, (op, known[0].key, slot if passes_each(op) else 0))
        if signature in self._by_signature:
            return self._by_signature[signature]
        value = self._trace.value((row.after if isinstance(row.after, tuple) else (row.after,))[slot])
        assert isinstance(value, Value)
        with self._paused():
            found = self._verifier.check_sent(op, slot, self._inputs.names(step, slot), value)
        if signature and found.verdict == SYMBOLS:
            self._by_signature[signature] = found
        return found

    def find_sum(self, step: int) -> ReasonRow:
        """About the sum that arrives or is accumulated at ``step``."""
        stored = self._stored(step, None)
        if stored is not None:
            return stored
        with self._paused():
            return self._verifier.check_sum(self._inputs.terms(step), self._trace.value(self._trace.rows[step].after))

    @contextmanager
    def modes_paused(self) -> Iterator[None]:
        """Within this, many formulas are checked at less cost: modes are paused once for all of them."""
        with self._verifier.modes_paused():
            self._paused = nullcontext
            try:
                yield
            finally:
                self._paused = self._verifier.modes_paused

    def _stored(self, step: int, slot: int | None) -> ReasonRow | None:
        explained = self._trace.explained[step] if self._trace.explained else None
        if isinstance(explained, tuple):
            explained = explained[slot] if slot is not None and slot < len(explained) else None
        return None if explained is None else self._trace.reasons[explained]

    def _signature(self, row: StepRow, slot: int, formula: tuple[Any, ...]) -> tuple[Any, ...]:
        """All that decides which value a formula lacks, where the node has saved nothing; else nothing.

        In a large graph no node has: then thousands of gradients have the same one, and to check one of them is enough.
        """
        if self._trace.saved and self._trace.lookup.saved(row.pass_id, row.node):
            return ()
        before = row.before if isinstance(row.before, tuple) else (row.before,)
        after = row.after[slot] if isinstance(row.after, tuple) else row.after
        return (*formula, *map(self._kind, (after, *before)))

    def _kind(self, index: int | None) -> tuple[Any, ...] | None:
        if index is None:
            return None
        shape, dtype, _, numbers, _, note = self._trace.values[index]
        return shape, dtype, numbers is None, note is None


class _Symbols:
    """Stands in where nothing can be computed: every formula is told in symbols, with the reason."""

    def __init__(self, why: str) -> None:
        self._why = (Note.of(why),)

    def check_sent(self, op: str, slot: int, names: Mapping[str, Any], value: Value) -> ReasonRow:
        """The formula of the installed torch, or the first that is known."""
        first = formulas(op, slot)[0]
        return ReasonRow(first.text, first.source, SYMBOLS, self._why)

    def modes_paused(self) -> AbstractContextManager[None]:
        """Nothing is computed."""
        return nullcontext()

    def check_sum(self, terms: Sequence[Values], value: Values) -> ReasonRow:
        """A sum has no formula besides its terms."""
        return ReasonRow("", None, SYMBOLS, self._why)
