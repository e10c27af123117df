"""Rules for hooks of code that torch made something else of: ``torch.compile`` and the transforms of ``torch.func``."""

from hookviz.analysis.findings.hooks.cause import Cause
from hookviz.analysis.findings.hooks.timeline import Timeline
from hookviz.trace import UnfiredRow


def compiled_before(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """What calls its module was compiled before it was registered, as one graph, and then ran as it was.

    Torch looks for the hooks of a module inside only while it compiles. Where Python calls the module, between two
    graphs, it finds later ones, too.
    """
    if (
        hook.compiled != "inside"
        or hook.called
        or hook.since is None
        or "compiled.elsewhere" in timeline.facts_of_notes
    ):
        return None
    runs = {step: timeline.trace.rows[step] for step in timeline.trace.lookup.steps_of_kinds("compiled")}
    built = {step: row for step, row in runs.items() if row.built != "nothing"}
    is_known = all(row.built == "whole" for row in built.values())
    own = [step for step, row in built.items() if hook.on.startswith(f"{row.region}.")]
    others = {row.region for row in runs.values()} - {row.region for row in built.values()}
    if not is_known or not own or others or max(built) >= hook.since or max(runs) < hook.since:
        return None
    return Cause("compiled.before", {"region": built[own[-1]].region or ""}, own[-1])


def transformed(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """Only transforms of torch.func called its module: torch asks wrapped tensors whether it has to run there."""
    steps = timeline.calls_while(hook)
    if not steps or not all(timeline.call_at(step).transformed for step in steps):
        return None
    return Cause("transformed", step=steps[-1])


def transformed_tensor(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """Only transforms of torch.func called the module of its parameter, or began passes."""
    module = hook.on.rpartition(".")[0]
    calls = [call for call in timeline.trace.calls if timeline.trace.modules[call.module].name == module]
    is_of_called = hook.leaf and bool(calls) and all(call.transformed for call in calls)
    if hook.in_graph or not hook.passes or not (is_of_called or hook.transformed >= hook.passes):
        return None
    return Cause("transformed")


def in_graph_of_transform(hook: UnfiredRow, _: Timeline) -> Cause | None:
    """Its tensor belongs to the graph of a transform of torch.func."""
    is_unused = hook.wrapped and not hook.in_graph and hook.passes
    return Cause("transformed") if is_unused else None
