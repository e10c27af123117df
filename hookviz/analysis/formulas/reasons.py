"""Why a gradient is what it is: the formula, the values in it, and whether they come to what was recorded."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from hookviz.analysis.formulas.bounded_values import BoundedValue, add
from hookviz.analysis.formulas.derivatives import Formula, derivatives, formulas, names_in, needs, passes_each, short
from hookviz.analysis.formulas.evaluation import Missing, NoReading, NotRecorded, evaluate
from hookviz.analysis.formulas.formula_text import SUMMAND, Writer, text_of
from hookviz.analysis.formulas.functions import TooLarge
from hookviz.analysis.formulas.verification import agrees, rebuilt
from hookviz.support.messages import join, say
from hookviz.support.table import Table
from hookviz.trace import Step, StepRow, TraceData
from hookviz.trace.rows import BACKWARD
from hookviz.trace.sentences import brief
from hookviz.trace.values import Value

EXPLAINED, SYMBOLS, UNEXPLAINED = "explained", "symbols only", "not explained"
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
    verdict: str
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
        self._computed: dict[tuple[int, int], Reason | None] = {}
        self._shapes: dict[int, list[Any]] = {}

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
        return [self._accumulated(step)] if row.kind == "accumulate" else []

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
        op = self.trace.ops[row.node]
        known = formulas(op, slot)
        reason = Reason(self.trace.name(*place), "", "", value, None, UNEXPLAINED)
        if not known:
            return replace(reason, note=self._no_entry(row, op))
        if step not in self._shapes:
            self._shapes[step] = [None if i is None else Value(*self.trace.values[i]).shape for i in after]
        shown = self._names(row, op, slot, self._shapes[step])
        reasons = [_explained(_quoted(reason, found, known[0]), found, shown) for found in known]
        # A trace may come from another release of torch than the installed one: what was recorded decides.
        return next((found for found in reasons if found.verdict == EXPLAINED), reasons[0])

    def _no_entry(self, row: StepRow, op: str) -> str:
        saved = self._saved(row)
        if BACKWARD not in saved:
            return say("why.no_entry", op=op)
        where = saved[BACKWARD]
        return say("why.function", where=where) if where else say("why.function.hidden")

    def _saved(self, row: StepRow) -> dict[str, Any]:
        """Name in the formulas → what the node of a step had saved, or why that is not known."""
        found: dict[str, Any] = {}
        for saved in self.trace.lookup.saved(row.pass_id, row.node):
            value = self.trace.value(saved.value)
            thing = NotRecorded(saved.why) if saved.why else saved.plain if value is None else value
            found[short(saved.name)] = list(value) if isinstance(value, tuple) else thing
        return found

    def _names(self, row: StepRow, op: str, slot: int, shapes: Sequence[Any]) -> dict[str, Any]:
        """Name in the formulas → value, plain value, or why it is not known."""
        saved = self._saved(row)
        names = {short(name): saved.get(short(name), NotRecorded("many")) for name in needs(op)}
        if names.get("correction", 0) is None:
            names["correction"] = 1
        before = row.before if isinstance(row.before, tuple) else (row.before,)
        grads = [None if i is None else self.trace.value(i) for i in before]
        grad = grads[slot if passes_each(op) and slot < len(grads) else 0] if grads else None
        names |= {"grads": grads, "grad": NotRecorded("no_grad") if grad is None else grad, "slot": slot}
        return names | _part(names.get("dim"), shapes, slot)

    # -- what arrives, and what is added up

    def _arrived(self, step: Step) -> list[Reason]:
        """Why each contribution, and if there are several, their sum."""
        parts = [self._contribution(step, *part) for part in step.row.parts]
        if len(parts) < 2:
            return parts
        values = [part.value for part in parts]
        return [*parts, _sum(step.on, say("why.sum", count=len(parts)), values, step.after)]

    def _contribution(self, step: Step, node: int, slot: int, index: int | None) -> Reason:
        value = self.trace.value(index)
        assert not isinstance(value, tuple)  # an edge carries one gradient
        sent = self.trace.lookup.computed.get((step.pass_id, node))
        reason = None if node < 0 or sent is None else self._sent(sent, slot)
        if reason is None:
            note = say("part.seed" if node < 0 else "why.unseen")
            return Reason(step.on, "", brief(value), value, None, EXPLAINED if node < 0 else UNEXPLAINED, note)
        if value is None or reason.value == value or repr(reason.value) == repr(value):
            return reason
        changed = say("why.changed_later", before=brief(reason.value), after=brief(value), op=self.trace.name(node))
        return replace(reason, value=value, verdict=UNEXPLAINED, filled="", note=changed)

    def _accumulated(self, step: int) -> Reason:
        """The old ``.grad`` and the gradient that came last."""
        row = self.trace.rows[step]
        before, after = self.trace.value(row.before), self.trace.value(row.after)
        of_pass = self.trace.lookup.steps(row.pass_id)
        earlier = (self.trace.rows[i] for i in reversed(of_pass[: bisect_left(of_pass, step)]))
        grad = self.trace.value(next((r.after for r in earlier if r.node == row.node and r.after is not None), None))
        on = self.trace.name(row.node, row.output)
        return _sum(on, "grad", [grad], after) if before is None else _sum(on, ".grad + grad", [before, grad], after)


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


def _quoted(reason: Reason, found: Formula, first: Formula) -> Reason:
    """``reason`` with PyTorch's own text; that of another release, where ``first``, the installed one's, is not it."""
    if found is first:
        return replace(reason, source=found.source)
    return replace(reason, source=found.wordings[0], note=say("why.other_release"))


def _explained(reason: Reason, found: Formula, shown: Mapping[str, Any]) -> Reason:
    """``reason`` with the formula in it, and with values if these come to what was recorded."""
    with _quietly():
        names = {name: rebuilt(thing) for name, thing in shown.items()}
        reason = replace(reason, formula=Writer(names).write(found.tree), verdict=SYMBOLS)
        if found.entry is not None and reason.source is None:
            reason = replace(reason, note=say("why.no_file" if not derivatives() else "why.no_text"))
        try:
            computed = evaluate(found.tree, names)
            goal = rebuilt(reason.value)
            if isinstance(goal, NotRecorded):
                raise Missing(goal.why)
            summed = agrees(computed, goal.tensor)
        except Missing as missing:
            return replace(reason, note=say(f"why.{missing}"))
        except TooLarge:
            return replace(reason, note=say("why.large"))
        except NoReading:
            return replace(reason, formula="", verdict=UNEXPLAINED, note=say("why.case"))
        except Exception as error:  # torch cannot compute with such values
            return replace(reason, verdict=UNEXPLAINED, note=say("why.failed", error=type(error).__name__))
        if summed is None:
            return replace(reason, verdict=UNEXPLAINED, note=say("why.differs", formula=reason.formula))
        note = join("join.sentences", [reason.note, summed])
        return replace(reason, filled=_filled(found, shown, names, reason), verdict=EXPLAINED, note=note)


def _filled(found: Formula, shown: Mapping[str, Any], names: Mapping[str, Any], reason: Reason) -> str:
    """The formula with the values in it; empty where they do not fit, or there are none."""
    texts = {name: text_of(shown[name]) for name in names_in(found.tree) if name in shown}
    writer = Writer(names, texts)
    filled = writer.write(found.tree)
    return filled if writer.fits and len(filled) <= LINE and filled != reason.formula else ""


def _sum(on: str, formula: str, parts: Sequence[Any], after: Any) -> Reason:
    """What several gradients add up to, in the order in which they come."""
    reason = Reason(on, formula, "", after, None, SYMBOLS)
    with _quietly():
        terms = [rebuilt(part) for part in parts]
        goal = rebuilt(after)
        if not isinstance(goal, BoundedValue) or not all(isinstance(part, BoundedValue) for part in terms):
            return replace(reason, note=say("why.large"))
        try:
            same = agrees(reduce(add, terms), goal.tensor) is not None
        except Exception as error:  # torch cannot add up such values: they are of an 8-bit dtype, or of other shapes
            return replace(reason, verdict=UNEXPLAINED, note=say("why.failed", error=type(error).__name__))
        if not same:
            return replace(reason, verdict=UNEXPLAINED, note=say("why.differs", formula=formula))
    pieces = [text_of(part) for part in parts]
    filled = " + ".join(piece.within(SUMMAND) for piece in pieces) if len(pieces) > 1 else pieces[0].text
    return replace(reason, filled=filled if all(piece.fits for piece in pieces) else "", verdict=EXPLAINED)


@contextmanager
def _quietly() -> Iterator[None]:
    """Compute as if nobody were watching, whatever modes are in force, and leave no trace of it."""
    plainly = (torch.no_grad(), torch._C.DisableTorchFunction(), _disable_current_modes())
    with plainly[0], plainly[1], plainly[2], torch.autocast("cpu", enabled=False):
        yield
