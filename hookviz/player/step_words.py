"""What a player knows of each step: its words in the panel, the questions before it, and its place in the overview."""

from collections.abc import Callable, Mapping, Sequence

from hookviz.analysis.formulas.reasons import Explainer
from hookviz.analysis.hook_effects import HookEffects
from hookviz.analysis.questions.prediction import Question as AskedQuestion
from hookviz.analysis.questions.prediction import make_questions
from hookviz.picture.grouping.activity import find_arrival
from hookviz.player.cards import MAX_GRADIENTS, Named, list_gradients, make_cards, read_card_values
from hookviz.player.payload import CodeLine, Glyph, Overview, Question, Reason, StepWords
from hookviz.support.messages import N_, _, join_sentences
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, STEP_HOOK_KINDS, Step, StepRow, TraceData, Values
from hookviz.trace.hook_facts import HOOK_FACTS, NODE_HOOK_KINDS
from hookviz.trace.sentences import (
    format_hook_position,
    format_values,
    list_remarks,
    make_sentence,
    make_title,
)
from hookviz.trace.steps import make_step
from hookviz.trace.update_texts import list_parameter_moves
from hookviz.trace.values import Value, format_number

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

MAX_SENTENCE = 100
"""A longer sentence about a node that computes says how many gradients it sends: the cards list them."""

LOSS_DIGITS = 3
"""Significant digits of a loss in the titles of passes."""

_WITHOUT_GRADIENT_BEFORE = (*STEP_HOOK_KINDS, "forward_pre_hook", "exception")
"""Kinds of step whose input is not the gradient or value of the step before: an optimizer's hook gets none, and a
pre-hook without ``with_kwargs`` gets only some inputs."""


class StepTexts:
    """Writes the words of the steps of a trace.

    Args:
        explainer: explains their gradients.
        effects: describes what their hooks did.
        find_lines: finds the lines of the user's code that a step belongs to.
    """

    def __init__(
        self, explainer: Explainer, effects: HookEffects, find_lines: Callable[[Step], CodeLine | None]
    ) -> None:
        self._explainer, self._effects, self._find_lines = explainer, effects, find_lines

    def words(self, step: Step) -> StepWords:
        """Return the words of ``step``."""
        before, after = map(_write_numbers, read_card_values(step))
        words: StepWords = {
            "title": make_title(step),
            "sentence": make_sentence(step),
            "forward": step.kind in ("call", "forward", *FORWARD_HOOK_KINDS),
            "cards": make_cards(step),
            "before": before,
            "after": after,
            "gradients": _gradient_rows(list_gradients(step)),
            "registration": _registration(step),
            "next_hook": _next_hook(step),
        }
        if step.kind in HOOK_KINDS:
            effect = self._effects.describe(step)
            words["headline"] = effect.headline
            words["facts"] = join_sentences([effect.fact, *list_remarks(step)])
        elif step.kind == "compute" and len(words["sentence"]) > MAX_SENTENCE:  # the cards say the rest
            words["headline"] = _("{on} takes its gradient and sends {count}").format(
                on=step.on, count=len(words["gradients"])
            )
        reasons = self._reasons(step)
        if reasons:
            words["reasons"] = reasons
        if step.kind == "accumulate":
            words["writes_grad_of"] = step.on
        moves = list_parameter_moves(step.trace, step.index) if step.kind == "optimizer_step" else []
        if moves:
            words["moves"] = moves
        lines = self._find_lines(step)
        if lines is not None:
            words["code"] = lines
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


def _write_numbers(values: Values | str) -> str | None:
    """Write all numbers or statistics of a card; those of several tensors on one line."""
    if values == "":
        return None
    present = _present_values(values)  # type: ignore[arg-type]
    if isinstance(values, tuple) and len(present) == 1:
        return present[0].block()
    return values.block() if isinstance(values, Value) else format_values(values, room=48)  # type: ignore[arg-type]


def _gradient_rows(gradients: list[Named]) -> list[tuple[str, str]]:
    """Return (source or target, gradient) for the first ``MAX_GRADIENTS`` gradients, and the number of others."""
    rows = [(name, _write_numbers(value) or "") for name, value in gradients[:MAX_GRADIENTS]]
    if len(gradients) > MAX_GRADIENTS:
        rows.append(("", _("… {count} more").format(count=f"{len(gradients) - MAX_GRADIENTS:,}")))
    return rows


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


class QuestionPool:
    """Collects questions, and gives each an index: the key under which the browser keeps the answer."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def add(self, asked: AskedQuestion, run: int = 0, hook: int | None = None) -> int:
        """Add a question about a run; ``hook`` is the index of a hook whose source is shown with it."""
        question: Question = {"text": asked["text"], "run": run}
        if "answer" in asked:
            question["answer"] = asked["answer"]
            question["mistakes"] = [(wrong, why) for wrong, why in asked["reasons"]]
        else:
            question["choices"] = list(asked["choices"])
            question["right"] = asked["right"]
            question["reasons"] = list(asked["reasons"])
        # If the question is which hook is next, the source would give the answer.
        if hook is not None and ("answer" in asked or "source" in asked):
            question["hook"] = hook
        self.questions.append(question)
        return len(self.questions) - 1

    def add_all(
        self, steps: Sequence[Step], firings: Sequence[Step] | None, hooks: Mapping[int, int]
    ) -> dict[str, list[int]]:
        """Make the questions about the first run, and add them; return step → the indices of its questions.

        Args:
            steps: the steps of the run.
            firings: those in which a hook ran; None finds them among ``steps``.
            hooks: hook row → index in ``Content.hooks``.
        """
        asked: dict[str, list[int]] = {}
        for step, question in make_questions(steps, firings).items():
            row = steps[step].row.hook
            asked[str(step)] = [self.add(question, hook=None if row is None else hooks[row])]
        return asked


def make_overview(
    trace: TraceData,
    rows: Sequence[StepRow],
    views: Mapping[int, str],
    hooks: Mapping[int, int],
    questions: dict[str, list[int]],
    glyph_kinds: Sequence[str] | None = None,
) -> Overview:
    """Make the overview of the steps ``rows``, the first ones of ``trace``.

    Args:
        trace: the trace that has the steps.
        rows: the steps that the player shows.
        views: pass → the name of its top-level picture, for all passes of the steps.
        hooks: hook row → index in ``Content.hooks``.
        questions: step → the questions before it, as in ``Overview``.
        glyph_kinds: the kind of each step whose glyph it gets; None takes its own.
    """
    numbers = {pass_id: index for index, pass_id in enumerate(views)}
    arrivals = [find_arrival(trace, step) for step in range(len(rows))]
    kinds = [row.kind for row in rows]
    return {
        "kind": [*kinds],
        "glyph": [glyph_of(kind) for kind in glyph_kinds or kinds],
        "view": [numbers[row.pass_id] for row in rows],
        "hook": [-1 if row.hook is None else hooks[row.hook] for row in rows],
        "norm": [None if arrival is None else arrival.display_norm for arrival in arrivals],
        "questions": questions,
        "views": [*views.values()],
        "pass_numbers": [*map(trace.pass_number, views)],
        "losses": [_format_loss(trace, pass_id) for pass_id in views],
    }


def _format_loss(trace: TraceData, pass_id: int) -> str:
    """Write the number at which a pass starts; empty if it is not known."""
    if pass_id not in trace.losses:
        return ""
    loss = trace.losses[pass_id]
    return _("NaN or Inf") if loss is None else format_number(loss, LOSS_DIGITS)
