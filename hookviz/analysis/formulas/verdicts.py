"""Whether formulas come to what was recorded: read from the trace where its file says so, else found out now."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any

from hookviz.analysis.formulas.derivatives import formulas, is_reading
from hookviz.analysis.formulas.formula_inputs import FormulaInputs
from hookviz.trace import Note, StepRow, TraceData
from hookviz.trace.reason_rows import SYMBOLS, ReasonRow, Verifier
from hookviz.trace.values import Value, Values


class Verdicts:
    """What is known of the formulas of one trace."""

    def __init__(self, trace: TraceData, inputs: FormulaInputs) -> None:
        self._trace, self._inputs = trace, inputs
        self._alike: dict[tuple[Any, ...], ReasonRow] = {}
        """What looks alike to a formula that lacks a value → the same row for all of it."""

    @cached_property
    def _quiet(self) -> Callable[[], AbstractContextManager[None]]:
        return self._verifier.quiet

    @cached_property
    def _verifier(self) -> Verifier:
        """Finds out what is not stored: imported only if something is not."""
        if any(note.key == "redacted.values" for note in self._trace.remarks):
            return _Symbols("why.redacted")
        return self._trace.verifier or _Symbols("why.no_torch")

    def sent(self, step: int, slot: int) -> ReasonRow | None:
        """About what the node that computes at ``step`` sent to its input ``slot``; None where no formula is known."""
        row = self._trace.rows[step]
        op = self._trace.ops[row.node]
        stored = self._stored(step, slot)
        if stored is not None and is_reading(stored.reading, op, slot):
            return stored
        if not formulas(op, slot):
            return None
        look = self._look(row, op, slot)
        if look in self._alike:
            return self._alike[look]
        value = self._trace.value((row.after if isinstance(row.after, tuple) else (row.after,))[slot])
        assert isinstance(value, Value)
        with self._quiet():
            found = self._verifier.sent(op, slot, self._inputs.names(step, slot), value)
        if look and found.verdict == SYMBOLS:
            self._alike[look] = found
        return found

    def total(self, step: int) -> ReasonRow:
        """About the sum that arrives or is accumulated at ``step``."""
        stored = self._stored(step, None)
        if stored is not None:
            return stored
        with self._quiet():
            return self._verifier.total(self._inputs.terms(step), self._trace.value(self._trace.rows[step].after))

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Within this, many formulas are found out at less cost: ``Verifier.quiet`` is entered once for all of them."""
        with self._verifier.quiet():
            self._quiet = nullcontext
            try:
                yield
            finally:
                self._quiet = self._verifier.quiet

    def _stored(self, step: int, slot: int | None) -> ReasonRow | None:
        explained = self._trace.explained[step] if self._trace.explained else None
        if isinstance(explained, tuple):
            explained = explained[slot] if slot is not None and slot < len(explained) else None
        return None if explained is None else self._trace.reasons[explained]

    def _look(self, row: StepRow, op: str, slot: int) -> tuple[Any, ...]:
        """All that decides which value a formula lacks, where the node has saved nothing; else nothing.

        In a large graph no node has: then thousands of them are alike, and to look at one of them is enough.
        """
        if self._trace.saved and self._trace.lookup.saved(row.pass_id, row.node):
            return ()
        before = row.before if isinstance(row.before, tuple) else (row.before,)
        after = row.after[slot] if isinstance(row.after, tuple) else row.after
        return (op, slot, *map(self._kind, (after, *before)))

    def _kind(self, index: int | None) -> tuple[Any, ...] | None:
        if index is None:
            return None
        shape, dtype, _, numbers, _, note = self._trace.values[index]
        return shape, dtype, numbers is None, note is None


class _Symbols:
    """Where no value can be put into a formula: tells it in symbols, and why."""

    def __init__(self, why: str) -> None:
        self._why = (Note.of(why),)

    def sent(self, op: str, slot: int, names: Mapping[str, Any], value: Value) -> ReasonRow:
        """The formula of the installed torch, or the first that is known."""
        first = formulas(op, slot)[0]
        return ReasonRow(first.text, first.source, SYMBOLS, self._why)

    def quiet(self) -> AbstractContextManager[None]:
        """Nothing is computed."""
        return nullcontext()

    def total(self, terms: Sequence[Values], value: Values) -> ReasonRow:
        """A sum has no formula besides its terms."""
        return ReasonRow("", None, SYMBOLS, self._why)
