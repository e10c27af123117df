"""A trace as the player shows it: a picture for each pass, and for each step what to mark and what to say."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hookviz.analysis.findings import noted, nothing_found
from hookviz.analysis.formulas.reasons import Explainer
from hookviz.analysis.questions.prediction import questions
from hookviz.picture.dot_source import dot
from hookviz.picture.primitives import Mark
from hookviz.picture.scene import Scene
from hookviz.picture.tensor_layer import grads
from hookviz.player.compression import pack
from hookviz.support.messages import say, section
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, STEP_HOOK_KINDS, Step, StepRow, TraceData, Values
from hookviz.trace.sentences import brief, numeral, sends, sentence, title
from hookviz.trace.values import Value

_GLYPHS = {
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
LONGEST = 2_000
"""The player takes along no more steps than this: each is some 0.5 KB of the notebook that it is saved in."""

PARTS = 24
"""The panel tells no more gradients of a step than this, one by one."""

LARGEST = 60
"""The layers of tensors and nodes are drawn of no more boxes than this: beyond, one would only scroll."""

_UNTOLD = (*STEP_HOOK_KINDS, "forward_pre_hook", "exception")
"""Kinds of step that do not just see what came before: nothing is handed to an optimizer's hook, and without
``with_kwargs`` a pre-hook sees a part of the inputs."""

_ONE_CARD = ("call", "forward", "seed", "arrive", "retain_grad", "accumulate", "returned", "optimizer_step")
"""Kinds in which there is no before to compare with, unless something was there already."""


def state(trace: TraceData) -> dict[str, Any]:
    """All that the player needs of ``trace``, as plain data."""
    steps = trace.steps[:LONGEST]
    scenes = scenes_of(trace)
    pictures = {scene.pass_id: picture for picture, scene in enumerate(scenes)}
    hooks = hooks_in(steps)
    telling = FrameBuilder(trace, steps, marks_of(scenes), hooks, asks=True)
    return {
        "svgs": drawn(scenes),
        "frames": [{**telling.frame(step), "picture": pictures[step.pass_id]} for step in steps],
        "hooks": [hook_of(trace, index) for index in hooks],
        "firings": firings_in(steps),
        "layers": layers(scenes),
        "notes": [*noted(trace), *trace.notes, *too_long(trace)],
        "words": section("player") | {"found_none": nothing_found(trace)},
    }


def scenes_of(trace: TraceData) -> list[Scene]:
    """The scene of each pass of which steps are shown."""
    return [Scene.of(trace, pass_id) for pass_id in sorted({row.pass_id for row in trace.rows[:LONGEST]})]


def marks_of(scenes: Iterable[Scene]) -> dict[int, Mark]:
    """What each step marks."""
    return {index: mark for scene in scenes for index, mark in scene.marks.items()}


def hooks_in(steps: Iterable[Step]) -> list[int]:
    """The hooks that steps are about, by their rows."""
    return sorted({step.row.hook for step in steps if step.row.hook is not None})


def drawn(scenes: Iterable[Scene], **layer: bool) -> list[str]:
    """The pictures for the player, with all texts at their longest."""
    return [dot(scene, None, final=True, **layer).svg() for scene in scenes]


def too_long(trace: TraceData) -> Iterator[str]:
    """Say so where not every step is shown."""
    if len(trace.rows) > LONGEST:
        yield say("trace.long", steps=f"{len(trace.rows):,}", shown=f"{LONGEST:,}")


def layers(scenes: list[Scene]) -> str:
    """All pictures with the lists of pre-hooks, and with the tensors besides: packed, since few ask for them."""
    if sum(scene.shown for scene in scenes) > LARGEST:
        return ""
    return pack([drawn(scenes, nodes=True), drawn(scenes, tensors=True)])


class FrameBuilder:
    """Tells the steps of a trace, with the reasons for their gradients and the questions about them."""

    def __init__(
        self,
        trace: TraceData,
        steps: Sequence[Step],
        marks: dict[int, Mark],
        hooks: list[int],
        *,
        asks: bool,
        fired: Sequence[Step] | None = None,
    ) -> None:
        self._steps, self._marks = steps, marks
        self._hooks = {hook: place for place, hook in enumerate(hooks)}
        self._explainer = Explainer(trace)
        self.asked = questions(steps, fired) if asks else {}
        """Step → the question about it."""

    def frame(self, step: Step) -> dict[str, Any]:
        """One step as the player shows it."""
        asked = {"ask": self.asked[step.index]} if step.index in self.asked else {}
        return {**_frame(step, self._steps, self._marks, self._hooks), **_why(self._explainer, step), **asked}


def _frame(step: Step, steps: Sequence[Step], marks: dict[int, Mark], hooks: dict[int, int]) -> dict[str, Any]:
    mark = marks.get(step.index, Mark([], {}))
    before, after = _cards(step)
    return {
        "kind": step.kind,
        "glyph": glyph_of(step.kind),
        "forward": step.kind in ("call", "forward", *FORWARD_HOOK_KINDS),
        "title": title(step),
        "sentence": sentence(step),
        "before": before,
        "after": after,
        "before_label": say("card.takes" if step.kind == "compute" else "card.before"),
        "after_label": _label(step),
        "parts": _ways(step, _parts(step)),
        "hook": None if step.row.hook is None else hooks[step.row.hook],
        "kept": _kept(step),
        "next": _next(step, steps),
        "on": mark.on,
        "near": mark.near,
        "texts": mark.texts,
        **({"facts": facts} if (facts := grads(mark.texts)) else {}),
    }


def _why(explainer: Explainer, step: Step) -> dict[str, Any]:
    """The reasons for what a node computes, or for what arrives; of several that are sent, each with where it goes."""
    reasons = explainer.reasons(step.index, PARTS) if step.kind in ("compute", "arrive") else []
    named = step.kind == "compute" and len(reasons) > 1
    texts = [say("part.why", on=reason.on, why=reason.text) if named else reason.text for reason in reasons]
    told = [[text, reason.source or "", reason.note] for text, reason in zip(texts, reasons, strict=True)]
    return {"why": told} if told else {}


def glyph_of(kind: str) -> str:
    """The shape of a step of this kind on the timeline."""
    if kind in HOOK_KINDS:
        return "hook"
    return "note" if kind in _NOTES else _GLYPHS.get(kind, "node")


def _cards(step: Step) -> tuple[str | None, str | None]:
    if (
        step.kind in ("exception", "cut_short", "compiled", "fast_path", "unobserved")
        or step.before == () == step.after
    ):
        return None, None
    if step.kind == "compute":
        return _block(step.before), None
    has_before = (step.before is not None or step.kind in (*HOOK_KINDS, *_NOTES)) and not _told_once(step)
    return _block(step.before) if has_before else None, _block(step.after)


def _told_once(step: Step) -> bool:
    """Whether one card will do: a hook has kept what takes many lines to tell, and twice that is more than fits."""
    return step.effect == "kept" and "\n" in _block(step.after)


def _label(step: Step) -> str:
    if _told_once(step):
        return say("card.kept")
    return say(f"card.{step.kind}" if step.kind in _ONE_CARD else "card.after")


def _block(values: Values) -> str:
    return values.block() if isinstance(values, Value) else brief(values, room=48)


def _parts(step: Step) -> list[tuple[str, Values]]:
    if step.kind == "multi_grad_hook" and isinstance(step.after, tuple):
        return list(zip(step.row.labels[1], step.after, strict=False))
    if step.kind != "compute" and len(step.parts) < 2 and step.kind != "full_backward_hook":
        return []
    return [(part.source, part.value) for part in (sends(step) if step.kind == "compute" else step.parts)]


def _ways(step: Step, parts: list[tuple[str, Values]]) -> list[list[str]]:
    """Where from or where to, and what; of very many the first."""
    told = [[_way(step, source), _block(value)] for source, value in parts[:PARTS]]
    return told + ([["", say("many.more", count=f"{len(parts) - PARTS:,}")]] if len(parts) > PARTS else [])


def _way(step: Step, source: str) -> str:
    if step.kind == "full_backward_hook":
        return say("part.grad_output")
    if step.kind == "multi_grad_hook":
        return say("part.of", on=source)
    if not source:
        return say("part.seed")
    return say("part.to" if step.kind == "compute" else "part.from", on=source)


def _kept(step: Step) -> str:
    hook = step.hook
    if hook is None:
        return ""
    kind = step.trace.hook_rows[step.row.hook or 0].kind
    if step.kind == "full_backward_hook" and not _flat(step.before):
        kind += ".early"
    op = step.trace.ops[step.node] if step.node >= 0 else ""
    leaf = ".leaf" if kind == "tensor_hook" and op == "AccumulateGrad" else ""
    place = {
        "op": op,
        "on": step.on,
        "place": say(f"place.{hook.place}" if hook.place < 4 else "place.n", n=hook.place + 1),
    }
    return say(f"kept.{kind}{leaf}", dict=hook.kept_in, total=hook.total, **place)


def _flat(values: Values) -> list[Value]:
    """The gradients that there are."""
    return [value for value in (values if isinstance(values, tuple) else (values,)) if value is not None]


def _next(step: Step, steps: Sequence[Step]) -> str:
    """Who sees this gradient next, when another hook of the same tensor or node does."""
    following = steps[step.index + 1] if step.index + 1 < len(steps) else None
    if following is None or following.hook is None or following.kind in _UNTOLD:
        return ""
    if _place(following.row) != _place(step.row):
        return ""
    label = f"{numeral(following.hook.place)} {following.hook.label}"
    return say("next.hook", hook=label, on=following.on, value=brief(following.before))


def _place(row: StepRow) -> tuple[int, int]:
    """Where a step is: at a node, or in a module's forward."""
    return row.node, -1 if row.node >= 0 else row.call


def hook_of(trace: TraceData, index: int) -> dict[str, Any]:
    """A hook's name, place and source."""
    hook, row = trace.hook(index), trace.hook_rows[index]
    missing = None if row.text is not None else say("hook.source.none", name=hook.name)
    first = None if row.text is None else row.line
    return {
        "name": hook.label,
        "where": hook.where,
        "source": row.text,
        "missing": missing,
        "first": first,
        "mark": row.mark,
    }


def firings_in(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """The table of hooks, row by row."""
    return [_firing(step) for step in steps if step.kind in HOOK_KINDS]


def _firing(step: Step) -> dict[str, Any]:
    hook = step.hook
    assert hook is not None  # a firing has its hook
    nothing = step.before == () == step.after  # a hook behind an AccumulateGrad, from which nothing goes out
    change = "" if nothing else f"{brief(step.before, 16)} → {brief(step.after, 16)}"
    name = f"{numeral(hook.place)} {hook.label}"
    return {
        "step": step.index,
        "hook": name,
        "kind": say(f"census.{hook.kind}"),
        "on": step.on,
        "change": change,
        "effect": say(f"effect.{step.effect}"),
    }
