"""All that torch can say of the formulas of a trace, as tables of a file."""

from dataclasses import replace
from typing import TypeVar

from hookviz.analysis.formulas.formula_inputs import FormulaInputs
from hookviz.analysis.formulas.verdicts import Verdicts
from hookviz.support.interpreter import gc_paused
from hookviz.support.messages import say
from hookviz.support.progress import progress_if_long
from hookviz.trace import StepRow, TraceData
from hookviz.trace.reason_rows import ReasonRow, StepReasons

Kind = TypeVar("Kind", bound=TraceData)


@gc_paused()
def with_reasons(trace: Kind) -> Kind:
    """``trace`` with its tables of reasons filled; itself where they are filled already, or torch cannot be imported.

    Gradients whose formulas come out in the same way share a row.
    """
    if trace.explained or trace.verifier is None:
        return trace
    table, found = _ReasonTable(trace), list[StepReasons]()
    with (
        progress_if_long(say("progress.explaining", n="{n}", total="{total}"), len(trace.rows)) as tick,
        table.verdicts.modes_paused(),
    ):
        for step, row in enumerate(trace.rows):
            found.append(table.places_of(step, row))
            tick()
    return replace(trace, reasons=list(table.places), explained=found)


class _ReasonTable:
    """The reasons of one trace, each row of them once."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self.verdicts = Verdicts(trace, FormulaInputs(trace))
        self.places: dict[ReasonRow, int] = {}
        """Row → its place."""

    def places_of(self, step: int, row: StepRow) -> StepReasons:
        """The places of the rows of a step."""
        if row.kind == "compute":
            if not isinstance(row.after, tuple):
                return self._sent(step, row, 0, row.after)
            found = tuple(self._sent(step, row, slot, value) for slot, value in enumerate(row.after))
            return None if all(place is None for place in found) else found
        if row.kind == "accumulate" or (row.kind == "arrive" and len(row.parts) > 1):
            return self._place(self.verdicts.find_sum(step))
        return None

    def _sent(self, step: int, row: StepRow, slot: int, value: int | None) -> int | None:
        if value is None or (row.node, slot) not in self._trace.edges:
            return None
        return self._place(self.verdicts.find_sent(step, slot))

    def _place(self, row: ReasonRow | None) -> int | None:
        return None if row is None else self.places.setdefault(row, len(self.places))
