"""The words of a step in the panel: sentences, values, reasons, and the question before it."""

from collections.abc import Callable

from hookviz.analysis.formulas.reasons import Explainer
from hookviz.analysis.source_lines.step_lines import CodeLine
from hookviz.player.payload import Glyph, Reason, StepWords
from hookviz.support.messages import N_, _, join_sentences
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, STEP_HOOK_KINDS, Step, StepRow, TraceData, Values
from hookviz.trace.hook_facts import HOOK_FACTS, NODE_HOOK_KINDS
from hookviz.trace.sentences import (
    format_hook_position,
    format_values,
    list_sent_gradients,
    make_sentence,
    make_title,
    name_tensors,
)
from hookviz.trace.steps import make_step
from hookviz.trace.values import Value

_KEPT = N_("Kept in {dict}, {place} of {total}.")
_KEPT_ON_NODE = N_("Kept in the {dict}, {place} of {total}.")
_ON_NODE = N_("Because {on} is not a leaf, its node {op} has that dict as one of its pre-hooks.")
_ON_LEAF = N_("{on} is a leaf: the hook runs when its AccumulateGrad receives the gradient.")
_EARLY = N_(
    "No input requires a gradient, so it ran early, as soon as the gradient of the output was ready. "
    "It may return only None."
)
_PLACES = (N_("first"), N_("second"), N_("third"), N_("fourth"))
"""The places of a hook in its dict."""


_SUBJECTS = {
    "seed": N_("backward pass of {on}"),
    "call": N_("call of {on}"),
}


_GLYPHS: dict[str, Glyph] = {
    "call": "module",
    "forward": "module",
    "cut_short": "module",
    "seed": "seed",
    "retain_grad": "retain",
    "accumulate": "grad",
    "optimizer_step": "optimizer",
    "exception": "exception",
}
_NOTES = ("aliased", "unknown_hook", "compiled", "fast_path", "unobserved")

MAX_GRADIENTS = 24
"""The most gradients of a step that the panel lists."""

_WITHOUT_GRADIENT_BEFORE = (*STEP_HOOK_KINDS, "forward_pre_hook", "exception")
"""Kinds of step whose input is not the gradient or value of the step before: an optimizer's hook gets none, and a
pre-hook without ``with_kwargs`` gets only some inputs."""

_ONE_CARD = {
    "call": N_("called with"),
    "forward": N_("returns"),
    "seed": N_("the gradient it starts with"),
    "arrive": N_("the gradient"),
    "retain_grad": N_("stored in .grad"),
    "accumulate": ".grad",
    "returned": N_("returned"),
    "optimizer_step": N_("parameters"),
}
"""Kind of step that has a card for the value after it alone, unless it has a value before it → the label."""


class StepTexts:
    """Writes the words of the steps of a trace.

    Args:
        explainer: explains their gradients.
        find_line: finds the line of the user's code that a step belongs to.
    """

    def __init__(self, explainer: Explainer, find_line: Callable[[Step], CodeLine | None]) -> None:
        self._explainer, self._find_line = explainer, find_line

    def words(self, step: Step) -> StepWords:
        """Return the words of ``step``."""
        before, after = _card_values(step)
        words: StepWords = {
            "title": make_title(step),
            "sentence": make_sentence(step),
            "forward": step.kind in ("call", "forward", *FORWARD_HOOK_KINDS),
            "before": None if before is None else before,
            "after": None if after is None else after,
            "before_label": (_("takes") if step.kind == "compute" else _("before")),
            "after_label": _after_label(step),
            "gradients": _gradient_rows(step, _gradients(step)),
            "registration": _registration(step),
            "next_hook": _next_hook(step),
        }
        reasons = self._reasons(step)
        if reasons:
            words["reasons"] = reasons
        if step.kind == "accumulate":
            words["writes_grad_of"] = step.on
        line = self._find_line(step)
        if line is not None:
            words["code"] = line.source, line.line, line.note
        return words

    def _reasons(self, step: Step) -> list[Reason]:
        """Return the reasons for the gradients that a node computes, or that arrive.

        If a node sends several gradients, each reason names its target.
        """
        reasons = self._explainer.reasons(step.index, MAX_GRADIENTS) if step.kind in ("compute", "arrive") else []
        names_target = step.kind == "compute" and len(reasons) > 1
        texts = [
            _("{on}: {why}").format(on=reason.on, why=reason.text) if names_target else reason.text
            for reason in reasons
        ]
        return [
            {"text": text, "source": reason.source or "", "note": reason.note}
            for text, reason in zip(texts, reasons, strict=True)
        ]


def describe_content(trace: TraceData) -> str:
    """Return what a trace is about, as a phrase: the pass of a tensor, several passes, or the call of a module.

    >>> import torch, hookviz
    >>> from hookviz.api.trace import data_of
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with hookviz.record(names={"y": (y := x * x)}) as trace:
    ...     y.backward()
    >>> describe_content(data_of(trace))
    'backward pass of y'
    """
    if len(trace.lookup.passes) > 1:
        return _("{count} passes").format(count=f"{len(trace.lookup.passes):,}")
    kind = "seed" if any(row.kind == "seed" for row in trace.rows) else "call"
    first = next((step for step in trace.steps if step.kind == kind), None)
    return _(_SUBJECTS[kind]).format(on=first.on) if first else _("hookviz player")


def glyph_of(kind: str) -> Glyph:
    """Return the shape of a step of this kind on the timeline."""
    if kind in HOOK_KINDS:
        return "hook"
    return "note" if kind in _NOTES else _GLYPHS.get(kind, "node")


def _card_values(step: Step) -> tuple[str | None, str | None]:
    """Return the values before and after a step; None for a card that is not shown."""
    if (
        step.kind in ("exception", "cut_short", "compiled", "fast_path", "unobserved")
        or step.before == () == step.after
    ):
        return None, None
    if step.kind == "compute":
        return _card_text(step.before), None
    has_before = (step.before is not None or step.kind in (*HOOK_KINDS, *_NOTES)) and not _needs_one_card(step)
    return _card_text(step.before) if has_before else None, _card_text(step.after)


def _needs_one_card(step: Step) -> bool:
    """Return whether one card is enough: the hook kept a value of several lines, which has no room twice."""
    return step.effect == "kept" and "\n" in _card_text(step.after)


def _after_label(step: Step) -> str:
    if _needs_one_card(step):
        return _("before and after")
    return _(_ONE_CARD.get(step.kind, N_("after")))


def _card_text(values: Values) -> str:
    return values.block() if isinstance(values, Value) else format_values(values, room=48)


def _gradients(step: Step) -> list[tuple[str, Values]]:
    """Return (source or target, gradient) for the gradients that a step gets from several places, or sends."""
    if step.kind == "multi_grad_hook" and isinstance(step.after, tuple):
        return list(zip(name_tensors(step.row.labels[1]), step.after, strict=False))
    if step.kind != "compute" and len(step.parts) < 2 and step.kind != "full_backward_hook":
        return []
    return [(part.source, part.value) for part in (list_sent_gradients(step) if step.kind == "compute" else step.parts)]


def _gradient_rows(step: Step, gradients: list[tuple[str, Values]]) -> list[tuple[str, str]]:
    """Return (source or target, gradient) for the first ``MAX_GRADIENTS`` gradients, and the number of others."""
    rows = [(_endpoint(step, source), _card_text(value)) for source, value in gradients[:MAX_GRADIENTS]]
    if len(gradients) > MAX_GRADIENTS:
        rows.append(("", _("… {count} more").format(count=f"{len(gradients) - MAX_GRADIENTS:,}")))
    return rows


def _endpoint(step: Step, source: str) -> str:
    """Return where a gradient comes from or goes to, as a phrase."""
    if step.kind == "full_backward_hook":
        return "grad_output"
    if step.kind == "multi_grad_hook":
        return _("of {on}").format(on=source)
    if not source:
        return _("the seed")
    return (_("to {on}") if step.kind == "compute" else _("from {on}")).format(on=source)


def _registration(step: Step) -> str:
    """Return the dict in which the step's hook is registered, and when the hook runs; empty for other steps."""
    hook = step.hook
    if hook is None:
        return ""
    kind = step.trace.hook_rows[step.row.hook or 0].kind
    place = _(_PLACES[hook.place]) if hook.place < len(_PLACES) else _("number {n}").format(n=hook.place + 1)
    kept = _KEPT_ON_NODE if kind in NODE_HOOK_KINDS else _KEPT
    when = HOOK_FACTS[kind].when
    op = "" if step.node is None else step.trace.ops[step.node]
    if kind == "tensor_hook":
        when = _ON_LEAF if op == "AccumulateGrad" else _ON_NODE
    elif step.kind == "full_backward_hook" and not _present_values(step.before):
        when = _EARLY
    names = {"dict": hook.kept_in, "total": hook.total, "op": op, "on": step.on, "place": place}
    return join_sentences(_(text).format(**names) for text in (kept, when) if text)


def _present_values(values: Values) -> list[Value]:
    """Return the values in ``values`` that are not None."""
    return [value for value in (values if isinstance(values, tuple) else (values,)) if value is not None]


def _next_hook(step: Step) -> str:
    """Return which hook of the same tensor or node gets this gradient next; empty if there is none."""
    rows = step.trace.rows
    following_row = rows[step.index + 1] if step.index + 1 < len(rows) else None
    if following_row is None or following_row.hook is None or following_row.kind in _WITHOUT_GRADIENT_BEFORE:
        return ""
    following = make_step(step.trace, step.index + 1)
    assert following.hook is not None
    if _position(following.row) != _position(step.row):
        return ""
    label = f"{format_hook_position(following.hook.place)} {following.hook.label}"
    return _("Next: {hook} on {on} sees {value}.").format(
        hook=label, on=following.on, value=format_values(following.before)
    )


def _position(row: StepRow) -> tuple[int | None, int | None]:
    """Return the node of a step, or the module call of a step in the forward pass."""
    return row.node, row.call if row.node is None else None
