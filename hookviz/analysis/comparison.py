"""Compare two traces of the same program: which gradients differ, and from which firing of a hook on."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from hookviz.analysis.alignment import match_graphs
from hookviz.support.messages import N_, _, join_first, join_list, join_sentences
from hookviz.support.table import ShownRow
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, Hook, Step, TraceData
from hookviz.trace.hook_facts import name_of_kind
from hookviz.trace.notes import PART_NOTES
from hookviz.trace.rows import StepRow, renumber
from hookviz.trace.sentences import format_values
from hookviz.trace.values import Value, flatten_numbers, format_number, is_same_value

_THIS_TRACE = N_("this trace")
_OTHER_TRACE = N_("the other trace")


UNOBSERVED_KINDS = ("unobserved", "compiled", "fast_path")
"""The kinds of step in which hooks may have run that the trace does not hold."""

UNOBSERVED_NOTES = ("saved", "uncalled", "uncalled.compiled", *PART_NOTES)
"""The notes which say that hooks may have run that the trace does not hold."""

StepKey = tuple[Any, ...]
"""Identifies a step within its trace; the same step in another trace of the same program has an equal key."""


_GRADIENTS = {
    "seed": N_("the gradient it starts with"),
    "arrive": N_("the gradient"),
    "retain_grad": N_("stored in .grad"),
    "accumulate": ".grad",
    "returned": N_("returned"),
}
"""Kind of a step → the gradient that it is about."""


@dataclass(frozen=True, repr=False)
class Difference(ShownRow):
    """A gradient that differs between two traces."""

    on: str
    """The name of the tensor or node that has the gradient."""
    kind: str
    """The kind of the step that holds the gradient."""
    before: Value | None
    """The gradient in this trace; None if this trace has none."""
    after: Value | None
    """The gradient in the other trace; None if the other trace has none."""
    amount: float | None
    """The largest absolute difference; if the numbers were not kept, the difference of the norms. None if only one of
    the traces has the gradient."""
    steps: tuple[int | None, int | None]
    """The step in this trace, and the step in the other trace."""

    def _columns(self) -> dict[str, str]:
        steps = ("None" if step is None else str(step + 1) for step in self.steps)
        columns = {_("on"): self.on, _("gradient"): _(_GRADIENTS[self.kind])}
        columns |= {_("this trace"): format_values(self.before), _("the other"): format_values(self.after)}
        amount = "" if self.amount is None else format_number(self.amount)
        return {**columns, _("difference"): amount, _("step"): " → ".join(steps)}


class Differences(NamedTuple):
    """The differences between two traces of the same program."""

    rows: list[Difference]
    first: Step | None
    """The first firing that differs, in the other trace unless only this one has it; None if no firing differs."""
    first_is_cause: bool
    """Whether that firing causes the difference, instead of being the first to receive it."""
    sentences: list[str]
    """A summary, and remarks on what could not be compared."""


def find_differences(this: TraceData, other: TraceData) -> Differences:
    """Compare the gradients and the firings of two traces of the same program.

    Raises:
        ValueError: the graphs of the two traces differ.
    """
    this_steps, other_steps = _key_steps(this, other)
    rows = _compare_gradients(this_steps, other_steps)
    first, is_cause = _find_first_firing(this_steps, other_steps) if rows else (None, False)
    if first is not None:
        side = 0 if first.trace is this else 1
        is_cause = is_cause and all(step is None or step >= first.index for step in (row.steps[side] for row in rows))
    unobserved = _describe_unobserved(this_steps, other_steps) if rows and not (first and is_cause) else ""
    has_hooks = any(steps.firings or steps.unknown_hooks for steps in (this_steps, other_steps)) or bool(unobserved)
    sentences = [_summarise(this, rows, first, is_cause, has_hooks=has_hooks)]
    aside = "" if not rows or (first and is_cause) else _describe_aside(this_steps, other_steps)
    sentences += [text for text in (aside, unobserved) if text]
    sentences += _describe_lone_hooks(this_steps, other_steps, first if is_cause else None)
    sentences += _describe_uncompared(this_steps, other_steps)
    return Differences(rows, first, is_cause, sentences)


def _key_steps(this: TraceData, other: TraceData) -> tuple["_KeyedSteps", "_KeyedSteps"]:
    """Return the steps of two traces under the keys that they share."""
    matched = match_graphs(this, other)
    is_whole = len(matched) == max(len(this.roots), len(other.roots))
    own = {here: (here, {node: node for node in numbers.values()}) for (here, _there), numbers in matched.items()}
    theirs = {there: (here, numbers) for (here, there), numbers in matched.items()}
    return _KeyedSteps(this, own, is_whole=is_whole), _KeyedSteps(other, theirs, is_whole=is_whole)


def _step_index(row: Difference) -> int:
    """The step that holds a gradient: in this trace or, if this trace does not have it, in the other."""
    this, other = row.steps
    return (other or 0) if this is None else this


def _summarise(
    this: TraceData, rows: Sequence[Difference], first: Step | None, is_cause: bool, *, has_hooks: bool
) -> str:
    """The sentence that sums up a comparison."""
    if not rows:
        return _("No gradient differs between the two traces.")
    count = _("Gradients that differ: {count}.").format(count=len(rows))
    if first is not None and first.hook is not None:
        which = _(_THIS_TRACE) if first.trace is this else _(_OTHER_TRACE)
        text = _(
            "They differ before any observed hook changes one. The first hook to receive such a gradient is {where}."
        )
        if is_cause:
            text = _("The difference begins with {where}.")
        elif first.kind in FORWARD_HOOK_KINDS:
            text = _("The values of the forward differ, too. The first hook to receive such a value is {where}.")
        where = _("{hook} on {on}, step {step} of {which}")
        names = {"hook": first.hook.label, "on": first.on, "step": first.index + 1, "which": which}
        return join_sentences([count, text.format(where=where.format(**names))])
    if has_hooks:
        return join_sentences([count, _("No observed hook causes the difference.")])
    earliest = min(rows, key=_step_index)
    which = _(_OTHER_TRACE) if earliest.steps[0] is None else _(_THIS_TRACE)
    text = _(
        "No hook ran in either trace, so the programs themselves differ, in their numbers or in the gradient that they "
        "begin with. The first gradient that differs is that of {on}, step {step} of {which}."
    )
    return join_sentences([count, text.format(on=earliest.on, step=_step_index(earliest) + 1, which=which)])


def _iter_sides(
    this_steps: "_KeyedSteps", other_steps: "_KeyedSteps"
) -> Iterator[tuple["_KeyedSteps", "_KeyedSteps", str]]:
    """Yield the steps of each trace, those of the other one, and the name of the first."""
    yield this_steps, other_steps, _(_THIS_TRACE)
    yield other_steps, this_steps, _(_OTHER_TRACE)


def _describe_unobserved(this_steps: "_KeyedSteps", other_steps: "_KeyedSteps") -> str:
    """A sentence on hooks that may have made the difference and are not in the traces; empty if all were observed."""
    for steps, counterparts, which in _iter_sides(this_steps, other_steps):
        for key, step in steps.unknown_hooks.items():
            match = counterparts.unknown_hooks.get(key)
            if match is None or (_equal_values(step.before, match.before) and not _agree(step, match)):
                return _(
                    "An unknown hook changed the gradient of {on}, step {step} of {which}: it may be the cause."
                ).format(on=step.on, step=step.index + 1, which=which)
    if this_steps.all_observed and other_steps.all_observed:
        return ""
    return _("Not every hook of the two runs was observed: an unobserved hook may be the cause.")


def _describe_aside(this_steps: "_KeyedSteps", other_steps: "_KeyedSteps") -> str:
    """A sentence on the first hook that did something beside its gradient in one trace only; empty without one."""
    for steps, counterparts, which in _iter_sides(this_steps, other_steps):
        for key, step in steps.firings.items():
            match = counterparts.firings.get(key)
            if step.row.aside and (match is None or match.row.aside != step.row.aside):
                changed = _("changed {names} of its module").format(names=join_list(list(step.row.parameters)))
                what = changed if step.row.parameters else _("drew random numbers")
                text = _("But {hook} on {on}, step {step} of {which}, {what}: it may be the cause.")
                hook = step.hook.label if step.hook else ""
                return text.format(hook=hook, on=step.on, step=step.index + 1, which=which, what=what)
    return ""


def _describe_lone_hooks(this_steps: "_KeyedSteps", other_steps: "_KeyedSteps", named: Step | None) -> Iterator[str]:
    """Yield the hooks that only one trace saw fire, without that of the firing ``named``."""
    for steps, counterparts, which in _iter_sides(this_steps, other_steps):
        places = {key[:-1] for key in counterparts.firings}
        common = {_identify_hook(step) for step in counterparts.firings.values()}
        common |= {_identify_hook(step) for key, step in steps.firings.items() if key[:-1] in places}
        common |= {_identify_hook(named)} if named else set()
        lone = [step for step in steps.firings.values() if _identify_hook(step) not in common]
        names = dict.fromkeys(_name_hook(step.hook) for step in lone if step.hook)
        if names:
            yield _("Hooks that were seen to fire only in {which}: {hooks}.").format(
                which=which, hooks=join_first([*names])
            )


def _name_hook(hook: Hook) -> str:
    names = {"kind": name_of_kind(hook.kind), "hook": hook.label, "on": hook.on}
    return _("{kind} {hook} on {on}").format(**names)


def _identify_hook(step: Step) -> tuple[str, str, str]:
    """What a hook of one trace and the same hook of the other have in common: its name, place and kind."""
    return ("", step.on, step.kind) if step.hook is None else (step.hook.name, step.hook.on, step.kind)


def _describe_uncompared(this_steps: "_KeyedSteps", other_steps: "_KeyedSteps") -> Iterator[str]:
    """Yield how many passes and gradients could not be compared."""
    if not this_steps.is_whole:
        here, there = (f"{len(steps.trace.roots):,}" for steps in (this_steps, other_steps))
        text = _(
            "Only the passes that both traces have were compared, {count}: this trace has {here}, the other {there}."
        )
        yield text.format(count=f"{this_steps.count:,}", here=here, there=there)
    keys = {**this_steps.gradients, **other_steps.gradients}
    hidden = sum(this_steps.is_hidden(key) or other_steps.is_hidden(key) for key in keys)
    if hidden:
        text = _("Gradients that could not be compared, because their numbers are not known: {count}.")
        yield text.format(count=hidden)


# -- the steps of a trace under keys that both traces share


class _KeyedSteps:
    """The gradients and the firings of a trace by their ``StepKey``.

    ``passes`` has each pass that both traces have: the index that they share, and the numbers of this trace's nodes →
    the numbers that they share. ``is_whole`` says that no trace has another pass, ``count`` how many they share.
    """

    def __init__(self, trace: TraceData, passes: Mapping[int, tuple[int, dict[int, int]]], *, is_whole: bool) -> None:
        self.trace, self._passes, self.is_whole = trace, passes, is_whole
        self.count = len(passes)
        self._counts: Counter[StepKey] = Counter()
        self.gradients: dict[StepKey, int] = {}
        """Key → the index of the step that holds the gradient."""
        self.firings: dict[StepKey, Step] = {}
        self.unknown_hooks: dict[StepKey, Step] = {}
        """The steps in which a hook that cannot be named changed a gradient."""
        self.all_observed = not any(note.fact in UNOBSERVED_NOTES for note in trace.remarks)
        """Whether the trace certainly holds every hook that ran in its passes."""
        for index in range(len(trace.rows)):
            self._add(index)

    def compares(self, row: StepRow) -> bool:
        """Whether a step belongs to a pass of both traces, or to the forward after the last pass of each."""
        return row.pass_id in self._passes or (self.is_whole and row.pass_id >= len(self.trace.roots))

    def _add(self, index: int) -> None:
        row = self.trace.rows[index]
        if not self.compares(row):
            return
        pass_id, numbers = self._passes.get(row.pass_id, (row.pass_id, {}))
        node = renumber(numbers, row.node)
        place = (pass_id, node, row.output)
        if row.kind in _GRADIENTS and node is not None:
            # If a full backward hook puts a node before the root, the root's gradient arrives, and is not a seed.
            kind = "arrive" if row.kind == "seed" else row.kind
            self.gradients[self._make_key(*place, kind)] = index
        elif row.kind in UNOBSERVED_KINDS:
            self.all_observed = False
        elif row.kind == "unknown_hook":
            self.unknown_hooks[self._make_key(*place, row.kind)] = self.trace.steps[index]
        elif row.kind in HOOK_KINDS:
            step = self.trace.steps[index]
            target = place if row.call is None and node is not None else (pass_id, step.on)
            self.firings[self._make_key(*target, row.kind, step.hook.name if step.hook else "")] = step
            if row.kind == "post_accumulate_hook" and row.subject == "gradient":
                self.gradients[*place, "accumulate", 0] = index  # the value that stays in .grad

    def _make_key(self, *fields: Any) -> StepKey:
        """``fields`` and a counter, which makes the keys of steps with equal fields unique."""
        self._counts[fields] += 1
        return (*fields, self._counts[fields] - 1)

    def value(self, key: StepKey) -> Value | None:
        """The gradient under ``key``; None if this trace has none."""
        index = self.gradients.get(key)
        after = None if index is None else self.trace.value(self.trace.rows[index].after)
        return after if isinstance(after, Value) else None

    def kinds(self) -> dict[StepKey, str]:
        """Key of a gradient → the kind of the step that holds it."""
        seeds = {key for key, index in self.gradients.items() if self.trace.rows[index].kind == "seed"}
        return {key: "seed" if key in seeds else key[3] for key in self.gradients}

    def is_hidden(self, key: StepKey) -> bool:
        """Whether the numbers of a gradient are not known, for example because it is sparse."""
        value = self.value(key)
        return value is not None and value.note is not None


def _compare_gradients(this_steps: _KeyedSteps, other_steps: _KeyedSteps) -> list[Difference]:
    """A row for each gradient that differs, in the order of their steps."""
    rows, listed = [], set()
    kinds = {**other_steps.kinds(), **this_steps.kinds()}
    for key, kind in sorted(kinds.items(), key=lambda item: item[1] == "arrive"):
        before, after = this_steps.value(key), other_steps.value(key)
        if _equal_gradients(before, after) or (kind == "arrive" and (*key[:3], repr(before), repr(after)) in listed):
            continue  # a gradient that arrives at a leaf and is then accumulated is listed once
        listed.add((*key[:3], repr(before), repr(after)))
        steps = (this_steps.gradients.get(key), other_steps.gradients.get(key))
        on = this_steps.trace.name(key[1], key[2])
        rows.append(Difference(on, kind, before, after, _largest_difference(before, after), steps))
    return sorted(rows, key=lambda row: max(-1 if step is None else step for step in row.steps))


def _equal_gradients(one: Value | None, other: Value | None) -> bool:
    """Whether two gradients hold the same numbers, regardless of their devices; NaN equals NaN."""
    if one is None or other is None:
        return one is other
    if None in (one.mean, other.mean) and one.mean != other.mean:
        return (one.shape, one.dtype) == (other.shape, other.dtype) and _equal_norms(one, other)
    return is_same_value((*one.row[:2], *one.row[3:]), (*other.row[:2], *other.row[3:]))


def _equal_norms(one: Value, other: Value) -> bool:
    """Whether two norms are equal up to rounding: devices add up in different orders."""
    return is_same_value((one.norm,), (other.norm,)) or math.isclose(one.norm, other.norm, rel_tol=1e-9)


def _largest_difference(one: Value | None, other: Value | None) -> float | None:
    """The largest absolute difference of two gradients, or of their norms; see ``Difference.amount``."""
    if one is None or other is None:
        return None
    pairs: list[tuple[complex, complex]] = [(one.norm, other.norm)]
    if one.shape == other.shape and one.tolist() is not None and other.tolist() is not None:
        pairs = list(zip(flatten_numbers(one.tolist()), flatten_numbers(other.tolist()), strict=True))
    distances = (0.0 if is_same_value((x,), (y,)) else abs(x - y) for x, y in pairs)
    return max(distances, default=0.0, key=lambda distance: (math.isnan(distance), distance))


# -- the first firing that differs


def _find_first_firing(this_steps: _KeyedSteps, other_steps: _KeyedSteps) -> tuple[Step | None, bool]:
    """Find the first firing that differs between two traces, and whether it causes the difference.

    A hook that only one trace has, and that kept the gradient, makes no difference and is skipped.
    """
    ours, theirs = list(this_steps.firings.items()), list(other_steps.firings.items())
    positions = [{key: i for i, (key, _ignored) in enumerate(firings)} for firings in (ours, theirs)]
    moments = [_count_common_steps(steps) for steps in (this_steps, other_steps)]
    i = j = 0
    while i < len(ours) or j < len(theirs):
        only_ours = ours[i][1] if i < len(ours) and positions[1].get(ours[i][0], -1) < j else None
        only_theirs = theirs[j][1] if j < len(theirs) and positions[0].get(theirs[j][0], -1) < i else None
        if only_ours and not (only_theirs and moments[1][only_theirs.index] < moments[0][only_ours.index]):
            step, i = only_ours, i + 1
        elif only_theirs:
            step, j = only_theirs, j + 1
        else:
            (key, one), (other_key, other) = ours[i], theirs[j]
            if key != other_key or not _agree(one, other):
                return other, key != other_key or _equal_values(one.before, other.before)
            i, j = i + 1, j + 1
            continue
        if step.effect not in ("kept", "ran"):
            return step, True
    return None, False


def _count_common_steps(steps: _KeyedSteps) -> list[int]:
    """For each step, the number of steps before it. Hook steps are not counted: the traces may have different hooks."""
    rows = steps.trace.rows if steps.firings else []
    return list(accumulate((row.kind not in HOOK_KINDS and steps.compares(row) for row in rows), initial=0))


def _agree(one: Step, other: Step) -> bool:
    """Whether two firings received the same values and did the same to them."""
    same_values = _equal_values(one.before, other.before) and _equal_values(one.after, other.after)
    return one.effect == other.effect and same_values


def _equal_values(one: Any, other: Any) -> bool:
    """Whether two values of hooks are the same, each a single gradient or a tuple of them."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_equal_values, one, other))
    return not isinstance(one, tuple) and not isinstance(other, tuple) and _equal_gradients(one, other)
