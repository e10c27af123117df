"""What a hook did, as a headline with a verb and as a few letters: ``boost multiplied the gradient by 5``, ``× 5``."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hookviz.support.messages import N_, _, join_list
from hookviz.trace import STEP_HOOK_KINDS, Step, TraceData, Values
from hookviz.trace.changes import describe_change, find_factor, list_finite
from hookviz.trace.sentences import say_step
from hookviz.trace.values import Value, are_same_values, flatten_numbers, format_number

_DIGITS = 4

_OBJECTS = {
    "forward_pre_hook": (N_("the input"), N_("the inputs")),
    "forward_hook": (N_("the output"), N_("the outputs")),
}
_GRADIENTS = (N_("the gradient"), N_("the gradients"))
"""What a hook is about: one tensor, several."""


class HookEffect(NamedTuple):
    """What a hook did in one step."""

    changed: bool
    """Whether something has other numbers afterwards."""
    headline: str
    short: str
    """The same in a few letters: ``× 5``, ``clipped``, ``looked``."""
    fact: str = ""
    """What the headline leaves out: which rows, what else changed."""


class _Outcome(NamedTuple):
    """What became of one tensor: a text with ``{hook}`` and ``{what}``, and a short form."""

    text: str
    short: str
    parts: dict[str, str]


class HookEffects:
    """Describes what the hooks of a trace did."""

    def __init__(self, trace: TraceData) -> None:
        self._also_changed: dict[int, list[str]] = {}
        """Step of an edit in place → the names of the other gradients in the same memory."""
        for step in trace.lookup.steps_of_kinds("aliased"):
            row = trace.rows[step]
            if row.cause is not None:
                self._also_changed.setdefault(row.cause, []).append(trace.get_subject_name(row))

    def describe(self, step: Step) -> HookEffect:
        """Describe what the hook of ``step`` did."""
        assert step.hook is not None  # only steps in which a hook ran have an effect
        hook = step.hook.label
        if step.kind in STEP_HOOK_KINDS:
            has_changed = step.effect in ("edited", "replaced") or step.row.subject == "settings"
            return HookEffect(has_changed, say_step(step), _("changed") if has_changed else _("looked"))
        pairs = _pair(step.before, step.after)
        what = _name_object(step, len(pairs))
        if step.effect not in ("edited", "replaced"):
            return _describe_look(step, hook, what)
        changed = [pair for pair in pairs if not are_same_values(*pair)]
        if not changed:
            return _describe_equal(step, hook, [after for _ignored, after in pairs])
        return self._describe_change(step, hook, changed, len(pairs))

    def _describe_change(
        self, step: Step, hook: str, changed: Sequence[tuple[Value | None, Value | None]], total: int
    ) -> HookEffect:
        """Describe what became of the tensors that a hook changed."""
        changes = [_find_change(*pair) for pair in changed]
        change = changes[0] if len({one.short for one in changes}) == 1 else _Outcome(_OTHER, _("changed"), {})
        what = _name_object(step, len(changed))
        if len(changed) < total:
            what = _name_changed(step) or _("{count} of {total} tensors").format(count=len(changed), total=total)
        fact = _find_fact(*changed[0]) if len(changed) == 1 else ""
        if step.effect == "edited":
            return self._describe_edit(step, hook, what, change, fact)
        return HookEffect(True, _(change.text).format(hook=hook, what=what, **change.parts), change.short, fact)

    def _describe_edit(self, step: Step, hook: str, what: str, change: _Outcome, fact: str) -> HookEffect:
        """Describe an edit in place, which other gradients may share."""
        others = self._also_changed.get(step.index, [])
        if others:
            text = N_("{hook} edited {what} in place: {short} ({others}'s gradient changes too)")
        else:
            text = N_("{hook} edited {what} in place: {short}")
        if step.row.subject == "grad_output":
            fact = _("Other parts of the graph share this gradient.")
        short = _("{change} in place").format(change=change.short)
        headline = _(text).format(hook=hook, what=what, short=change.short, others=join_list(others))
        return HookEffect(True, headline, short, fact)


_OTHER = N_("{hook} changed {what}")


def _pair(before: Values, after: Values) -> list[tuple[Value | None, Value | None]]:
    """Pair the tensors before and after a hook, without those that are None in both."""
    old, new = ([*values] if isinstance(values, tuple) else [values] for values in (before, after))
    if len(old) != len(new):
        return [(next(iter(old), None), next(iter(new), None))] if old or new else []
    pairs = zip(old, new, strict=True)
    return [(one, other) for one, other in pairs if isinstance(one, Value) or isinstance(other, Value)]


def _name_object(step: Step, count: int) -> str:
    """Name what a hook had before it."""
    if step.row.subject == "data":
        return step.on
    if step.row.subject == "grad_output":
        return "grad_output"
    if step.kind == "post_accumulate_hook":
        return f"{step.on}.grad"
    return _(_OBJECTS.get(step.kind, _GRADIENTS)[count > 1])


def _name_changed(step: Step) -> str:
    """Name the only input or output of a module that a hook changed; empty if it has no name."""
    names, before, after = step.row.labels[1], step.before, step.after
    if not isinstance(before, tuple) or not isinstance(after, tuple) or not len(names) == len(before) == len(after):
        return ""
    changed = [name for name, *pair in zip(names, before, after, strict=True) if not are_same_values(*pair)]
    return changed[0] if len(changed) == 1 else ""


def _describe_look(step: Step, hook: str, what: str) -> HookEffect:
    if not _pair(step.before, step.after):
        text = N_("{hook} ran: there is nothing here that it could change")
        if step.kind == "full_backward_hook":
            text = N_("{hook} only looked at grad_output: grad_input is None")
        return HookEffect(False, _(text).format(hook=hook), _("looked"))
    if not step.row.parameters:
        return HookEffect(False, _("{hook} only looked at {what}").format(hook=hook, what=what), _("looked"))
    names = join_list([*step.row.parameters])
    headline = _("{hook} left {what} as it was, and changed {names}").format(hook=hook, what=what, names=names)
    return HookEffect(True, headline, _("changed {names}").format(names=names))


def _describe_equal(step: Step, hook: str, values: Sequence[Value | None]) -> HookEffect:
    """Describe a hook that wrote or returned numbers that were there before."""
    text = N_("{hook} wrote or returned equal numbers: nothing changed")
    if step.effect != "edited" and any(value is not None and value.tolist() is None for value in values):
        text = N_("{hook} returned another tensor with the same norm and range: nothing seems to have changed")
    return HookEffect(False, _(text).format(hook=hook), _("equal"))


def _find_fact(before: Value | None, after: Value | None) -> str:
    """Say which rows a hook changed, or that only statistics prove a factor."""
    if before is None or after is None:
        return ""
    is_exact_factor = before.tolist() is not None and find_factor(before, after) is not None
    return "" if is_exact_factor else describe_change(before, after)


def _find_change(before: Value | None, after: Value | None) -> _Outcome:
    """Find the verb for what became of a tensor."""
    if before is None or after is None:
        text = (
            N_("{hook} put a tensor where there was None") if before is None else N_("{hook} replaced {what} by None")
        )
        return _Outcome(text, "→ None" if after is None else _("new"), {})
    if before.note or after.note:
        return _Outcome(_OTHER, _("changed"), {})
    if before.shape != after.shape:
        parts = {"before": str(before.shape), "after": str(after.shape)}
        return _Outcome(N_("{hook} changed the shape from {before} to {after}"), f"→ {after.shape}", parts)
    for find in _OUTCOMES:
        change = find(before, after)
        if change is not None:
            return change
    return _Outcome(_OTHER, _("changed"), {})


def _find_nonfinite(before: Value, after: Value) -> _Outcome | None:
    """NaN or Inf came, or went."""
    was, now = (not math.isfinite(value.norm) for value in (before, after))
    if was == now:
        return _Outcome(_OTHER, _("changed"), {}) if now else None
    name = "NaN" if math.isnan((after if now else before).norm) else "Inf"
    text = N_("{hook} put {name} into {what}") if now else N_("{hook} took {name} out of {what}")
    return _Outcome(text, name if now else _("no {name}").format(name=name), {"name": name})


def _find_zero(_before: Value, after: Value) -> _Outcome | None:
    return None if after.norm else _Outcome(N_("{hook} zeroed {what}"), _("zeroed"), {})


def _find_number(before: Value, after: Value) -> _Outcome | None:
    """One number became another one."""
    if math.prod(after.shape) != 1:
        return None
    was, now = before.text(shape=False).strip("[]"), after.text(shape=False).strip("[]")
    parts = {"before": was, "after": now}
    return _Outcome(N_("{hook} changed {what} from {before} to {after}"), f"{was} → {now}", parts)


def _find_constant(before: Value, after: Value) -> _Outcome | None:
    """Equal numbers became other equal numbers: whether by a factor, a sum or a limit, they do not say."""
    was, now = before.min, after.min
    if was is None or now is None or was != before.max or now != after.max:
        return None
    parts = {"before": format_number(was, _DIGITS), "after": format_number(now, _DIGITS)}
    text = N_("{hook} changed each number of {what} from {before} to {after}")
    return _Outcome(text, "{before} → {after}".format(**parts), parts)


def _find_product(before: Value, after: Value) -> _Outcome | None:
    factor = find_factor(before, after)
    if factor is None:
        return None
    text = format_number(factor, _DIGITS)
    return _Outcome(N_("{hook} multiplied {what} by {factor}"), f"× {text}", {"factor": text})


def _find_sum(before: Value, after: Value) -> _Outcome | None:
    """The same number was added to each number."""
    old, new = (None if value.tolist() is None else list_finite(value) for value in (before, after))
    if not old or not new:
        return None
    amount = new[0] - old[0]
    is_sum = all(
        math.isclose(one + amount, other, rel_tol=1e-5, abs_tol=1e-7) for one, other in zip(old, new, strict=True)
    )
    text = format_number(abs(amount), _DIGITS)
    if not is_sum:
        return None
    if amount < 0:
        return _Outcome(N_("{hook} subtracted {amount} from {what}"), f"− {text}", {"amount": text})
    return _Outcome(N_("{hook} added {amount} to {what}"), f"+ {text}", {"amount": text})


def _find_clip(before: Value, after: Value) -> _Outcome | None:
    """Numbers beyond a limit were set to it, and the others stayed."""
    old, new = (None if value.tolist() is None else list_finite(value) for value in (before, after))
    low, high = after.min, after.max
    if low is None or high is None or before.min is None or before.max is None:
        return None
    if old and new:
        is_clip = all(now == min(max(was, low), high) for was, now in zip(old, new, strict=True)) and len({*new}) > 1
    else:  # of a large tensor: both limits are hit, and they are the same
        is_clip = before.min < low < high < before.max and math.isclose(-low, high, rel_tol=1e-6)
        is_clip = is_clip and before.zero == after.zero
    parts = {"low": format_number(low, _DIGITS), "high": format_number(high, _DIGITS)}
    return _Outcome(N_("{hook} clipped {what} to {low} … {high}"), _("clipped"), parts) if is_clip else None


def find_limit(before: Value, after: Value) -> float | None:
    """Return the largest absolute number that clipping left; None if a tensor was not clipped."""
    low, high = after.min, after.max
    if before.shape != after.shape or low is None or high is None or _find_clip(before, after) is None:
        return None
    return max(abs(low), abs(high))


def _find_some(before: Value, after: Value) -> _Outcome | None:
    """Some rows, or numbers of a vector, changed."""
    old, new = before.tolist(), after.tolist()
    if old is None or new is None or not after.shape:
        return None
    changed = [now for was, now in zip(old, new, strict=True) if was != now]
    if len(changed) == len(old):
        return None
    are_zero = not any(number for now in changed for number in flatten_numbers(now))
    parts = {"count": f"{len(changed)}", "total": f"{len(old)}"}
    parts["unit"] = _("numbers") if len(after.shape) == 1 else _("rows")
    text = N_("{hook} zeroed {count} of {total} {unit}") if are_zero else N_("{hook} changed {count} of {total} {unit}")
    return _Outcome(text, _("{count} of {total}").format(**parts), parts)


def _find_more_zeros(before: Value, after: Value) -> _Outcome | None:
    """Of a large tensor: more of its numbers are 0."""
    if before.zero is None or after.zero is None or after.zero <= before.zero:
        return None
    more = f"{after.zero - before.zero:,}"
    parts = {"more": more, "total": f"{math.prod(after.shape):,}"}
    text = N_("{hook} changed {what}: {more} more of its {total} numbers are 0")
    return _Outcome(text, _("{more} more zeros").format(more=more), parts)


_OUTCOMES: tuple[Callable[[Value, Value], _Outcome | None], ...] = (
    _find_nonfinite,
    _find_zero,
    _find_number,
    _find_constant,
    _find_product,
    _find_clip,
    _find_some,
    _find_sum,
    _find_more_zeros,
)
"""The changes that are told apart, the most telling first."""
