"""The same pass with its hooks switched off and on, recorded for every combination."""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hookviz.analysis.comparison.alignment import align
from hookviz.api.display import Displayed
from hookviz.api.trace import Trace
from hookviz.support.messages import join, say
from hookviz.support.printable import kind_of
from hookviz.support.progress import progress
from hookviz.trace import Hook, TraceData
from hookviz.what_if.runs import ALL, MOST, Run, fixed_rng, run_once, subsets
from hookviz.what_if.switches import HookId

if TYPE_CHECKING:
    from hookviz.player.payload import Content
    from hookviz.player.several_runs import Variant

Range = tuple[float, float]
Off = frozenset[int]
"""Which hooks are off, by their places in ``WhatIf.hooks``."""


class WhatIf(Displayed):
    """The passes of one function, recorded for every combination of its hooks on and off.

    ``hooks`` are those that can be switched, in the order in which they were registered; ``traces`` says for each
    combination what happened, and ``without`` finds one. ``values`` are what the function was given. In Jupyter it
    shows itself as a player in which each hook is a switch.
    """

    def __init__(self, function: Callable[..., Any], ranges: Mapping[str, Range], values: Mapping[str, float]) -> None:
        self._function, self.ranges = function, dict(ranges)
        self.values = dict(values)
        self.notes: list[str] = []
        """What the switches cannot show, and why, in sentences."""
        self._signs: list[HookId] = []
        self._runs: dict[Off, Run] = {}
        self.before: dict[Off, Run] = {}
        """Which hooks are off → that pass before the last change."""
        self._signs, self._runs, self.notes = self._recorded(self.values)

    def change(self, **values: float) -> None:
        """Record everything afresh with other ``values``, as the sliders do.

        Raises:
            TypeError: the function has no parameter of that name.
            ValueError: with these values there is nothing to show; all stays as it was.
        """
        values = {name: float(value) for name, value in values.items()}
        for name in values:
            if name not in self.values:
                raise TypeError(say("error.whatif.name", name=name, names=", ".join(self.values) or say("name.none")))
        values = {**self.values, **values}
        recorded = self._recorded(values)
        # Nothing is called between these lines, so no interrupt leaves half of them.
        self.before = self._runs
        self.values = values
        self._signs, self._runs, self.notes = recorded

    def _recorded(self, values: Mapping[str, float]) -> tuple[list[HookId], dict[Off, Run], list[str]]:
        """The hooks that can be switched, every pass with ``values``, and what the switches cannot show."""
        again = fixed_rng()
        try:
            return self._record(values, again)
        except BaseException:
            again()
            raise

    def _record(
        self, values: Mapping[str, float], again: Callable[[], None]
    ) -> tuple[list[HookId], dict[Off, Run], list[str]]:
        first = run_once(self._function, values)
        if not first.trace.rows:
            nothing = say("error.whatif.nothing", error=first.error or say("error.whatif.no_pass"))
            raise ValueError(nothing) from first.raised
        known = {frozenset[HookId](): first}
        signs: list[HookId] = []
        # Where the pass ends in an error, there may be hooks that fire only without the one that makes it.
        while len(found := _switchable(known.values())) > len(signs):
            signs = found
            known = self._runs_of(signs, known, values, again)
        again()
        last = run_once(self._function, values)
        runs = {frozenset(map(signs.index, off)): run for off, run in known.items()}
        return signs, runs, [*_limits(len(signs)), *_doubts(first, last)]

    def _runs_of(
        self,
        signs: Sequence[HookId],
        known: Mapping[frozenset[HookId], Run],
        values: Mapping[str, float],
        again: Callable[[], None],
    ) -> dict[frozenset[HookId], Run]:
        """Every run of hooks with these signs, those that are ``known`` and the others."""
        runs = {}
        wanted = [frozenset(signs[place] for place in off) for off in subsets(len(signs))]
        done = len(known.keys() & set(wanted))
        with progress(say("progress.recording", n="{n}", total="{total}"), len(wanted), done) as tick:
            for off in wanted:
                if off not in known:
                    again()
                    runs[off] = run_once(self._function, values, off)
                    tick()
                else:
                    runs[off] = known[off]
        return runs

    @property
    def hooks(self) -> list[Hook]:
        """The hooks that can be switched, in the order in which they were registered."""
        found = {sign: (run, row) for run in reversed(self._runs.values()) for row, sign in reversed(run.hooks.items())}
        first = (found[sign] for sign in self._signs[:MOST])  # where it is seen first
        return [run.trace.hook(row) for run, row in first]

    @property
    def traces(self) -> dict[Off, Trace]:
        """Which hooks are off, by their places in ``hooks`` → the trace of that pass."""
        return {off: run.trace for off, run in self._runs.items()}

    def without(self, *hooks: str | int) -> Trace:
        """The trace of the pass without ``hooks``, given by their names, or by their places in ``hooks``.

        A name stands for every hook of that name.

        Raises:
            ValueError: there is no such hook, or that combination was not recorded.
        """
        off = frozenset(index for hook in hooks for index in self._places(hook))
        if off not in self._runs:
            raise ValueError(say("error.whatif.alone", count=len(self._signs)))
        return self._runs[off].trace

    def _places(self, hook: str | int) -> Collection[int]:
        known = self.hooks
        found = [i for i, other in enumerate(known) if hook in (i, other.name, other.label)]
        if not found:
            names = ", ".join(other.label for other in known)
            raise ValueError(say("error.whatif.hook", hook=hook, names=names or say("name.none")))
        return found

    def content(self) -> "Content":
        """All that the player shows, as plain data."""
        from hookviz.player.several_runs import several_runs
        from hookviz.player.wording import add_notes

        content = several_runs([*self._variants()], dict(zip(self._signs, self.hooks, strict=False)))
        content["combinations"] = {",".join(map(str, sorted(off))): place for place, off in enumerate(self._runs)}
        add_notes(content, self.notes)
        return content

    def _variants(self) -> Iterator["Variant"]:
        """The passes as they are, and behind them those before the last change, if they have the same hooks."""
        from hookviz.player.several_runs import Variant

        changed = self.before.keys() == self._runs.keys()
        for place, (off, run) in enumerate(self._runs.items()):
            beside = len(self._runs) + place if changed else 0 if off else None
            yield Variant(run.trace, *self._words(off), beside, run.hooks, has_questions=not off)
        for run in self.before.values() if changed else ():
            yield Variant(run.trace, say("variant.before"), "", say("player.off"), None, run.hooks, is_shown=False)

    def _words(self, off: Off) -> tuple[str, str, str]:
        """Which variant it is, why it lacks a step of another one, and what stands on a hook that it has not."""
        hooks = self.hooks
        count = Counter(hook.label for hook in hooks)
        labels = join(
            "join.list",
            (
                hook.label if count[hook.label] == 1 else say("whatif.hook", hook=hook.label, on=hook.on)
                for hook in (hooks[place] for place in sorted(off))
            ),
        )
        if not off:
            key = "all" if hooks else "now"
            return say(f"variant.{key}"), say(f"absent.{key}"), say("player.off")
        return say("variant.without", hooks=labels), say("absent.without", hooks=labels), say("player.off")

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:g}" for name, value in self.values.items())
        summary = say("whatif.summary", hooks=len(self.hooks), passes=len(self._runs))
        alone = say("whatif.summary.values", values=values) if values else say("whatif.summary.none")
        return " ".join([summary if self.hooks else alone, *self.notes])


class Sliding(WhatIf):
    """A what-if whose values have sliders."""

    def _ipython_display_(self, **_: Any) -> None:
        from hookviz.what_if.slider_panel import show

        show(self)


def _switchable(runs: Iterable[Run]) -> list[HookId]:
    """The hooks that are seen in one of ``runs``, in the order in which the first, with every hook on, has them."""
    first, *others = runs
    seen = {sign for run in (first, *others) for sign in run.hooks.values()}
    return [sign for sign in dict.fromkeys(first.signs.values()) if sign in seen]


def _limits(count: int) -> Iterable[str]:
    """Which combinations of so many hooks there are not."""
    if count > MOST:
        yield say("whatif.most", count=count, most=MOST)
    if count > ALL:
        yield say("whatif.alone", count=count)


def _doubts(first: Run, last: Run) -> Iterable[str]:
    """What is not as the switches make it seem, after two runs with every hook on."""
    fired = {step.row.hook for step in first.trace.firings} - first.hooks.keys()
    before = dict.fromkeys(first.trace.hook(index).label for index in sorted(i for i in fired if i is not None))
    if before:
        yield say("whatif.before", hooks=join("join.list", before))
    once, twice = align([first.trace, last.trace], [first.hooks, last.hooks])
    differ = next((i for i in range(len(once.rows)) if _seen(once, i) != _seen(twice, i)), None)
    if differ is not None:
        yield say("whatif.differs", on=once.steps[differ].on or twice.steps[differ].on)


def _seen(trace: TraceData, index: int) -> str:
    """What a step shows; NaN is like NaN."""
    step = trace.steps[index]
    return repr((step.kind, step.before, step.after, step.effect, step.row.error, step.row.region, step.row.note))


def whatif(run: Callable[..., Any], /, **ranges: Range) -> WhatIf:
    """Record the pass that ``run`` builds and runs, once for every combination of its hooks on and off.

    ``run`` makes its tensors, registers its hooks and runs its pass; a hook is switched off by not carrying out its
    registration, so that each trace is that of a real pass. Up to five hooks make up to 32 passes; of more, each is
    switched off alone. Random numbers begin anew for each pass. Hooks that are registered before ``run`` stay on; what
    ``run`` leaves registered, as on a model from outside it, is removed after each pass.

    Args:
        run: a function whose arguments, if it has any, are numbers.
        ranges: for each argument that is to have a slider, the smallest and the largest number. It begins at the
            argument's default, or in the middle. ``run`` is given a float: ``int(n)`` makes a whole number of it.

    Raises:
        TypeError: ``run`` cannot be called, has no such argument, or wants one for which there is no number.
        ValueError: a range is no pair of numbers, the smaller one first; or ``run`` ran no module and no backward pass.

    >>> import torch
    >>> def run(x=3.0):
    ...     x = torch.tensor(x, requires_grad=True)
    ...     x.register_hook(lambda grad: grad * 10)
    ...     (x * x).backward()
    >>> both = whatif(run, x=(-5, 5))
    >>> both.traces[frozenset()].steps[-1].after.tolist(), both.without(0).steps[-1].after.tolist()
    (60.0, 6.0)
    """
    if not callable(run):
        raise TypeError(say("error.whatif.type", kind=kind_of(run)))
    for name, given in ranges.items():
        if not _is_range(given):
            raise ValueError(say("error.whatif.range", name=name, given=repr(given)))
    return (Sliding if ranges else WhatIf)(run, ranges, _beginning(run, ranges))


def _is_range(given: Any) -> bool:
    numbers = isinstance(given, (tuple, list)) and len(given) == 2 and all(map(_is_number, given))
    return numbers and given[0] < given[1]


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float)) and math.isfinite(given)


def _beginning(run: Callable[..., Any], ranges: Mapping[str, Range]) -> dict[str, float]:
    """What ``run`` is given at first."""
    parameters = inspect.signature(run).parameters
    names = ", ".join(parameters) or say("name.none")
    values: dict[str, float] = {}
    for name in ranges:
        if name not in parameters:
            raise TypeError(say("error.whatif.name", name=name, names=names))
    for name, parameter in parameters.items():
        default = parameter.default
        if name in ranges:
            low, high = ranges[name]
            middle = low / 2 + high / 2
            values[name] = float(min(max(default, low), high)) if _is_number(default) else middle
        elif default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(say("error.whatif.argument", name=name))
    return values
