"""When the modules of a trace were called, what was called in place of another, and what limits what is known of it."""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Literal

from hookviz.analysis.findings.hooks.program_text import describe_copying
from hookviz.analysis.findings.parameters.missing_gradients import MissingGradient, list_missing_gradients
from hookviz.analysis.findings.parameters.places import CUTS, Place, PlaceFinder
from hookviz.support.messages import _, join_first, join_list, join_sentences
from hookviz.trace import MODULE_HOOK_KINDS, CallRow, ModuleRow, TraceData, UnfiredRow
from hookviz.trace.notes import PART_NOTES
from hookviz.trace.traversal import find_calls_in_graphs, iter_enclosing_calls, list_outer_paths

_WITHOUT_GRAPH = (*CUTS, "no_grad", "inference", "checkpoint", "unused", "unnamed")
"""The kinds of places that keep gradients from a parameter of a module that was called."""
_LIMITED = ("every", *PART_NOTES)

Fact = Literal["calls", "passes", "graphs"]
"""What a conclusion needs: every call of a module, every backward pass, or the whole graph of each pass."""
ALL_FACTS: frozenset[Fact] = frozenset({"calls", "passes", "graphs"})
TWIN = "twin"
"""The place of the call of a module that resembles one that was not called."""
MAX_TWINS = 4
"""A sentence names at most so many modules that resemble one."""


class Timeline:
    """The steps of a trace at which hooks could fire."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._calls: dict[int, list[int]] = {}
        """Module → the steps at which it was called."""
        self.seeds: list[int] = []
        """The steps at which passes begin."""
        self.exceptions: list[int] = []
        for step, row in enumerate(trace.rows):
            if row.kind == "call":
                self._calls.setdefault(trace.calls[row.own_call].module, []).append(step)
            elif row.kind == "seed":
                self.seeds.append(step)
            elif row.kind == "exception":
                self.exceptions.append(step)

    def calls_of(self, hook: UnfiredRow) -> list[int]:
        """Return the steps at which the module of a hook was called; any module for a hook of all modules."""
        if "global" in hook.flags:
            return sorted(step for steps in self._calls.values() for step in steps)
        return self._calls.get(-1 if hook.module is None else hook.module, [])

    def calls_while(self, hook: UnfiredRow) -> list[int]:
        """Return the steps at which the module of a hook was called while the hook was registered."""
        return between(self.calls_of(hook), hook.since, hook.until)

    def first_call(self, module: int) -> int | None:
        """Return the first step at which a module was called."""
        return next(iter(self._calls.get(module, ())), None)

    def first_call_of(self, name: str) -> int | None:
        """Return the first step at which a module with a name was called."""
        numbers = (number for number, row in enumerate(self.trace.modules) if row.name == name)
        return next((step for number in numbers if (step := self.first_call(number)) is not None), None)

    def exception_in(self, calls: set[int]) -> int | None:
        """Return the step of the exception in the last of ``calls``, if exceptions ended them all."""
        ended: dict[int, int] = {}
        for step in self.exceptions:
            for call in iter_enclosing_calls(self.trace, self.trace.rows[step].call):
                ended.setdefault(call, step)
        return ended[max(calls)] if calls and calls <= ended.keys() else None

    def has_ended_before(self, hook: UnfiredRow) -> bool:
        """Return whether the last step is an exception, and no pass began after a hook was registered before it."""
        last = len(self.trace.rows) - 1
        has_ended = bool(self.exceptions) and self.exceptions[-1] == last
        return has_ended and (hook.since or 0) <= last and not self.passes_while(hook)

    def optimizers_named(self, name: str) -> set[int]:
        """Return the numbers of the optimizers with a name."""
        return {index for index, row in enumerate(self.trace.optimizers) if row.name == name}

    def steps_of(self, hook: UnfiredRow) -> list[int]:
        """Return the steps of the optimizer of a hook."""
        numbers, rows = self.optimizers_named(hook.on), self.trace.rows
        steps = self.trace.lookup.steps_of_kinds("optimizer_step")
        return [step for step in steps if rows[step].optimizer in numbers]

    def passes_while(self, hook: UnfiredRow) -> list[int]:
        """Return the steps at which passes began while a hook was registered."""
        return between(self.seeds, hook.since, hook.until)

    def has_pass_into_earlier_call(self, hook: UnfiredRow) -> bool:
        """Return whether a pass began while a hook was registered, and ran through a call of its module before it."""
        earlier = [] if hook.since is None else between(self.calls_of(hook), None, hook.since)
        calls = {self.trace.rows[step].own_call for step in earlier}
        passes = [self.trace.rows[step].pass_id for step in self.passes_while(hook)] if calls else []
        rows = (self.trace.rows[step] for pass_id in passes for step in self.trace.lookup.steps(pass_id))
        owners = {self.trace.owners.get(row.own_node) for row in rows if row.kind == "compute"}
        return any(not calls.isdisjoint(iter_enclosing_calls(self.trace, owner)) for owner in owners)

    def call_at(self, step: int) -> CallRow:
        """Return the call that begins at a step."""
        return self.trace.calls[self.trace.rows[step].own_call]

    def caller_of(self, hook: UnfiredRow) -> ModuleRow | None:
        """Return the innermost module around that of a hook that was called."""
        paths = reversed(list_outer_paths(hook.on))
        return next((row for path in paths if (row := self._called.get(path))), None)

    def find_substitute(self, caller: str, hook: UnfiredRow) -> int | None:
        """Return the first call that a module made of one that it does not hold, but that resembles that of a hook."""
        name = hook.on.rpartition(".")[2]
        modules = ((step, self.module_at(step)) for step in self._other_calls.get(caller, ()))
        return next(
            (step for step, row in modules if (row.kind, row.name.rpartition(".")[2]) == (hook.owner, name)), None
        )

    @cached_property
    def _other_calls(self) -> dict[str, list[int]]:
        """Name of a module → the steps of the calls that it, or one in it, made of modules that it does not hold."""
        found: dict[str, list[int]] = {}
        for step in sorted(step for steps in self._calls.values() for step in steps):
            name = self.trace.plain_call(self.trace.rows[step].own_call)
            for call in iter_enclosing_calls(self.trace, self.call_at(step).parent):
                caller = self.trace.plain_call(call)
                if not name.startswith(f"{caller}."):
                    found.setdefault(caller, []).append(step)
        return found

    def find_missed_call(self, hook: UnfiredRow) -> Place | None:
        """Return what the forward of the module around that of a hook says about why it did not call it."""
        caller = self.caller_of(hook)
        if caller is None:
            return None
        attribute = hook.on.removeprefix(f"{caller.name}.").partition(".")[0]
        return self._places.find_missed_call(self.trace.modules.index(caller), attribute)

    def module_at(self, step: int) -> ModuleRow:
        """Return the module whose call begins at a step."""
        return self.trace.modules[self.call_at(step).module]

    @cached_property
    def _called(self) -> dict[str, ModuleRow]:
        """Name → each module that was called."""
        return {row.name: row for row in self.trace.modules}

    @cached_property
    def first_calls(self) -> list[int]:
        """The step of the first call of each module, in order."""
        return sorted(steps[0] for steps in self._calls.values())

    @property
    def has_calls(self) -> bool:
        """Whether any module was called."""
        return bool(self._calls)

    @cached_property
    def owned_calls(self) -> set[int]:
        """The calls that made nodes of the graph of a pass, with all calls around them."""
        return find_calls_in_graphs(self.trace)

    @cached_property
    def _missing(self) -> Sequence[MissingGradient]:
        return list_missing_gradients(self.trace)

    @cached_property
    def _places(self) -> PlaceFinder:
        return PlaceFinder(self.trace)

    def find_cut(self, owner: str, module: int | None, places: Collection[str] = CUTS) -> Place | None:
        """Return where the graph between a module, named ``owner``, and the loss is cut; None if it is not cut.

        ``places`` are the kinds of places that count.
        """
        rows = [row for row in self._missing if any(name.startswith(f"{owner}.") for name in row.parameters)]
        if rows:  # the place is that of its parameters, for which more may be known
            place = max((row.place for row in rows), key=lambda place: -1 if place.step is None else place.step)
        else:
            place = self._places.find(owner, module)
        return place if place.key in places else None

    def find_cut_after(self, call: int | None) -> Place | None:
        """Return where the graph between what a module call returned and the loss is cut; None if it is not cut."""
        module = None if call is None else self.trace.calls[call].module
        return None if module is None else self.find_cut(self.trace.modules[module].name, module)

    def find_cut_of_parameter(self, name: str) -> Place | None:
        """Return where the graph between the module of a parameter and the loss is cut; None if it is not cut."""
        owner = name.rpartition(".")[0]
        module = next((number for number, row in enumerate(self.trace.modules) if row.name == owner), None)
        return None if module is None else self.find_cut(owner, module, _WITHOUT_GRAPH)

    @cached_property
    def returning_passes(self) -> set[int]:
        """The passes in which torch.autograd.grad returned gradients: none of them writes ``.grad``."""
        return {row.pass_id for row in self.trace.rows if row.kind == "returned"}

    def find_gap(self, hook: UnfiredRow, needs: frozenset[Fact]) -> str | None:
        """Return why some of the facts that a conclusion about a hook needs are not known; None if all are.

        This is a cause of its own: ``elsewhere`` (in another thread), ``limited``, ``compiled`` or ``unobserved``.
        """
        facts = self.facts_of_notes
        if "profiled" in facts:  # nothing was seen of hooks then, not even that they came and went
            return "unobserved"
        if not needs:
            return None
        if ("passes" in needs and "elsewhere" in facts) or ("calls" in needs and "elsewhere.calls" in facts):
            return "elsewhere"
        if is_limited(self.trace):
            return "limited"
        is_compiled = "calls" in needs and self.has_compiled and hook.kind in MODULE_HOOK_KINDS
        if is_compiled and (hook.compiled or not hook.called):
            return "compiled"
        return "unobserved" if self._is_unobserved(hook, needs) else None

    def _is_unobserved(self, hook: UnfiredRow, needs: frozenset[Fact]) -> bool:
        """Return whether hookviz failed to observe a call, or a pass, that a conclusion about a hook needs."""
        notes = [row.note for row in self.trace.rows if row.kind == "unobserved" and row.note is not None]
        missed = [dict(note.details).get("module", "") for note in notes if note.fact == "trace.trouble.call"]
        has_missed_pass = any(note.fact in _MISSED_PASSES for note in notes)
        is_missed = any(hook.on == name or hook.on.startswith(f"{name}.") for name in missed if name)
        return ("passes" in needs and has_missed_pass) or ("calls" in needs and is_missed)

    @cached_property
    def unobserved_hooks(self) -> set[str | None]:
        """The names of hooks that ran unobserved."""
        notes = (row.note for row in self.trace.rows if row.kind == "unobserved" and row.note is not None)
        return {name for note in notes if (name := dict(note.details).get("hook")) is not None}

    @cached_property
    def facts_of_notes(self) -> set[str]:
        """The facts of the notes of the trace."""
        return {note.fact for note in self.trace.remarks}

    @cached_property
    def fast_paths(self) -> list[str]:
        """The names of the modules that ran as one kernel."""
        rows = self.trace.rows
        return [self.trace.plain_call(row.own_call) for row in rows if row.kind == "fast_path"]

    @cached_property
    def has_compiled(self) -> bool:
        """Whether compiled code ran."""
        return any(row.kind == "compiled" for row in self.trace.rows)


_MISSED_PASSES = ("trace.trouble", "trace.deep", "trace.compiled")
"""What the notes about passes say that could not be observed."""


def is_limited(trace: TraceData) -> bool:
    """Return whether only some passes or modules were recorded."""
    return any(note.fact.startswith(_LIMITED) for note in trace.remarks)


def between(steps: list[int], since: int | None, until: int | None) -> list[int]:
    """Return those of ``steps`` that lie between two numbers of steps; None stands for the begin and the end."""
    end = len(steps) if until is None else bisect_left(steps, until)
    return steps[bisect_left(steps, since or 0) : end]


# -- what ran in the place of a module


def find_twin(timeline: Timeline, hook: UnfiredRow) -> Place | None:
    """Return the calls of modules of the same class: at the same place in other models, or else anywhere."""
    found = _list_twins(timeline, hook)
    if not found:
        return None
    classes = {row.name for row in timeline.trace.modules if row.name == row.kind}
    named = [name for name in found if name.partition(".")[0] not in classes] or list(found)[:1]
    name, step = named[0], found[named[0]]
    more = join_list(named[1:MAX_TWINS])
    names = {"other": name, "class": hook.owner, "step": f"{step + 1:,}", "more": more}
    text = _("{other}, another {class}, was called (step {step}).")
    if more:
        text = _("{other}, another {class}, was called (step {step}), as {more} was.")
    if hook.kind not in MODULE_HOOK_KINDS:  # the tensor may be gone from a module that is still the same
        text = _("{other} is a {class} and was called (step {step}).")
    return Place(TWIN, join_sentences([text.format(**names), describe_copying(timeline.trace, hook.on, found)]), step)


def _list_twins(timeline: Timeline, hook: UnfiredRow) -> dict[str, int]:
    """Return name → first step of called modules of a class: of the same name in what holds them, or holding others.

    Most nets have Linears: modules of this class that hold nothing tell nothing.
    """
    owner = hook.on if hook.kind in MODULE_HOOK_KINDS else hook.on.rpartition(".")[0]
    path = owner.rpartition(".")[2] if "." in owner else None
    names = [row.name for row in timeline.trace.modules]
    at_same_place: dict[str, int] = {}
    holding: dict[str, int] = {}
    for step in timeline.first_calls:
        row = timeline.module_at(step)
        if row.kind == hook.owner:
            is_inner = timeline.call_at(step).parent is not None
            if path == (row.name.rpartition(".")[2] if is_inner else None):
                at_same_place.setdefault(row.name, step)
            if any(name.startswith(f"{row.name}.") for name in names):
                holding.setdefault(row.name, step)
    return at_same_place or holding


def find_copies(timeline: Timeline, hook: UnfiredRow) -> Place | None:
    """Return the calls of modules elsewhere that have the class of the owner of a hook, and parameters of its shapes.

    ``nn.TransformerEncoder`` copies the layer that it is given, and a hook on that layer does not fire. Modules beside
    the owner are left out: most nets have equal layers.
    """
    owner = hook.on if hook.kind in MODULE_HOOK_KINDS else hook.on.rpartition(".")[0]
    shapes = _list_shapes(timeline.trace, owner)
    rows = [(step, timeline.module_at(step)) for step in timeline.first_calls] if shapes else []
    found = {
        row.name: step
        for step, row in reversed(rows)
        if row.kind == hook.owner
        and row.name.rpartition(".")[0] != owner.rpartition(".")[0]
        and _list_shapes(timeline.trace, row.name) == shapes
    }
    if not found:
        return None
    text = _("Modules of the same class, with parameters of the same shapes, were called and may be copies: {names}.")
    names = list(found)[::-1]
    copying = describe_copying(timeline.trace, hook.on, names)
    return Place(TWIN, join_sentences([text.format(names=join_first(names, MAX_TWINS)), copying]), found[names[0]])


def _list_shapes(trace: TraceData, module: str) -> set[tuple[str, tuple[int, ...]]]:
    """Return the parameters of a module, each by its name in it and its shape; empty if they were not recorded."""
    start = f"{module}."
    return {
        (name.removeprefix(start), tuple(row.shape))
        for row in trace.parameters
        for name in row.names
        if name.startswith(start)
    }


def find_other_home(timeline: Timeline, hook: UnfiredRow) -> Place | None:
    """Return the call of a module that called a part of that of a hook, and is neither it nor around it."""
    trace = timeline.trace
    steps = [step for step in timeline.first_calls if timeline.module_at(step).name == hook.inner]
    parent = next((parent for step in steps if (parent := timeline.call_at(step).parent) is not None), None)
    row = None if parent is None else trace.modules[trace.calls[parent].module]
    if row is None or hook.on == row.name or hook.on.startswith(f"{row.name}."):
        return None
    step = timeline.first_call_of(row.name)
    text = _("{inner} was called by {other}, a {class} (step {step}).")
    names = {"inner": hook.inner, "other": row.name, "class": row.kind, "step": f"{(step or 0) + 1:,}"}
    return Place(TWIN, text.format(**names), step)
