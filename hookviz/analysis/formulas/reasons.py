"""Explain a gradient: its formula, the values in it, and whether their result equals the recorded gradient."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from hookviz.analysis.formulas.derivatives import (
    Formula,
    find_formulas,
    formula_name,
    has_output_per_input,
    required_names,
)
from hookviz.analysis.formulas.evaluation import Missing, NotRecorded
from hookviz.analysis.formulas.formula_writer import SUMMAND, FormulaWriter, NotCovered, text_of
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.table import ShownRow, Table, cells_of, head_of
from hookviz.trace import Note, Step, StepRow, TraceData
from hookviz.trace.rows import BACKWARD_LOCATION
from hookviz.trace.sentences import format_values
from hookviz.trace.values import Value, as_tuple

_UNSEEN = N_("The step that computed it was not seen.")
_MISSING_VALUES = {
    "many": N_(
        "No values: hookviz keeps them only in graphs of at most 256 nodes, and at most 1,024 numbers in one recording."
    ),
    "large": N_("No values: there are more than 64 numbers."),
    "hidden": N_("No values: hookviz does not read the numbers of such a tensor."),
    "hooks": N_("No values: only a saved-tensor hook could unpack them, and hookviz does not call it."),
    "changed": N_("No values: the tensors that the node saved were changed in place or freed."),
    "torch": N_("No values: they need PyTorch 2.10 or newer, which shows what a node has saved without unpacking it."),
    "none": N_("No values: this torch does not save the values that the formula needs."),
    "no_grad": N_("No values: no gradient arrived for this output."),
    "unseen": _UNSEEN,
    "part": N_("No values: the lengths of the parts before this one are not known."),
}


Verdict = Literal["explained", "symbols only", "not explained", "edited"]
FormulaVerifier = Callable[[str, Mapping[str, Any], Any], list[Note] | None]
"""Takes a formula, the values of its names and a gradient; returns notes, or None if the formula gives another one."""

MAX_FORMULA_LENGTH = 140
"""If a formula with its values has more characters than this, it is shown without them."""


@dataclass(frozen=True, repr=False)
class Reason(ShownRow):
    """The explanation of one gradient."""

    on: str
    """The tensor or node that receives the gradient."""
    formula: str
    """The formula in the names that torch uses: ``grad × other``; empty if no formula is known."""
    filled: str
    """The formula with its values: ``2 × 4``; empty unless it is explained, and short enough."""
    value: Value | None
    """The recorded gradient."""
    source: str | None
    """The text in torch's ``derivatives.yaml`` from which the formula comes."""
    verdict: Verdict
    """``explained`` (the formula gives the recorded gradient), ``symbols only`` (that could not be checked),
    ``not explained``, or ``edited`` (it was changed on its way, and the formula says by what)."""
    note: str = ""
    """A remark: the dimensions that were summed over, or why values or an explanation are missing."""

    @property
    def text(self) -> str:
        """The reason on one line: ``grad × other = 2 × 4 = 8``."""
        if self.verdict == "not explained":
            return _("not explained")
        parts = [self.formula]
        if self.verdict == "explained":
            shown = text_of(self.value).text
            parts += [shown] if self.filled == shown else [self.filled, shown]
        return " = ".join(filter(None, parts))

    def _columns(self) -> dict[str, str]:
        source = self.source or ""
        return {_("on"): self.on, _("why"): self.text, _("in derivatives.yaml"): source, _("note"): self.note}


def explain_step(trace: TraceData, step: int) -> Table[Reason]:
    """Explain the gradients of a step; see ``Trace.why``."""
    reasons = list(Explainer(trace).reasons(step))
    return Table(
        reasons,
        head_of(reasons),
        cells_of,
        nothing=_("Only steps in which a node computes, or a gradient arrives or is accumulated, have an explanation."),
    )


class Explainer:
    """Explains the gradients of one trace, each of them only once."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._inputs = FormulaInputs(trace)
        self._is_redacted = any(note.fact == "redacted.values" for note in trace.remarks)
        self._sent_reasons: dict[tuple[int, int], Reason | None] = {}
        """Step and slot → the reason for the gradient that a node sent there."""

    def reasons(self, step: int, limit: int | None = None) -> list[Reason]:
        """The reasons for a step in which a node computes, or a gradient arrives or is accumulated; else none.

        For a node that sends more gradients than ``limit``, only the first ``limit`` are explained.
        """
        row = self.trace.rows[step]
        if row.kind == "compute":
            slots = range(len(as_tuple(row.after)))
            reasons = (self._explain_sent(step, slot) for slot in slots[:limit])
            return [reason for reason in reasons if reason is not None]
        if row.kind == "arrive":
            return self._explain_arrival(self.trace.steps[step])
        return [self._explain_accumulation(self.trace.steps[step])] if row.kind == "accumulate" else []

    # -- the gradients that a node computes

    def _explain_sent(self, step: int, slot: int) -> Reason | None:
        """The reason for the gradient that a node sent on one edge; None if it sent none."""
        if (step, slot) not in self._sent_reasons:
            self._sent_reasons[step, slot] = self._find_sent_reason(step, self.trace.rows[step], slot)
        return self._sent_reasons[step, slot]

    def _find_sent_reason(self, step: int, row: StepRow, slot: int) -> Reason | None:
        after = as_tuple(row.after)
        if slot >= len(after):  # happens only in a damaged or foreign file
            return None
        place, value = self.trace.edges.get((row.own_node, slot)), self.trace.value(after[slot])
        if place is None or not isinstance(value, Value):
            return None
        on, formulas = self.trace.name(*place), find_formulas(self.trace.ops[row.own_node], slot)
        if not formulas:
            return Reason(on, "", "", value, None, "not explained", self._describe_missing_formula(row))
        names = self._inputs.names(step, slot)
        reasons = [self._try_formula(formula, names, on, value) for formula in formulas]
        return next((reason for reason in reasons if reason.verdict != "not explained"), reasons[0])

    def _try_formula(self, formula: Formula, names: Mapping[str, Any], on: str, value: Value) -> Reason:
        try:
            text = FormulaWriter(names).write(formula.text)
        except NotCovered:
            note = _("PyTorch has a formula for this case, but hookviz cannot read it.")
            return Reason(on, "", "", value, formula.source, "not explained", note)
        verdict, note = self._verify(formula.text, names, value, text)
        filled = _fill_in(formula.text, names, text) if verdict == "explained" else ""
        return Reason(on, text, filled, value, formula.source, verdict, note)

    def _verify(self, formula: str, names: Mapping[str, Any], value: Any, text: str) -> tuple[Verdict, str]:
        """Whether a formula, whose ``text`` is for people, gives the recorded gradient ``value``, and a remark."""
        verify = load_verifier()
        if self._is_redacted:
            return "symbols only", _("No values: the numbers are left out of this page.")
        if verify is None:
            return "symbols only", _("No values: they need PyTorch, which is not installed.")
        try:
            notes = verify(formula, names, value)
        except Missing as missing:
            return "symbols only", _(_MISSING_VALUES[str(missing)])
        except Exception as error:  # torch cannot compute with such values
            text = _("The formula could not be computed with these values ({error}).")
            return "not explained", text.format(error=type(error).__name__)
        if notes is None:
            return "not explained", _("{formula} does not give the recorded gradient.").format(formula=text)
        return "explained", join_sentences([note.text for note in notes])

    def _describe_missing_formula(self, row: StepRow) -> str:
        """Say why a node has no formula: it is a Function written in Python, or ``formulas.json`` has no entry."""
        saved = self.trace.lookup.saved(row.pass_id, row.own_node)
        sources = [value.plain for value in saved if value.name == BACKWARD_LOCATION]
        if not sources:
            return _("hookviz has no formula for this input of {op}.").format(op=self.trace.ops[row.own_node])
        return (
            _("A Function of your own: its backward is in your code, at {where}.").format(where=sources[-1])
            if sources[-1]
            else _("A Function written in Python: the file and line of its backward are left out of this page.")
        )

    # -- gradients that arrive and are added up

    def _explain_arrival(self, step: Step) -> list[Reason]:
        """The reasons for each contribution to a gradient and, if there are several, for their sum."""
        reasons = [self._explain_contribution(step, *part) for part in step.row.parts]
        if len(reasons) > 1:
            reasons.append(self._explain_sum(step, _("sum of {count} contributions").format(count=len(reasons))))
        edit = self._find_edit(step)
        is_edited = edit is not None and edit.before == step.row.parts[0][2] and edit.after == step.row.after
        return [*reasons, self._explain_edit(step, edit)] if edit is not None and is_edited else reasons

    def _find_edit(self, step: Step) -> StepRow | None:
        """Return the row just before a step if it is an edit in place of another gradient that changed this one."""
        row = self.trace.rows[step.index - 1] if step.index else None
        is_edit = row is not None and row.kind == "aliased" and (row.node, row.output) == (step.node, step.output)
        return row if is_edit else None

    def _explain_edit(self, step: Step, edit: StepRow) -> Reason:
        """The reason for a gradient that was changed because another one in the same memory was edited."""
        before, after = self.trace.value(edit.before), self.trace.value(edit.after)
        assert not isinstance(after, tuple)  # an edge carries one gradient
        cause = None if edit.cause is None else self.trace.steps[edit.cause]
        names = {"before": format_values(before), "after": format_values(after)}
        text = _("{before} → {after}: edited in place")
        if cause is not None and cause.hook is not None:
            names |= {"hook": cause.hook.label, "on": cause.on, "step": f"{cause.index + 1:,}"}
            text = _("{before} → {after}: {hook} on {on} edited it in place (step {step})")
        note = _("Both gradients are kept in the same memory.")
        return Reason(step.on, text.format(**names), "", after, None, "edited", note)

    def _explain_contribution(self, step: Step, node: int | None, slot: int, index: int | None) -> Reason:
        """The reason for one contribution, which ``node`` sent from ``slot``; a seed if ``node`` is None."""
        value = self.trace.value(index)
        assert not isinstance(value, tuple)  # an edge carries one gradient
        computed_at = None if node is None else self.trace.lookup.compute_steps.get((step.pass_id, node))
        reason = None if computed_at is None else self._explain_sent(computed_at, slot)
        if reason is None:
            verdict: Verdict = "explained" if node is None else "not explained"
            note = _("the seed") if node is None else _(_UNSEEN)
            return Reason(step.on, "", format_values(value), value, None, verdict, note)
        if value is None or reason.value == value or repr(reason.value) == repr(value):
            return reason
        edit = self._find_edit(step)
        if edit is not None and edit.after == index:
            return self._explain_edit(step, edit)
        text = _("{op} computed {before}; then a hook of the node turned it into {after}.")
        names = {"op": self.trace.name(node), "before": format_values(reason.value), "after": format_values(value)}
        return replace(reason, value=value, verdict="not explained", filled="", note=text.format(**names))

    def _explain_accumulation(self, step: Step) -> Reason:
        """The reason for a ``.grad``: the sum of the old ``.grad`` and the gradient that arrived last."""
        return self._explain_sum(step, "grad" if step.before is None else ".grad + grad")

    def _explain_sum(self, step: Step, text: str) -> Reason:
        """The reason for a sum of gradients."""
        terms, total = self._inputs.terms(step.index), self._inputs.term(step.row.after)
        verdict, note = self._verify("add_up(terms)", {"terms": terms}, total, text)
        filled = _write_sum(terms) if verdict == "explained" else ""
        assert not isinstance(step.after, tuple)  # a sum is a single gradient
        return Reason(step.on, text, filled, step.after, None, verdict, note)


def _fill_in(formula: str, names: Mapping[str, Any], text: str) -> str:
    """Write the formula with its values; empty if they do not fit, or if it has none."""
    writer = FormulaWriter(names, with_values=True)
    filled = writer.write(formula)
    return filled if writer.fits and len(filled) <= MAX_FORMULA_LENGTH and filled != text else ""


def _write_sum(terms: Sequence[Any]) -> str:
    """Write a sum with its values; empty if they do not fit."""
    pieces = [text_of(term) for term in terms]
    if not all(piece.fits for piece in pieces):
        return ""
    return " + ".join(piece.within(SUMMAND) for piece in pieces) if len(pieces) > 1 else pieces[0].text


@cache
def load_verifier() -> FormulaVerifier | None:
    """Return the function that computes formulas with torch; None if torch cannot be imported."""
    try:  # the only import of torch in a part that works without torch
        from hookviz.autograd.formulas.verifier import verify_formula
    except (ImportError, OSError):  # torch is not installed, or a library of its own is missing
        return None
    return verify_formula


class FormulaInputs:
    """Looks up the inputs of formulas in one trace: gradients, values saved by nodes, and the terms of sums."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace

    def names(self, step: int, slot: int) -> dict[str, Any]:
        """Name in the formulas of the node that computes at ``step`` → a value, a setting, or a ``NotRecorded``."""
        row = self._trace.rows[step]
        op = self._trace.ops[row.own_node]
        saved = self._collect_saved(row)
        required = (formula_name(name) for name in required_names(op))
        names = {name: saved.get(name, NotRecorded("many")) for name in required}
        if names.get("correction", 0) is None:
            names["correction"] = 1
        before = as_tuple(row.before)
        grads = [self._trace.value(index) for index in before]
        grad = grads[slot if has_output_per_input(op) and slot < len(grads) else 0] if grads else None
        names |= {"grads": grads, "grad": NotRecorded("no_grad") if grad is None else grad, "slot": slot}
        shapes = [None if index is None else self._trace.values[index][0] for index in as_tuple(row.after)]
        return names | _locate_part(names.get("dim"), shapes, slot)

    def _collect_saved(self, row: StepRow) -> dict[str, Any]:
        """Name in the formulas → what the node of a step saved, or a ``NotRecorded``."""
        names: dict[str, Any] = {}
        for saved in self._trace.lookup.saved(row.pass_id, row.own_node):
            value = self._trace.value(saved.value)
            single = NotRecorded(saved.why) if saved.why else saved.plain if value is None else value
            names[formula_name(saved.name)] = list(value) if isinstance(value, tuple) else single
        return names

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
