"""Why a gradient is what it is: the formula, the values in it, and whether they come to what was recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hookviz.analysis.formulas.derivatives import names_of, parsed
from hookviz.analysis.formulas.evaluation import NotRecorded
from hookviz.analysis.formulas.formula_inputs import FormulaInputs
from hookviz.analysis.formulas.formula_text import SUMMAND, Writer, text_of
from hookviz.analysis.formulas.verdicts import Verdicts
from hookviz.support.messages import join, say
from hookviz.support.table import Table
from hookviz.trace import Note, Step, StepRow, TraceData
from hookviz.trace.reason_rows import EXPLAINED, UNEXPLAINED, ReasonRow, Verdict
from hookviz.trace.rows import BACKWARD_LOCATION
from hookviz.trace.sentences import format_values
from hookviz.trace.values import Value

LINE = 140
"""A formula that gets longer than this with its values in it is told without them."""


@dataclass(frozen=True)
class Reason:
    """Why one gradient is what it is."""

    on: str
    """The tensor to which it goes."""
    formula: str
    """In the names that torch uses: ``grad × other``; empty where no formula is known."""
    filled: str
    """The same with the values in it: ``2 × 4``; empty unless it comes to what was recorded, and fits on a line."""
    value: Value | None
    """The gradient that was recorded."""
    source: str | None
    """The text in torch's ``derivatives.yaml`` of which the formula is a reading."""
    verdict: Verdict
    """``explained``, ``symbols only`` or ``not explained``."""
    note: str = ""
    """What else there is to say: what was summed over, or why there is no more than this."""

    @property
    def text(self) -> str:
        """The reason on one line: ``grad × other = 2 × 4 = 8``."""
        if self.verdict == UNEXPLAINED:
            return say("why.unexplained")
        parts = [self.formula]
        if self.verdict == EXPLAINED:
            shown = text_of(self.value).text
            parts += [shown] if self.filled == shown else [self.filled, shown]
        return " = ".join(part for part in parts if part)


def why(trace: TraceData, step: int) -> Table[Reason]:
    """The reasons for a step; see ``Trace.why``."""
    head = [say(f"table.{name}") for name in ("on", "why", "source", "note")]
    return Table(Explainer(trace).reasons(step), head, _cells, nothing=say("why.nothing"))


def _cells(reason: Reason) -> tuple[str, ...]:
    return reason.on, reason.text, reason.source or "", reason.note


class Explainer:
    """Finds reasons in one trace, each gradient's once."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._inputs = FormulaInputs(trace)
        self._verdicts = Verdicts(trace, self._inputs)
        self._computed: dict[tuple[int, int], Reason | None] = {}

    def reasons(self, step: int, most: int | None = None) -> list[Reason]:
        """Those for a step in which a node computes, or a gradient arrives or is accumulated; none for any other.

        Of a node that sends very many gradients, those for the first ``most``.
        """
        row = self.trace.rows[step]
        if row.kind == "compute":
            slots = range(len(row.after) if isinstance(row.after, tuple) else 1)
            found = (self._sent(step, slot) for slot in slots[:most])
            return [reason for reason in found if reason is not None]
        if row.kind == "arrive":
            return self._arrived(self.trace.steps[step])
        return [self._accumulated(self.trace.steps[step])] if row.kind == "accumulate" else []

    # -- what a node computes

    def _sent(self, step: int, slot: int) -> Reason | None:
        """That for one edge of the node, None where it sent nothing."""
        if (step, slot) not in self._computed:
            row = self.trace.rows[step]
            self._computed[step, slot] = self._found(step, row, slot)
        return self._computed[step, slot]

    def _found(self, step: int, row: StepRow, slot: int) -> Reason | None:
        after = row.after if isinstance(row.after, tuple) else (row.after,)
        if slot >= len(after):  # only a file can say that this edge carried something
            return None
        place, value = self.trace.edges.get((row.node, slot)), self.trace.value(after[slot])
        if place is None or not isinstance(value, Value):
            return None
        found, on = self._verdicts.find_sent(step, slot), self.trace.name(*place)
        if found is None:
            return Reason(on, "", "", value, None, UNEXPLAINED, self._no_entry(row))
        return _write_reason(found, on, value, self._inputs.names(step, slot))

    def _no_entry(self, row: StepRow) -> str:
        """Why there is no formula for what a node sent: the node is a Function in Python, or nobody wrote it down."""
        saved = self.trace.lookup.saved(row.pass_id, row.node)
        written = [part.plain for part in saved if part.name == BACKWARD_LOCATION]
        if not written:
            return say("why.no_entry", op=self.trace.ops[row.node])
        return say("why.function", where=written[-1]) if written[-1] else say("why.function.hidden")

    # -- what arrives, and what is added up

    def _arrived(self, step: Step) -> list[Reason]:
        """Why each contribution, and if there are several, their sum."""
        parts = [self._contribution(step, *part) for part in step.row.parts]
        return parts if len(parts) < 2 else [*parts, self._sum(step, say("why.sum", count=len(parts)))]

    def _contribution(self, step: Step, node: int, slot: int, index: int | None) -> Reason:
        value = self.trace.value(index)
        assert not isinstance(value, tuple)  # an edge carries one gradient
        sent = self.trace.lookup.compute_steps.get((step.pass_id, node))
        reason = None if node < 0 or sent is None else self._sent(sent, slot)
        if reason is None:
            note = say("part.seed" if node < 0 else "why.unseen")
            return Reason(step.on, "", format_values(value), value, None, EXPLAINED if node < 0 else UNEXPLAINED, note)
        if value is None or reason.value == value or repr(reason.value) == repr(value):
            return reason
        changed = say(
            "why.changed_later",
            before=format_values(reason.value),
            after=format_values(value),
            op=self.trace.name(node),
        )
        return replace(reason, value=value, verdict=UNEXPLAINED, filled="", note=changed)

    def _accumulated(self, step: Step) -> Reason:
        """The old ``.grad`` and the gradient that came last."""
        return self._sum(step, "grad" if step.before is None else ".grad + grad")

    def _sum(self, step: Step, formula: str) -> Reason:
        """What several gradients add up to."""
        found = self._verdicts.find_sum(step.index)
        filled = _write_sum(self._inputs.terms(step.index)) if found.verdict == EXPLAINED else ""
        note = _write_notes(found.notes, formula)
        assert not isinstance(step.after, tuple)  # one gradient arrives
        return Reason(step.on, formula, filled, step.after, None, found.verdict, note)


def _write_reason(found: ReasonRow, on: str, value: Value, names: Mapping[str, Any]) -> Reason:
    """The reason that a row tells, with the formula as a person reads it."""
    silent = any(note.key == "why.case" for note in found.notes)
    formula = "" if silent else Writer(names).write(parsed(found.reading))
    filled = _fill_in(found.reading, names, formula) if found.verdict == EXPLAINED else ""
    return Reason(on, formula, filled, value, found.source, found.verdict, _write_notes(found.notes, formula))


def _write_notes(notes: Sequence[Note], formula: str) -> str:
    """What else there is to say, in sentences."""
    told = (say(note.key, formula=formula) if note.key == "why.differs" else note.text for note in notes)
    return join("join.sentences", told)


def _fill_in(reading: str, names: Mapping[str, Any], formula: str) -> str:
    """The formula with the values in it; empty where they do not fit, or there are none."""
    known = {name: names[name] for name in names_of(reading) if name in names}
    texts = {name: text_of(thing) for name, thing in known.items() if not isinstance(thing, NotRecorded)}
    writer = Writer(names, texts)
    filled = writer.write(parsed(reading))
    return filled if writer.fits and len(filled) <= LINE and filled != formula else ""


def _write_sum(terms: Sequence[Any]) -> str:
    """The values of a sum; empty where they do not fit."""
    pieces = [text_of(term) for term in terms]
    if not all(piece.fits for piece in pieces):
        return ""
    return " + ".join(piece.within(SUMMAND) for piece in pieces) if len(pieces) > 1 else pieces[0].text
