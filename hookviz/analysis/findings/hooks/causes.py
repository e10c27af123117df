"""The causes for which a hook does not fire, each proven by what was recorded, or said to be open.

A rule looks at one hook and returns its cause, or None if what was recorded speaks against it. It names the facts that
it needs: if they were not observed as a whole, the cause is open, and the hook has the cause for which they were not.
"""

from collections.abc import Callable
from typing import NamedTuple

from hookviz.analysis.findings.hooks.cause import Cause
from hookviz.analysis.findings.hooks.program_text import (
    describe_copying,
    find_cut_of_variable,
    find_forward_call,
    find_replaced_parameter,
    find_use_of_weights,
)
from hookviz.analysis.findings.hooks.timeline import (
    ALL_FACTS,
    TWIN,
    Fact,
    Timeline,
    between,
    find_copies,
    find_other_home,
    find_twin,
)
from hookviz.analysis.findings.hooks.transformed_code import (
    compiled_before,
    in_graph_of_transform,
    transformed,
    transformed_tensor,
)
from hookviz.analysis.findings.ops import COPIES, PARTS, VIEWS
from hookviz.analysis.findings.parameters.places import Place
from hookviz.support.messages import _, join_first, join_sentences
from hookviz.trace import FORWARD_HOOK_KINDS, MODULE_HOOK_KINDS, STEP_HOOK_KINDS, UnfiredRow
from hookviz.trace.hook_facts import HOOK_FACTS, ON_TENSOR_KINDS, name_of_kind
from hookviz.trace.traversal import iter_enclosing_calls, name_last_root


class Rule(NamedTuple):
    """A cause that can be proven, and the facts that prove it."""

    find: Callable[[UnfiredRow, Timeline], Cause | None]
    """Returns the cause, or None if what is known speaks against it."""
    needs: frozenset[Fact] = frozenset()
    """What must have been observed as a whole: without that, the cause is open."""


def find_cause(hook: UnfiredRow, timeline: Timeline) -> Cause:
    """Return why a hook did not fire; if no rule proves a cause, what is open."""
    family = _family(hook.kind)
    for rule in _RULES[family]:
        cause = rule.find(hook, timeline)
        if cause is not None and cause.key in _UNFINISHED and timeline.has_ended_before(hook):
            step = len(timeline.trace.rows) - 1
            return Cause("raised", step=step)
        if cause is not None:
            gap = timeline.find_gap(hook, rule.needs)
            if gap is None and cause.key in _NOT_CALLED and cause.place is None:
                return cause._replace(place=_find_other_run(hook, timeline))
            return cause if gap is None else Cause(gap, is_proven=False, what_is_open=cause.key)
    gap = timeline.find_gap(hook, ALL_FACTS)
    unknown = "unknown.tensor" if family == "tensor" else "unknown"
    return Cause(unknown if gap is None else gap, is_proven=False)


def _find_other_run(hook: UnfiredRow, timeline: Timeline) -> Place | None:
    """Return what ran instead of a call of the module: its forward, or a module like it."""
    is_used, has_caller = bool(hook.used or hook.inner), not hook.uncalled and timeline.caller_of(hook) is not None
    forward = find_forward_call(timeline.trace, hook.on) if is_used or has_caller else None
    if forward is None and hook.used:
        forward = find_use_of_weights(timeline.trace, hook.on)
    if forward is not None or has_caller:
        return forward or _add_copies(timeline.find_missed_call(hook), find_copies(timeline, hook))
    return find_other_home(timeline, hook) if hook.inner else find_twin(timeline, hook)


def _add_copies(missed: Place | None, copies: Place | None) -> Place | None:
    """Add to why a forward did not call a module the modules that may be copies of it."""
    if missed is None or copies is None:
        return missed or copies
    return missed._replace(sentence=join_sentences([missed.sentence, copies.sentence]))


_NOT_CALLED = ("bypassed", "bypassed.inner", "discarded", "never_called", "not_called", "owner_not_called")
"""The causes of which the text of the program, or another call, may show more."""


_UNFINISHED = (
    "after_call", "after_call.backward", "after_pass", "after_step", "never_called", "nothing_called", "no_pass",
    "no_step", "owner_not_called",
)  # fmt: skip
"""The causes that what an exception prevented might have changed: another call, pass or step."""


def _family(kind: str) -> str:
    if kind in STEP_HOOK_KINDS:
        return "step"
    if kind in FORWARD_HOOK_KINDS:
        return "forward"
    return "backward" if kind in MODULE_HOOK_KINDS else "tensor"


# -- when it was registered


def _removed(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It was removed before what could have called it: that came later, or nothing happened while it was there."""
    if hook.until is None:
        return None
    family = _family(hook.kind)
    if family == "tensor":
        occasions = timeline.seeds
    else:
        occasions = timeline.steps_of(hook) if family == "step" else timeline.calls_of(hook)
    is_too_early = bool(occasions) and occasions[-1] >= hook.until
    if between(occasions, hook.since, hook.until) or not (is_too_early or hook.until == hook.since):
        return None
    if family == "backward" and timeline.has_pass_into_earlier_call(hook):
        return None  # it was there for the whole pass of the call before it
    step = hook.until if hook.until < len(timeline.trace.rows) else None  # it may have been removed after the last step
    return Cause("removed", {"where": hook.removed_at or ""}, step)


def _registered_after_calls(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It was registered after the last call of its module, or between two and removed after a pass."""
    earlier = [] if hook.since is None else between(timeline.calls_of(hook), None, hook.since)
    if not earlier or timeline.calls_while(hook):
        return None
    last = earlier[-1]
    key = "after_call" if hook.kind in FORWARD_HOOK_KINDS else "after_call.backward"
    return Cause(key, step=last)


def _registered_after_passes(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It was registered after the last backward pass had begun."""
    if hook.since is None or not timeline.seeds or timeline.passes_while(hook):
        return None
    return Cause("after_pass", step=timeline.seeds[-1])


def _no_pass(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """No backward pass began in the recording."""
    return None if timeline.seeds else Cause("no_pass")


# -- modules that were not called


def _no_forward(hook: UnfiredRow, _timeline: Timeline) -> Cause | None:
    return None if hook.has_forward else Cause("no_forward", {"class": hook.owner})


def _discarded(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """Its module or parameter was gone before anything ran; another one may have its name now."""
    if not hook.discarded:
        return None
    step = timeline.first_call_of(hook.on)
    place = find_replaced_parameter(timeline.trace, hook) if hook.leaf and step is None else None
    return Cause("discarded", step=step, place=place)


def _copied(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """A deep copy of its module was called: it has the hook under the number that torch gave to it."""
    if hook.called or hook.copy is None:
        return None
    step = timeline.first_call(hook.copy)
    copy = timeline.trace.modules[hook.copy].name
    copying = describe_copying(timeline.trace, hook.on, [copy])
    place = Place(TWIN, copying, step) if copying else None
    return Cause("copied.object" if hook.bound else "copied", {"copy": copy}, step, place=place)


def _fast_path(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    layer = next((name for name in timeline.fast_paths if hook.on.startswith(f"{name}.")), None)
    return None if layer is None or hook.called else Cause("fast_path", {"layer": layer})


def _attention(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    caller = None if hook.called else timeline.caller_of(hook)
    if caller is None or (caller.kind, hook.owner) != ("MultiheadAttention", "NonDynamicallyQuantizableLinear"):
        return None  # only torch's own has a part of this class
    return Cause("attention", {"caller": caller.name})


def _bypassed(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """Its code or its weights were used without a call. Both leave the same traces, so that one cause names both."""
    if hook.called:
        return None
    if hook.stand_in:
        return Cause("traced", {"user": hook.stand_in, "maker": hook.maker})
    if hook.inner:
        return Cause("bypassed.inner", {"inner": hook.inner})
    if not hook.used or hook.older:
        return None
    return Cause("bypassed")


def _called_before(hook: UnfiredRow, _timeline: Timeline) -> Cause | None:
    """Its weights belong to a graph from before the recording: an older hook may have fired then."""
    if not hook.older or hook.called:
        return None
    return Cause("before", is_proven=False) if hook.since is None else Cause("after_graph")


def _nothing_called(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """A hook of all modules, in a recording without calls."""
    is_idle = "global" in hook.flags and not timeline.has_calls
    return Cause("nothing_called") if is_idle else None


def _caller_raised(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """An exception ended each call of the module around it."""
    row, trace = timeline.caller_of(hook), timeline.trace
    if not timeline.exceptions or row is None:
        return None
    caller = row.name
    calls = {index for index, call in enumerate(trace.calls) if trace.modules[call.module].name == caller}
    step = timeline.exception_in(calls)
    if hook.called or step is None:
        return None
    return Cause("raised", step=step)


def _not_called(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    if hook.called or "global" in hook.flags:
        return None
    caller = timeline.caller_of(hook)
    if caller is not None:
        other = timeline.find_substitute(caller.name, hook)
        if other is None:
            return Cause("not_called", {"caller": caller.name})
        name = timeline.trace.plain_call(timeline.trace.rows[other].own_call)
        return Cause("not_called.other", {"caller": caller.name, "other": name}, other)
    return Cause("never_called")


# -- modules that were called


def _raised_in_call(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """An exception left each call before the hook's turn."""
    calls = {timeline.trace.rows[step].own_call for step in timeline.calls_while(hook)}
    step = timeline.exception_in(calls)
    return None if step is None else Cause("raised", step=step)


def _no_graph(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """The module ran without recording a graph."""
    steps = timeline.calls_while(hook)
    modes = {timeline.call_at(step).mode for step in steps}
    if not steps or "grad" in modes:
        return None
    return Cause("checkpoint" if "checkpoint" in modes else "no_grad", step=steps[-1])


def _returned_container(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It returned something in which torch does not look for tensors; legacy hooks look into more."""
    steps = timeline.calls_while(hook) if hook.kind != "backward_hook" else []
    types = {timeline.call_at(step).returned for step in steps}
    if not steps or None in types:
        return None
    return Cause("returned", {"type": next(kind for kind in types if kind)}, steps[-1])


def _no_gradient_needed(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """What it returned does not require grad."""
    steps = timeline.calls_while(hook)
    calls = [timeline.call_at(step) for step in steps]
    if not calls or any(call.gives_grad is not False for call in calls):
        return None
    is_frozen = all(call.frozen for call in calls)
    return Cause("no_gradient.frozen" if is_frozen else "no_gradient.cut", step=steps[-1])


def _outside_graph(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """Nothing that it computed belongs to the graph of a pass."""
    steps = timeline.calls_while(hook)
    calls = {timeline.trace.rows[step].own_call for step in steps}
    if not steps or not calls.isdisjoint(timeline.owned_calls):
        return None
    place = timeline.find_cut(hook.on, hook.module)
    return Cause("outside", {"root": name_last_root(timeline.trace)}, steps[-1], place=place)


def _partial_pass(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """The passes computed only the gradients that were asked for."""
    passes = hook.in_graph or len(timeline.seeds)
    if not hook.partial or hook.partial < passes:
        return None
    passed = {timeline.trace.rows[step].pass_id for step in timeline.passes_while(hook)}
    is_unwritten = HOOK_FACTS[hook.kind].changes == "grad" and not passed.isdisjoint(timeline.returning_passes)
    step = timeline.seeds[-1] if timeline.seeds else None
    return Cause("partial.grad" if is_unwritten else "partial", {"kind": name_of_kind(hook.kind)}, step)


def _raised_in_pass(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """An exception ended each of the passes."""
    rows = timeline.trace.rows
    # The graph of an earlier call keeps the backward hooks of a module after they are removed.
    until = hook.until if _family(hook.kind) == "tensor" else None
    passes = {rows[step].pass_id for step in timeline.passes_while(hook._replace(until=until))}
    raised = {rows[step].pass_id: step for step in timeline.exceptions if rows[step].call is None}
    if not passes or not passes <= raised.keys():
        return None
    step = raised[max(passes)]
    return Cause("raised", step=step)


# -- tensors


def _parametrized(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It is what weight_norm or another parametrization computed for one forward, or one access of the attribute."""
    trace, parameter = timeline.trace, hook.made_from if hook.made_by.startswith("WeightNorm") else ""
    calls = [] if hook.returned is None else [*iter_enclosing_calls(trace, hook.returned.call)]
    kinds = [trace.modules[trace.calls[call].module].kind for call in calls]
    if not parameter and "ParametrizationList" in kinds and hook.passes:
        parameter = "parametrizations.weight.original"
    return Cause("parametrized", {"parameter": parameter}) if parameter and not hook.in_graph else None


def _frozen(hook: UnfiredRow, _timeline: Timeline) -> Cause | None:
    """It did not require grad, at the passes or when its module was called."""
    if hook.frozen:
        return Cause("frozen")
    module = hook.on.rpartition(".")[0]
    return Cause("frozen_at_call", {"module": module}) if hook.frozen_at_call else None


def _stray(hook: UnfiredRow, _timeline: Timeline) -> Cause | None:
    is_stray = hook.stray and not hook.in_graph
    return Cause("stray") if is_stray else None


def _detour(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It is a view or a copy of a tensor, and no pass used it itself."""
    is_copy = hook.made_by.partition("Backward")[0] in VIEWS | PARTS | COPIES and (hook.beside or hook.dropped)
    if not is_copy or hook.in_graph or not hook.passes:
        return None
    base = hook.made_from or _("another tensor")
    names = {"base": base, "root": name_last_root(timeline.trace)}
    return Cause("detour", names, timeline.passes_while(hook)[0])


def _after_its_pass(hook: UnfiredRow, _timeline: Timeline) -> Cause | None:
    """The pass that uses its tensor had begun when it was registered, and no other one uses it."""
    return Cause("after_pass") if hook.late and not hook.in_graph else None


def _dropped(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It was gone when the next pass began, and so was all that was computed from it."""
    if not hook.dropped or hook.in_graph or not hook.passes:
        return None
    return Cause("dropped", {"root": name_last_root(timeline.trace)}, timeline.passes_while(hook)[0])


def _owner_not_called(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It is a parameter of a module that was not called, though a copy of that may have its name."""
    module = hook.on.rpartition(".")[0]
    names = {row.name for row in timeline.trace.modules}
    is_parameter = hook.leaf and module and not hook.in_graph and hook.passes
    if not is_parameter or (module in names and not hook.uncalled) or not names:
        return None
    return Cause("owner_not_called", {"module": module})


def _not_in_graph(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    if hook.in_graph or not hook.passes:
        return None
    names = {"root": name_last_root(timeline.trace)}
    place = timeline.find_cut_of_parameter(hook.on) if hook.leaf else timeline.find_cut_after(hook.call)
    place = place or find_cut_of_variable(timeline.trace, hook)
    if place is None and hook.made_by.partition("Backward")[0] in VIEWS | PARTS | COPIES:
        return Cause("not_in_graph.view", {**names, "op": hook.made_by}, timeline.seeds[-1])
    return Cause("not_in_graph", names, timeline.seeds[-1], place=place)


def _substituted(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It is a parameter of a module that belongs to the graph without it. Several causes leave the same traces."""
    module = hook.on.rpartition(".")[0]
    numbers = {index for index, row in enumerate(timeline.trace.modules) if row.name == module}
    calls = {call for call in timeline.owned_calls if timeline.trace.calls[call].module in numbers}
    if not calls or not hook.leaf or hook.in_graph or not hook.passes:
        return None
    place = timeline.find_cut_of_parameter(hook.on)
    return Cause("substituted", {"module": module}, place=place)


def _unseen(hook: UnfiredRow, _timeline: Timeline) -> Cause | None:
    """No pass looked at its tensor: no variable holds it, or another tensor has its name."""
    is_seen = hook.passes or hook.in_graph or hook.kind not in ON_TENSOR_KINDS
    return None if is_seen else Cause("unseen", is_proven=False)


# -- optimizers


def _skipped_by_scaler(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    trace, numbers = timeline.trace, timeline.optimizers_named(hook.on)
    skipped = (i for i, row in enumerate(trace.rows) if row.kind == "unscale" and row.found_inf)
    step = next((i for i in skipped if trace.rows[i].optimizer in numbers), None)
    if hook.steps or step is None:
        return None
    return Cause("scaler", step=step)


def _no_step(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    if hook.steps:
        return None
    trace = timeline.trace
    steps = {row.step: trace.rows[row.step].optimizer for row in reversed(trace.updates)}
    others = {trace.optimizers[number]: step for step, number in steps.items() if number is not None}
    if not others:
        return Cause("no_step")
    step = min(others.values())
    listed = join_first([f"{one.name} ({one.kind})" for one in reversed(others)])
    return Cause("no_step.other", {"class": hook.owner, "others": listed}, step)


def _after_step(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    has_stepped = bool(between(timeline.steps_of(hook), hook.since, None))
    is_late = hook.since is not None and hook.steps and not has_stepped
    return Cause("after_step") if is_late else None


_CALLS: frozenset[Fact] = frozenset({"calls"})
_PASSES: frozenset[Fact] = frozenset({"passes"})
_GRAPHS: frozenset[Fact] = frozenset({"calls", "passes", "graphs"})
_UNCALLED_RULES = (
    Rule(_nothing_called, _CALLS), Rule(_copied), Rule(_discarded), Rule(_no_forward), Rule(compiled_before, _PASSES),
    Rule(_fast_path), Rule(_attention, _CALLS), Rule(_bypassed, _CALLS), Rule(_called_before, _CALLS),
    Rule(_caller_raised), Rule(_not_called, _CALLS),
)  # fmt: skip
_RULES: dict[str, tuple[Rule, ...]] = {
    "forward": (
        Rule(_removed, _CALLS), Rule(_registered_after_calls, _CALLS), *_UNCALLED_RULES, Rule(_raised_in_call, _CALLS),
    ),
    "backward": (
        Rule(_removed, _CALLS), Rule(_registered_after_calls, _CALLS), *_UNCALLED_RULES, Rule(_raised_in_call, _CALLS),
        Rule(_no_graph, _CALLS), Rule(transformed, _CALLS), Rule(_returned_container, _CALLS),
        Rule(_no_gradient_needed, _CALLS), Rule(_no_pass, _PASSES), Rule(_outside_graph, _GRAPHS),
        Rule(_partial_pass, _PASSES), Rule(_raised_in_pass, _PASSES),
    ),
    "tensor": (
        Rule(_removed, _PASSES), Rule(_discarded), Rule(_parametrized, _PASSES),
        Rule(_frozen), Rule(_no_pass, _PASSES), Rule(_registered_after_passes, _PASSES), Rule(_after_its_pass, _PASSES),
        Rule(in_graph_of_transform, _PASSES), Rule(_stray, _PASSES), Rule(_detour, _PASSES), Rule(_dropped, _PASSES),
        Rule(_owner_not_called, _GRAPHS), Rule(transformed_tensor, _GRAPHS), Rule(_substituted, _GRAPHS),
        Rule(_not_in_graph, _GRAPHS - _CALLS),
        Rule(_partial_pass, _PASSES), Rule(_raised_in_pass, _PASSES), Rule(_unseen),
    ),
    "step": (Rule(_removed), Rule(_skipped_by_scaler), Rule(_no_step, _PASSES), Rule(_after_step, _PASSES)),
}  # fmt: skip
"""Family of hooks → its rules, in order: a rule may rely on those before it."""
