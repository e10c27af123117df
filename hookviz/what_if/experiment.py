"""The same pass with its hooks switched off and on, recorded for every combination."""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from hookviz.analysis.alignment import align
from hookviz.api.display import Displayable
from hookviz.api.trace import Trace
from hookviz.support.messages import N_, _, join_list, pluralize
from hookviz.support.printable import describe_type
from hookviz.support.progress import progress
from hookviz.trace import Hook, TraceData
from hookviz.trace.values import rows_of
from hookviz.what_if.runs import RecordedRun, fixed_rng, run_once
from hookviz.what_if.switches import HookId

if TYPE_CHECKING:
    from hookviz.player.payload import Content
    from hookviz.player.several_runs import Variant

_UNKNOWN_ARGUMENT = N_("The function has no argument {name}. It has: {names}.")
_SWITCHED_OFF = N_("off")

Range = tuple[float, float]
OffHooks = frozenset[int]
"""The hooks that are off, as indexes into ``WhatIf.hooks``."""


class WhatIf(Displayable):
    """The passes of one function, recorded for every combination of its hooks on and off.

    ``hooks`` has the hooks that can be switched, in the order of their registration; ``traces`` has the trace of each
    combination, and ``without`` finds one of them. ``values`` has the arguments of the function. Jupyter shows it as a
    player in which each hook is a switch.
    """

    def __init__(self, function: Callable[..., Any], ranges: Mapping[str, Range], values: Mapping[str, float]) -> None:
        self._function = function
        self.ranges = dict(ranges)
        """Argument that has a slider → the smallest and the largest number."""
        self.values = dict(values)
        """Argument of the function → the number with which the passes were recorded."""
        self.notes: list[str]
        """Sentences about what the switches cannot show, and why."""
        self.before: dict[OffHooks, RecordedRun] = {}
        """The hooks that are off → the run of that pass before the last change."""
        self._hook_ids, self._runs, self.notes = self._record_restoring_rng(self.values)

    def change(self, **values: float) -> None:
        """Record all passes again with other ``values``, as the sliders do.

        Raises:
            TypeError: the function has no parameter of that name.
            ValueError: nothing is recorded with these values; the earlier passes stay.
        """
        values = {name: float(value) for name, value in values.items()}
        for name in values:
            if name not in self.values:
                raise TypeError(_(_UNKNOWN_ARGUMENT).format(name=name, names=", ".join(self.values) or "None"))
        values = {**self.values, **values}
        recorded = self._record_restoring_rng(values)
        # No call between these lines, so that an interrupt cannot leave them half done.
        self.before = self._runs
        self.values = values
        self._hook_ids, self._runs, self.notes = recorded

    def _record_restoring_rng(
        self, values: Mapping[str, float]
    ) -> tuple[list[HookId], dict[OffHooks, RecordedRun], list[str]]:
        """As ``_record``; if that fails, restore the state of the random number generators."""
        restore_rng = fixed_rng()
        try:
            return self._record(values, restore_rng)
        except BaseException:
            restore_rng()
            raise

    def _record(
        self, values: Mapping[str, float], restore_rng: Callable[[], None]
    ) -> tuple[list[HookId], dict[OffHooks, RecordedRun], list[str]]:
        """Record every pass with ``values``: the hooks that can be switched, the runs, and the notes."""
        first = run_once(self._function, values)
        if not first.trace.rows:
            nothing = _("Nothing to show: {error}").format(
                error=first.error or _("the function called no module and ran no backward pass.")
            )
            raise ValueError(nothing) from first.exception
        known = {frozenset[HookId](): first}
        hook_ids: list[HookId] = []
        # If a hook makes the pass fail, other hooks may fire only without it.
        while len(found := _switchable_hooks(known.values())) > len(hook_ids):
            hook_ids = found
            known = self._runs_of(hook_ids, known, values, restore_rng)
        restore_rng()
        last = run_once(self._function, values)
        runs = {frozenset(map(hook_ids.index, off)): run for off, run in known.items()}
        return hook_ids, runs, [*_combination_limits(len(hook_ids)), *_switch_warnings(first, last)]

    def _runs_of(
        self,
        hook_ids: Sequence[HookId],
        known: Mapping[frozenset[HookId], RecordedRun],
        values: Mapping[str, float],
        restore_rng: Callable[[], None],
    ) -> dict[frozenset[HookId], RecordedRun]:
        """Record a run for each combination of these hooks, unless it is ``known``; return all runs."""
        runs = {}
        wanted = [frozenset(hook_ids[index] for index in off) for off in subsets(len(hook_ids))]
        done = len(known.keys() & set(wanted))
        text = _("Recording the run with different hooks off: {n} of {total}")
        with progress(text, len(wanted), done) as tick:
            for off in wanted:
                if off not in known:
                    restore_rng()
                    runs[off] = run_once(self._function, values, off)
                    tick()
                else:
                    runs[off] = known[off]
        return runs

    @property
    def hooks(self) -> list[Hook]:
        """The hooks that can be switched, in the order of their registration."""
        found = {
            hook_id: (run, row) for run in reversed(self._runs.values()) for row, hook_id in reversed(run.hooks.items())
        }
        first_seen = (found[hook_id] for hook_id in self._hook_ids[:MAX_HOOKS])
        return [run.trace.hook(row) for run, row in first_seen]

    @property
    def traces(self) -> dict[OffHooks, Trace]:
        """The hooks that are off, as indexes into ``hooks`` → the trace of that pass."""
        return {off: Trace(run.trace) for off, run in self._runs.items()}

    def without(self, *hooks: str | int) -> Trace:
        """Return the trace of the pass without these hooks, given by name or by index in ``hooks``.

        A name means every hook of that name.

        Raises:
            ValueError: there is no such hook, or that combination was not recorded.
        """
        off = frozenset(index for hook in hooks for index in self._indexes(hook))
        if off not in self._runs:
            raise ValueError(
                _("That combination was not recorded: with {count} hooks, each was switched off alone.").format(
                    count=len(self._hook_ids)
                )
            )
        return Trace(self._runs[off].trace)

    def _indexes(self, hook: str | int) -> Collection[int]:
        known = self.hooks
        found = [i for i, other in enumerate(known) if hook in (i, other.name, other.label)]
        if not found:
            names = ", ".join(other.label for other in known)
            raise ValueError(
                _("There is no hook {hook} to switch off. There are: {names}.").format(hook=hook, names=names or "None")
            )
        return found

    def content(self) -> "Content":
        """Return the content of the player, as plain data."""
        from hookviz.player.several_runs import several_runs

        content = several_runs([*self._variants()], dict(zip(self._hook_ids, self.hooks, strict=False)))
        content["combinations"] = {",".join(map(str, sorted(off))): index for index, off in enumerate(self._runs)}
        content["notes"] = [*self.notes, *content["notes"]]
        return content

    def _variants(self) -> Iterator["Variant"]:
        """Yield the passes, and then those before the last change if they have the same hooks."""
        from hookviz.player.several_runs import Variant

        shows_earlier = self.before.keys() == self._runs.keys()
        for index, (off, run) in enumerate(self._runs.items()):
            compared_with = len(self._runs) + index if shows_earlier else 0 if off else None
            texts, labels = self._variant_texts(off), self._labels(off)
            yield Variant(run.trace, *texts, _(_SWITCHED_OFF), compared_with, run.hooks, off_hooks=labels)
        for run in self.before.values() if shows_earlier else ():
            yield Variant(run.trace, _("Before the change"), "", _(_SWITCHED_OFF), None, run.hooks, is_shown=False)

    def _labels(self, off: OffHooks) -> list[str]:
        """Names of the hooks that are off: with their tensor or module where two hooks have the same name."""
        hooks = self.hooks
        count = Counter(hook.label for hook in hooks)
        return [
            hook.label if count[hook.label] == 1 else _("{hook} on {on}").format(hook=hook.label, on=hook.on)
            for hook in (hooks[index] for index in sorted(off))
        ]

    def _variant_texts(self, off: OffHooks) -> tuple[str, str]:
        """The texts of a variant: its name, and why it lacks a step of another one."""
        if off:
            name, absent = _("Without {hooks}"), _("This step does not happen without {hooks}.")
        elif self.hooks:
            name, absent = _("With every hook on"), _("This step does not happen with every hook on.")
        else:
            name, absent = _("After the change"), _("This step does not happen after the change.")
        labels = join_list(self._labels(off))
        return name.format(hooks=labels), absent.format(hooks=labels)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:g}" for name, value in self.values.items())
        summary = _("What if: {hooks} that you can switch off, in {passes}.").format(
            hooks=pluralize(len(self.hooks), _("{count} hook"), _("{count} hooks")),
            passes=pluralize(len(self._runs), _("{count} recorded pass"), _("{count} recorded passes")),
        )
        without_hooks = (
            _("What if: one recorded pass, without hooks to switch off. Values: {values}.").format(values=values)
            if values
            else _("What if: one recorded pass, without hooks to switch off.")
        )
        return " ".join([summary if self.hooks else without_hooks, *self.notes])


class WhatIfWithSliders(WhatIf):
    """A ``WhatIf`` with sliders for its values."""

    def _ipython_display_(self, **_ignored: Any) -> None:
        from hookviz.what_if.slider_panel import show

        show(self)


def _switchable_hooks(runs: Iterable[RecordedRun]) -> list[HookId]:
    """The hooks seen in any of ``runs``, in the order of the first run, which has every hook on."""
    first, *others = runs
    recorded = {hook_id for run in (first, *others) for hook_id in run.hooks.values()}
    return [hook_id for hook_id in dict.fromkeys(first.hook_ids.values()) if hook_id in recorded]


def _combination_limits(count: int) -> Iterable[str]:
    """Yield sentences about the combinations of ``count`` hooks that are not recorded."""
    if count > MAX_HOOKS:
        yield _("There are {count} hooks: the first {most} can be switched off.").format(count=count, most=MAX_HOOKS)
    if count > MAX_COMBINED:
        yield _("There are {count} hooks: each was switched off alone, not every combination of them.").format(
            count=count
        )


def _switch_warnings(first: RecordedRun, last: RecordedRun) -> Iterable[str]:
    """Yield warnings where the switches mislead, found in two runs with every hook on."""
    outside = {step.row.hook for step in first.trace.firings} - first.hooks.keys()
    always_on = dict.fromkeys(first.trace.hook(index).label for index in sorted(i for i in outside if i is not None))
    if always_on:
        yield _("These hooks were registered before the function ran, and stay on: {hooks}.").format(
            hooks=join_list(always_on)
        )
    aligned_first, aligned_last = align([first.trace, last.trace], [first.hooks, last.hooks])
    differ = next(
        (
            i
            for i in range(len(aligned_first.rows))
            if _step_content(aligned_first, i) != _step_content(aligned_last, i)
        ),
        None,
    )
    if differ is not None:
        yield _(
            "The function gives other results when it runs twice (see {on}): create its tensors and "
            "models inside it, or the switches show that difference, too."
        ).format(on=aligned_first.steps[differ].on or aligned_last.steps[differ].on)


def _step_content(trace: TraceData, index: int) -> str:
    """A text of all that a step shows, in which NaN equals NaN."""
    step = trace.steps[index]
    values = rows_of(step.before), rows_of(step.after)
    return repr((step.kind, values, step.effect, step.row.error, step.row.region, step.row.note))


def whatif(run: Callable[..., Any], /, **ranges: Range) -> WhatIf:
    """Record the pass that ``run`` builds and runs, once for every combination of its hooks on and off.

    ``run`` makes its tensors, registers its hooks and runs its pass. To switch a hook off, its registration is skipped,
    so that each trace is of a real pass. Up to five hooks make up to 32 passes; with more than five hooks, each is
    switched off alone. Each pass begins with the same random state. Hooks that were registered before ``run`` stay on;
    hooks that ``run`` leaves registered, such as on a model from outside, are removed after each pass.

    Args:
        run: a function whose arguments, if it has any, are numbers.
        ranges: for each argument that gets a slider, the smallest and the largest number. The slider begins at the
            argument's default, or in the middle. ``run`` gets a float: use ``int(n)`` for a whole number.

    Raises:
        TypeError: ``run`` is not callable, has no such argument, or requires one for which there is no number.
        ValueError: a range is not a pair (smaller, larger) of numbers; or ``run`` ran no module and no backward pass.

    >>> import torch, hookviz as hv
    >>> def run(x=3.0):
    ...     x = torch.tensor(x, requires_grad=True)
    ...     x.register_hook(lambda grad: grad * 10)
    ...     (x * x).backward()
    >>> both = hv.whatif(run, x=(-5, 5))
    >>> both.traces[frozenset()].steps[-1].after.tolist(), both.without(0).steps[-1].after.tolist()
    (60.0, 6.0)
    """
    if not callable(run):
        raise TypeError(
            _("whatif() takes a function that builds and runs a pass; this is {kind}.").format(kind=describe_type(run))
        )
    for name, given in ranges.items():
        if not _is_range(given):
            raise ValueError(
                _("A range is two numbers, the smaller one first, such as (-3, 3); {name} is {given}.").format(
                    name=name, given=repr(given)
                )
            )
    return (WhatIfWithSliders if ranges else WhatIf)(run, ranges, _start_values(run, ranges))


def _is_range(given: Any) -> bool:
    numbers = isinstance(given, (tuple, list)) and len(given) == 2 and all(map(_is_number, given))
    return numbers and given[0] < given[1]


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float)) and math.isfinite(given)


def _start_values(run: Callable[..., Any], ranges: Mapping[str, Range]) -> dict[str, float]:
    """The first value of each slider."""
    parameters = inspect.signature(run).parameters
    names = ", ".join(parameters) or "None"
    values: dict[str, float] = {}
    for name in ranges:
        if name not in parameters:
            raise TypeError(_(_UNKNOWN_ARGUMENT).format(name=name, names=names))
    for name, parameter in parameters.items():
        default = parameter.default
        if name in ranges:
            low, high = ranges[name]
            middle = low / 2 + high / 2
            values[name] = float(min(max(default, low), high)) if _is_number(default) else middle
        elif default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                _(
                    "The function needs a value for {name}: give it a default, or a range such as {name}=(-3, 3)."
                ).format(name=name)
            )
    return values


MAX_COMBINED = 5
"""Up to this many hooks, every combination is recorded: 32 passes. With more, each hook is switched off alone."""
MAX_HOOKS = 40
"""At most this many hooks can be switched: each one takes a pass to record."""


def subsets(count: int) -> list[frozenset[int]]:
    """List the sets of hooks to switch off, for ``count`` hooks; the empty set first.

    >>> [sorted(off) for off in subsets(2)]
    [[], [0], [1], [0, 1]]
    >>> len(subsets(5)), len(subsets(6))
    (32, 7)
    """
    largest = count if count <= MAX_COMBINED else 1
    return [frozenset(off) for size in range(largest + 1) for off in combinations(range(min(count, MAX_HOOKS)), size)]
