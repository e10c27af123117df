"""Where NaN or Inf begins: in a module's forward, in a tensor that the graph was made of, or in a gradient."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from hookviz.analysis.findings.causes import explain_cause
from hookviz.analysis.findings.pass_statistics import CHANGING, Finding, PassStatistics
from hookviz.support.messages import join, say
from hookviz.trace import FORWARD_HOOK_KINDS, StepRow, TensorRow
from hookviz.trace.sentences import format_values
from hookviz.trace.values import Value

_FORWARD = ("call", "forward", *FORWARD_HOOK_KINDS)
_CARRYING = {"seed", "arrive", "compute", "aliased", "accumulate", *CHANGING}
"""Kinds of step that are about a gradient on its way, and about where it is written."""


def nonfinite(of: PassStatistics) -> Iterator[Finding]:
    """The first step of the forward, and the first of the backward, at which there is NaN or Inf where none came in.

    In the forward Inf counts only where a model's output is NaN or infinite in the end: masks are infinite by design.
    The backward is looked at only where the forward did not hand on what it has made; of a pass that a GradScaler
    scales, gradients that overflow are a remark: it will skip the step.
    """
    handed_on = _in_outputs(of)
    masks = not _more_than_masks(of, handed_on)
    scaled = bool(of.scales)
    severity = "remark" if masks else "warning"
    if _in_leaves(of) or _nan_loss(of):
        severity = "warning" if scaled else "error"
    forward = _forward(of)
    if forward is not None:
        origin = bool(handed_on) and (forward.seen or not masks)
        yield forward._replace(severity=severity if origin else "remark")
        if origin:
            return
    backward, held = _backward(of), _data(of)
    if held is not None and (backward is not None or held.kind == "nan"):
        yield held._replace(severity=severity)
    elif backward is not None:
        yield backward._replace(severity="remark" if scaled else _at_least_warning(of, severity))


def _at_least_warning(of: PassStatistics, severity: str) -> str:
    """A gradient that is NaN or Inf is seldom meant, even if no leaf gets it; unless a hook has taken it out."""
    mended = (row.kind in CHANGING and of.bad(row.before) and not of.bad(row.after) for _, row in of.rows)
    return "warning" if severity == "remark" and not any(mended) else severity


def _in_leaves(of: PassStatistics) -> bool:
    """Whether the pass itself brought NaN or Inf into the gradient of a leaf, and it is still there when it ends."""
    last: dict[int, bool] = {}
    for _, row in of.rows:
        if row.kind == "returned" or (row.kind == "post_accumulate_hook" and row.subject == "gradient"):
            last[row.node] = of.bad(row.after)
        elif row.kind == "accumulate":
            last[row.node] = of.bad(row.after) and not of.bad(row.before)
    return any(last.values())


def _in_outputs(of: PassStatistics) -> list[int]:
    """The values with NaN or Inf that a model returned, or at which the pass began."""
    last = {row.call: row.after for _, row in of.rows if row.kind in ("forward", "forward_hook") and row.call >= 0}
    outputs = [kept for call, kept in last.items() if of.trace.calls[call].parent is None]
    outputs += [row.data for row in _roots(of)]
    several = (index for kept in outputs for index in (kept if isinstance(kept, tuple) else (kept,)))
    return [index for index in several if index is not None and of.bad(index)]


def _more_than_masks(of: PassStatistics, bad: list[int]) -> bool:
    """Whether there is more among values than -Inf, which models return where something is masked."""
    return any(value.nan or value.max == math.inf for value in map(of.value, bad))


def _nan_loss(of: PassStatistics) -> bool:
    """Whether the pass began at a tensor that held NaN."""
    return any(of.begins(None, row.data) == "nan" for row in _roots(of))


def _roots(of: PassStatistics) -> list[TensorRow]:
    """The tensors at which the pass began, as far as they have names."""
    roots = of.trace.roots[of.pass_id] if of.pass_id < len(of.trace.roots) else []
    return [row for row in of.tensors if (row.node, row.output) in roots]


def remains(of: PassStatistics) -> Finding | None:
    """The first step that shows NaN or Inf at all, though nothing came of it."""
    for index, row in of.rows:
        if of.bad(row.before) or of.bad(row.after):
            kept = row.after if of.bad(row.after) else row.before
            kind = of.begins(None, kept) or "nan"
            what, step = say(f"trouble.what.{kind}"), of.trace.steps[index]
            key = "trouble.remains.grad" if row.kind == "accumulate" and of.bad(row.before) else "trouble.remains"
            return Finding(index, kind, say(key, what=what, on=step.on, told=step.sentence), "remark")
    return None


def _forward(of: PassStatistics) -> Finding | None:
    given: dict[int, Any] = {}
    calls = [(index, row) for index, row in of.rows if row.kind in _FORWARD and row.call >= 0]
    outermost = (row for _, row in calls if row.kind == "forward" and of.trace.calls[row.call].parent is None)
    ill = any(of.bad(row.after) for row in outermost)
    for index, row in calls:
        before = given.get(row.call) if row.kind == "forward" else row.before
        if row.kind in ("call", "forward_pre_hook"):
            given[row.call] = row.after
        kind = of.begins(before, row.after)
        if kind == "nan" or (kind == "inf" and ill and row.kind != "call"):
            return _of_call(of, index, row, before, kind)
    return None


def _of_call(of: PassStatistics, index: int, row: StepRow, before: Any, kind: str) -> Finding:
    module, what = of.module(row.call), say(f"trouble.what.{kind}")
    if row.kind == "call":
        return Finding(index, kind, say("trouble.called", module=module, what=what))
    if row.kind != "forward":
        return Finding(index, kind, say("trouble.here", what=what, told=of.trace.steps[index].sentence))
    why, seen = explain_cause(of, index, before, kind)
    return Finding(index, kind, say("trouble.returns", module=module, what=what, why=why), seen=seen)


def _data(of: PassStatistics) -> Finding | None:
    """The tensor that held one before the pass began; of several, that which was made first."""
    rows = [row for row in of.tensors if of.bad(row.data)]
    row = min(rows, key=lambda row: row.node, default=None)
    if row is None:
        return None
    kind = of.begins(None, row.data) or "nan"
    name = of.trace.name(row.node, row.output)
    return Finding(of.steps[0], kind, say("trouble.holds", on=name, what=say(f"trouble.what.{kind}")))


def _backward(of: PassStatistics) -> Finding | None:
    for index, row in of.rows:
        if row.subject != "gradient" or row.kind not in _CARRYING or not of.bad(row.after):
            continue
        kind = of.begins(_before(of, row), row.after)
        if kind is not None:
            return Finding(index, kind, _gradient(of, index, row, say(f"trouble.what.{kind}")))
    return None


def _before(of: PassStatistics, row: StepRow) -> Any:
    """What a step made its gradient of."""
    if row.kind == "arrive":
        return tuple(value for _, _, value in row.parts)
    if row.kind == "accumulate":
        arrived = of.arrived.get(row.node)
        return row.before, None if arrived is None else of.trace.rows[arrived].after
    return row.before


def _gradient(of: PassStatistics, index: int, row: StepRow, what: str) -> str:
    step = of.trace.steps[index]
    if row.kind != "compute":
        return say("trouble.here", what=what, told=step.sentence)
    sent = row.after if isinstance(row.after, tuple) else (row.after,)
    slot = next(slot for slot, value in enumerate(sent) if of.bad(value))
    place = of.trace.edges.get((row.node, slot))
    to = say("name.none") if place is None else of.trace.name(*place)
    after = format_values(of.trace.value(sent[slot]))
    told = say("trouble.node", on=of.named(row.node), what=what, before=format_values(step.before), after=after, to=to)
    return join(
        "join.sentences", [told, *saved(of, row.node, lambda index: of.bad(index) or _not_positive(of.value(index)))]
    )


def _not_positive(value: Value) -> bool:
    return value.min is not None and value.min <= 0


def saved(of: PassStatistics, node: int, why: Callable[[int], bool]) -> Iterator[str]:
    """What the node had kept of the forward (the number of a value), where that may be why."""
    for row in of.trace.saved:
        if row.pass_id == of.pass_id and row.node == node and isinstance(row.value, int) and why(row.value):
            yield say("trouble.saved", name=row.name, value=of.value(row.value).text(40))
