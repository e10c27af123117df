"""Two traces of the same program side by side: which gradients differ, and from which hook on."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from hookviz.analysis.comparison.graph_matching import matched
from hookviz.support.messages import say
from hookviz.support.printable import describe_type
from hookviz.trace import HOOK_KINDS, Step, TraceData
from hookviz.trace.values import Value, flatten_numbers, is_same_value

GRADIENT_KINDS = ("seed", "arrive", "retain_grad", "accumulate", "returned")
"""The kinds of step in which a gradient stands somewhere to be compared."""

UNSEEN_KINDS = ("unobserved", "compiled", "fast_path")
"""The kinds of step inside which hooks may have run that are not in the trace."""

UNSEEN_NOTES = ("note.saved", "note.unfollowed", "note.uncalled", "note.uncalled.compiled", "note.only")
"""The notes which say that there may have been such hooks."""

Where = tuple[Any, ...]
"""What tells a step from the others of its trace, in terms that two traces of one program share."""


@dataclass(frozen=True)
class Difference:
    """A gradient that is not the same in two traces."""

    on: str
    kind: str
    """The kind of step at which it was seen."""
    before: Value | None
    """Its value in this trace; None where it has none."""
    after: Value | None
    """Its value in the other trace."""
    amount: float | None
    """The largest absolute difference, or that of the norms where numbers were not kept; None without two values."""
    steps: tuple[int | None, int | None]
    """The step in this trace, and the step in the other."""


class Differences(NamedTuple):
    """What two traces of one program do not have in common."""

    rows: list[Difference]
    first: Step | None
    """The first firing from which they differ, in the other trace unless only this one has it."""
    caused: bool
    """Whether that firing makes the difference itself."""
    said: list[str]
    """The whole in sentences."""


def differences(this: TraceData, other: TraceData) -> Differences:
    """Which gradients differ between ``this`` and ``other``, two traces of the same program.

    Raises:
        TypeError: ``other`` is no trace.
        ValueError: the traces are not of the same graph.
    """
    if not isinstance(other, TraceData):
        raise TypeError(say("error.diff.type", kind=describe_type(other)))
    numbers = matched(this, other)
    own = [{ours: ours for ours in there.values()} for there in numbers]
    here, there = _Told(this, own), _Told(other, numbers)
    rows = _differences(here, there)
    first, caused = _first(list(here.firings.items()), list(there.firings.items())) if rows else (None, False)
    if first is not None:
        side = 0 if first.trace is this else 1
        caused = caused and not any(_precedes(row.steps[side], first) for row in rows)
    unseen = _unseen(here, there) if rows and not (first and caused) else ""
    hooked, guessed = bool(here.firings or there.firings), bool(unseen or here.unknown or there.unknown)
    sentences = [_sentence(this, rows, first, caused, hooked=hooked, unseen=guessed)]
    sentences += [unseen] if unseen else []
    hidden = sum(here.hides(where) or there.hides(where) for where in {**here.gradients, **there.gradients})
    if hidden:
        sentences.append(say("diff.hidden", count=hidden))
    return Differences(rows, first, caused, sentences)


def _step_of(row: Difference) -> int:
    """The step at which a gradient that differs was seen: in this trace, or in the other if this one has none."""
    this, other = row.steps
    return (other or 0) if this is None else this


def _precedes(step: int | None, first: Step) -> bool:
    return step is not None and step < first.index


def _sentence(
    this: TraceData, rows: Sequence[Difference], first: Step | None, caused: bool, *, hooked: bool, unseen: bool
) -> str:
    if not rows:
        return say("diff.equal")
    if first is not None and first.hook is not None:
        which = say("diff.this" if first.trace is this else "diff.other")
        where = {"hook": first.hook.label, "on": first.on, "step": first.index + 1, "which": which}
        return say("diff.first" if caused else "diff.already", count=len(rows), **where)
    if unseen:
        return say("diff.unseen", count=len(rows))
    if hooked:
        return say("diff.no_hook", count=len(rows))
    begins = min(rows, key=_step_of)
    which = say("diff.other" if begins.steps[0] is None else "diff.this")
    return say("diff.unhooked", count=len(rows), on=begins.on, step=_step_of(begins) + 1, which=which)


def _unseen(here: "_Told", there: "_Told") -> str:
    """What may have made the difference though the traces cannot name it; empty where all was observed."""
    for mine, yours, which in ((here, there, "this"), (there, here, "other")):
        for where, step in mine.unknown.items():
            like = yours.unknown.get(where)
            if like is None or (_alike(step.before, like.before) and not _agree(step, like)):
                return say("diff.unknown", on=step.on, step=step.index + 1, which=say(f"diff.{which}"))
    return "" if here.observed and there.observed else say("diff.unobserved")


# -- what a trace tells, in terms that both share


class _Told:
    """The gradients and the firings of a trace, each under what tells it from the others."""

    def __init__(self, trace: TraceData, numbers: Sequence[dict[int, int]]) -> None:
        self.trace, self._numbers = trace, numbers
        self._seen: Counter[Where] = Counter()
        self.gradients: dict[Where, int] = {}
        """What tells a gradient from the others → the step at which it was seen."""
        self.firings: dict[Where, Step] = {}
        self.unknown: dict[Where, Step] = {}
        """The changes of gradients by hooks that cannot be named, which are no firings."""
        self.observed = not any(note.key in UNSEEN_NOTES for note in trace.remarks)
        """Whether every hook that ran in the passes is known to be in the trace."""
        for index in range(len(trace.rows)):
            self._take(index)

    def _take(self, index: int) -> None:
        row = self.trace.rows[index]
        node = self._numbers[row.pass_id].get(row.node) if row.pass_id < len(self._numbers) else None
        place = (row.pass_id, node, row.output)
        if row.kind in GRADIENT_KINDS and node is not None:
            # Where a full backward hook put a node before the root, what is the seed otherwise arrives there.
            kind = "arrive" if row.kind == "seed" else row.kind
            self.gradients[self._counted(*place, kind)] = index
        elif row.kind in UNSEEN_KINDS:
            self.observed = False
        elif row.kind == "unknown_hook":
            self.unknown[self._counted(*place, row.kind)] = self.trace.steps[index]
        elif row.kind in HOOK_KINDS:
            step = self.trace.steps[index]
            where = place if row.call < 0 and node is not None else (row.pass_id, step.on)
            self.firings[self._counted(*where, row.kind, step.hook.name if step.hook else "")] = step
            if row.kind == "post_accumulate_hook" and row.subject == "gradient":
                self.gradients[*place, "accumulate", 0] = index  # this is what stays in .grad

    def _counted(self, *where: Any) -> Where:
        """``where``, and how many there were before with nothing else to tell them apart."""
        self._seen[where] += 1
        return (*where, self._seen[where] - 1)

    def value(self, where: Where) -> Value | None:
        """The gradient at a place; None where there is none."""
        index = self.gradients.get(where)
        after = None if index is None else self.trace.value(self.trace.rows[index].after)
        return after if isinstance(after, Value) else None

    def kinds(self) -> dict[Where, str]:
        """For each gradient the kind of step at which it was seen."""
        seeds = {where for where, index in self.gradients.items() if self.trace.rows[index].kind == "seed"}
        return {where: "seed" if where in seeds else where[3] for where in self.gradients}

    def hides(self, where: Where) -> bool:
        """Whether the numbers of the gradient at a place are not known, as those of a sparse one."""
        value = self.value(where)
        return value is not None and value.note is not None


def _differences(here: _Told, there: _Told) -> list[Difference]:
    """A row for each gradient that differs, in the order of the one trace and then of the other."""
    rows, said = [], set()
    kinds = {**there.kinds(), **here.kinds()}
    for where, kind in sorted(kinds.items(), key=lambda item: item[1] == "arrive"):
        before, after = here.value(where), there.value(where)
        if _same(before, after) or (kind == "arrive" and (*where[:3], repr(before), repr(after)) in said):
            continue  # what arrives at a leaf and is then written need not be said twice
        said.add((*where[:3], repr(before), repr(after)))
        steps = (here.gradients.get(where), there.gradients.get(where))
        on = here.trace.name(where[1], where[2])
        rows.append(Difference(on, kind, before, after, _amount(before, after), steps))
    return sorted(rows, key=lambda row: max(-1 if step is None else step for step in row.steps))


def _same(one: Value | None, other: Value | None) -> bool:
    """Whether two gradients hold the same numbers, on whatever device; NaN is like NaN."""
    if one is None or other is None:
        return one is other
    if None in (one.mean, other.mean) and one.mean != other.mean:
        return (one.shape, one.dtype) == (other.shape, other.dtype) and _like_norms(one, other)
    return is_same_value((*one.row[:2], *one.row[3:]), (*other.row[:2], *other.row[3:]))


def _like_norms(one: Value, other: Value) -> bool:
    """Whether two gradients, of one of which only the norm was read, agree in it; a device sums up in its own order."""
    return is_same_value((one.norm,), (other.norm,)) or math.isclose(one.norm, other.norm, rel_tol=1e-9)


def _amount(one: Value | None, other: Value | None) -> float | None:
    if one is None or other is None:
        return None
    pairs: list[tuple[complex, complex]] = [(one.norm, other.norm)]
    if one.shape == other.shape and one.tolist() is not None and other.tolist() is not None:
        pairs = list(zip(flatten_numbers(one.tolist()), flatten_numbers(other.tolist()), strict=True))
    return max((_far(*pair) for pair in pairs), default=0.0, key=lambda far: (math.isnan(far), far))


def _far(x: complex, y: complex) -> float:
    return 0.0 if is_same_value((x,), (y,)) else abs(x - y)


# -- the first firing that differs


def _first(here: Sequence[tuple[Where, Step]], there: Sequence[tuple[Where, Step]]) -> tuple[Step | None, bool]:
    """The first firing that is not the same in both, and whether it makes the difference itself.

    A hook that only one of them has, and that kept the gradient, makes none and is passed over.
    """
    spots = [{where: i for i, (where, _) in enumerate(firings)} for firings in (here, there)]
    moments = [_moments(firings) for firings in (here, there)]
    i = j = 0
    while i < len(here) or j < len(there):
        mine = here[i][1] if i < len(here) and spots[1].get(here[i][0], -1) < j else None
        yours = there[j][1] if j < len(there) and spots[0].get(there[j][0], -1) < i else None
        if mine and not (yours and moments[1][yours.index] < moments[0][mine.index]):
            step, i = mine, i + 1
        elif yours:
            step, j = yours, j + 1
        else:
            (place, one), (other_place, other) = here[i], there[j]
            if place != other_place or not _agree(one, other):
                return other, place != other_place or _alike(one.before, other.before)
            i, j = i + 1, j + 1
            continue
        if step.effect not in ("kept", "ran"):
            return step, True
    return None, False


def _moments(firings: Sequence[tuple[Where, Step]]) -> list[int]:
    """For each step how many went before, less those of hooks, of which two traces have not the same."""
    rows = firings[0][1].trace.rows if firings else []
    return list(accumulate((row.kind not in HOOK_KINDS for row in rows), initial=0))


def _agree(one: Step, other: Step) -> bool:
    return one.effect == other.effect and _alike(one.before, other.before) and _alike(one.after, other.after)


def _alike(one: Any, other: Any) -> bool:
    """Whether what a hook saw, one value or several, is the same."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return not isinstance(one, tuple) and not isinstance(other, tuple) and _same(one, other)
