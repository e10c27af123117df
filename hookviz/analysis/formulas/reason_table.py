"""Compute the reasons for all gradients of a trace, as tables that a file can hold."""

from dataclasses import replace
from typing import TypeVar

from hookviz.analysis.formulas.formula_inputs import FormulaInputs
from hookviz.analysis.formulas.verdicts import Verdicts
from hookviz.support.interpreter import gc_paused
from hookviz.support.messages import say
from hookviz.support.progress import progress_if_long
from hookviz.trace import StepRow, TraceData
from hookviz.trace.reason_rows import ReasonRow, StepReasons

AnyTrace = TypeVar("AnyTrace", bound=TraceData)


@gc_paused()
def add_reasons(trace: AnyTrace) -> AnyTrace:
    """Copy ``trace`` with its tables of reasons filled.

    Returns ``trace`` itself if the tables are filled already, or if torch cannot be imported. Gradients with equal
    reasons share a row.
    """
    if trace.explained or trace.verifier is None:
        return trace
    table, explained = _ReasonTable(trace), list[StepReasons]()
    with (
        progress_if_long(say("progress.explaining", n="{n}", total="{total}"), len(trace.rows)) as tick,
        table.verdicts.modes_paused(),
    ):
        for step, row in enumerate(trace.rows):
            explained.append(table.explain(step, row))
            tick()
    return replace(trace, reasons=list(table.places), explained=explained)


class _ReasonTable:
    """The reasons of one trace, without duplicate rows."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self.verdicts = Verdicts(trace, FormulaInputs(trace))
        self.places: dict[ReasonRow, int] = {}
        """Row → its place in the table."""

    def explain(self, step: int, row: StepRow) -> StepReasons:
        """Add the reasons for the gradients of a step, and return their places in the table."""
        if row.kind == "compute":
            if not isinstance(row.after, tuple):
                return self._explain_sent(step, row, 0, row.after)
            places = tuple(self._explain_sent(step, row, slot, value) for slot, value in enumerate(row.after))
            return None if all(place is None for place in places) else places
        if row.kind == "accumulate" or (row.kind == "arrive" and len(row.parts) > 1):
            return self._add(self.verdicts.find_sum(step))
        return None

    def _explain_sent(self, step: int, row: StepRow, slot: int, value: int | None) -> int | None:
        if value is None or (row.node, slot) not in self._trace.edges:
            return None
        return self._add(self.verdicts.find_sent(step, slot))

    def _add(self, row: ReasonRow | None) -> int | None:
        return None if row is None else self.places.setdefault(row, len(self.places))
