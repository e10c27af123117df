"""Where NaN or Inf begins: in a module's forward, in a tensor that the graph was made of, or in a gradient."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

from hookviz.sentences import brief
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, STEP_HOOK_KINDS, StepRow, TensorRow
from hookviz.trouble.looks import Found, Pass
from hookviz.values import Value, number
from hookviz.words import say

_FORWARD = ("call", "forward", *FORWARD_HOOK_KINDS)
CHANGING = (*(kind for kind in HOOK_KINDS if kind not in (*FORWARD_HOOK_KINDS, *STEP_HOOK_KINDS)), "unknown_hook")
"""Kinds of step that can turn one gradient into another on its way."""


_CARRYING = {"seed", "arrive", "compute", "aliased", *CHANGING}
"""Kinds of step that are about a gradient on its way."""


def strange(of: Pass) -> Found | None:
    """The first step at which there is NaN or Inf where none came in.

    Infinite activations are told only where a model's output is NaN or infinite: masks are infinite by design. Of a
    pass that a GradScaler scales only the forward is looked at: gradients that overflow are its business.
    """
    found = _forward(of)
    if found is not None:
        return found
    scaled = of.trace.lookup.scales(of.pass_id)
    found, held = None if scaled else _backward(of), _data(of)
    return held if held is not None and (found is not None or held.kind == "nan") else found


def _forward(of: Pass) -> Found | None:
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
            return Found(index, kind, _told(of, index, row, before, kind))
    return None


def _told(of: Pass, index: int, row: StepRow, before: Any, kind: str) -> str:
    module, what = of.module(row.call), say(f"trouble.what.{kind}")
    if row.kind == "call":
        return say("trouble.called", module=module, what=what)
    if row.kind != "forward":
        return say("trouble.here", what=what, told=of.trace.steps[index].sentence)
    return say("trouble.returns", module=module, what=what, why=_because(of, index, before, kind))


def _because(of: Pass, index: int, before: Any, kind: str) -> str:
    """What is known of a module's parameters and of its input."""
    call = of.trace.rows[index].call
    name = of.trace.module(of.trace.calls[call].module)
    for row in of.tensors:
        if row.leaf and row.name.startswith(f"{name}.") and of.bad(row.data):
            return _held(of, index, row)
    values = [value for value in _values(of, before) if value.note is None and not math.isnan(value.min)]
    if not values:
        return say("trouble.input.unknown")
    low, high = min(value.min for value in values), max(value.max for value in values)
    ops = {of.trace.ops[node].partition("Backward")[0] for node in of.trace.lookup.made.get(call, ())}
    sign = ".negative" if low < 0 and kind == "nan" and ops & _NOT_NEGATIVE else ""
    sign = ".zero" if not sign and ops & _NOT_ZERO and any(value.zero for value in values) else sign
    return say(f"trouble.input{sign}", low=number(low, 4), high=number(high, 4))


_NOT_NEGATIVE = {"Log", "Log2", "Log10", "Log1P", "Sqrt", "Rsqrt", "Pow"}
_NOT_ZERO = {"Log", "Log2", "Log10", "Rsqrt", "Reciprocal", "Div", "Pow"}
"""Ops that have no finite answer for a negative number, or for 0."""


def _held(of: Pass, index: int, row: TensorRow) -> str:
    """A parameter that was no better before, and the optimizer's step since which it is so."""
    earlier = [one for one in of.trace.lookup.tensors_before(of.pass_id, row.node)[-1:] if not of.bad(one.data)]
    steps = of.trace.lookup.optimizer_steps
    count = bisect_left(steps, index)
    if count and earlier:
        step = steps[count - 1]
        return say("trouble.parameter.since", on=row.name, step=step + 1, optimizer=of.trace.steps[step].on)
    return say("trouble.parameter", on=row.name)


def _values(of: Pass, kept: Any) -> list[Value]:
    found = of.trace.value(kept)
    return [value for value in (found if isinstance(found, tuple) else (found,)) if value is not None]


def _data(of: Pass) -> Found | None:
    """The tensor that held one before the pass began; of several, that which was made first."""
    rows = [row for row in of.tensors if of.bad(row.data)]
    row = min(rows, key=lambda row: row.node, default=None)
    if row is None:
        return None
    kind = of.begins(None, row.data) or "nan"
    name = of.trace.name(row.node, row.output)
    return Found(of.steps[0], kind, say("trouble.holds", on=name, what=say(f"trouble.what.{kind}")))


def _backward(of: Pass) -> Found | None:
    for index, row in of.rows:
        if row.of is not None or row.kind not in _CARRYING or not of.bad(row.after):
            continue
        before = tuple(value for _, _, value in row.parts) if row.kind == "arrive" else row.before
        kind = of.begins(before, row.after)
        if kind is not None:
            return Found(index, kind, _gradient(of, index, row, say(f"trouble.what.{kind}")))
    return None


def _gradient(of: Pass, index: int, row: StepRow, what: str) -> str:
    step = of.trace.steps[index]
    if row.kind != "compute":
        return say("trouble.here", what=what, told=step.sentence)
    sent = row.after if isinstance(row.after, tuple) else (row.after,)
    slot = next(slot for slot, value in enumerate(sent) if of.bad(value))
    place = of.trace.edges.get((row.node, slot))
    to = say("name.none") if place is None else of.trace.name(*place)
    after = brief(of.trace.value(sent[slot]))
    told = say("trouble.node", on=of.named(row.node), what=what, before=brief(step.before), after=after, to=to)
    return " ".join([told, *saved(of, row.node, lambda index: of.bad(index) or of.value(index).min <= 0)])


def saved(of: Pass, node: int, why: Callable[[int], bool]) -> Iterator[str]:
    """What the node had kept of the forward (the number of a value), where that may be why."""
    for row in of.trace.saved:
        if row.pass_id == of.pass_id and row.node == node and isinstance(row.value, int) and why(row.value):
            yield say("trouble.saved", name=row.name, value=of.value(row.value).text(40))
