"""Rules for hooks of code that torch made something else of: ``torch.compile`` and the transforms of ``torch.func``."""

from hookviz.analysis.findings.hooks.cause import Cause
from hookviz.analysis.findings.hooks.explanation import Explanation
from hookviz.analysis.findings.hooks.timeline import Timeline
from hookviz.support.messages import N_
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
    names = {"on": hook.on, "region": built[own[-1]].region or "", "step": f"{own[-1] + 1:,}"}
    return Cause("compiled.before", names, own[-1])


def transformed(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """Only transforms of torch.func called its module: torch asks wrapped tensors whether it has to run there."""
    steps = timeline.calls_while(hook)
    if not steps or not all(timeline.call_at(step).transformed for step in steps):
        return None
    return Cause("transformed", {"on": hook.on}, steps[-1])


def transformed_owner(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """It is a parameter of a module that only transforms of torch.func called, on tensors that stand for it."""
    module = hook.on.rpartition(".")[0]
    calls = [call for call in timeline.trace.calls if timeline.trace.modules[call.module].name == module]
    is_transformed = bool(calls) and all(call.transformed for call in calls)
    if not is_transformed or not hook.leaf or hook.in_graph or not hook.passes:
        return None
    return Cause("transformed.owner", {"on": hook.on, "module": module})


def transformed_passes(hook: UnfiredRow, timeline: Timeline) -> Cause | None:
    """Only transforms of torch.func began passes, and those run through tensors that stand for the real ones."""
    if hook.in_graph or not hook.passes or hook.transformed < hook.passes:
        return None
    return Cause("transformed.passes", {"on": hook.on}, timeline.passes_while(hook)[0])


def in_graph_of_transform(hook: UnfiredRow, _: Timeline) -> Cause | None:
    """Its tensor belongs to the graph of a transform of torch.func."""
    is_unused = hook.wrapped and not hook.in_graph and hook.passes
    return Cause("transformed.tensor", {"on": hook.on}) if is_unused else None


TRANSFORMED_EXPLANATIONS: dict[str, Explanation] = {
    "compiled.before": Explanation(
        "late",
        N_(
            "{on} is inside {region}, which PyTorch compiled (step {step}) before {hook} was registered, and not again "
            "after that: PyTorch looks for the hooks of the modules inside only when it compiles."
        ),
        N_(
            "Register the hook before the first call, or call torch.compiler.reset() after you have registered it. To "
            'see the hooks of compiled code, record it with record(compiled="eager").'
        ),
    ),
    "transformed": Explanation(
        "no_graph",
        N_(
            "{on} ran in a transform of torch.func, such as vmap, jvp or grad. There its tensors are wrapped, a "
            "wrapped output does not say that it requires grad, and PyTorch calls full backward hooks only where it "
            "does."
        ),
        N_("Register a tensor hook on a parameter, or call {on} outside of the transform."),
        is_intended=True,
    ),
    "transformed.owner": Explanation(
        "substituted",
        N_(
            "A transform of torch.func, such as grad or vmap, ran {module}. It computed gradients of the tensors that "
            "it was given, and no pass had {on} itself in its graph."
        ),
        N_("Give the transform {on} itself, or look at the gradients that it returns."),
        is_intended=True,
    ),
    "transformed.passes": Explanation(
        "substituted",
        N_(
            "Only transforms of torch.func, such as grad, began a backward pass. They compute gradients of tensors "
            "that stand for those that they are given: no pass had {on} itself in its graph."
        ),
        N_(
            "Look at the gradients that the transform returns, or register the hook in the function that it "
            "transforms, on the tensor that it gets there."
        ),
        is_intended=True,
    ),
    "transformed.tensor": Explanation(
        "not_in_graph",
        N_(
            "{on} was made in a transform of torch.func, which has a graph of its own. A pass outside of the transform "
            "calls no hook there, and no pass inside used {on}."
        ),
        N_(
            "If it is vjp, call the function that it returns. To see a pass outside, register the hook on a tensor "
            "that the transform is given, or on what it returns."
        ),
        is_intended=True,
    ),
    "compiled": Explanation(
        "unobserved",
        N_(
            "No call of {on} was observed, and compiled code ran, in which hookviz cannot look: it may have "
            "called {on}, with {hook} or without."
        ),
        N_(
            'Record it with record(compiled="eager"), which runs compiled code eagerly and sees the hooks in it. '
            "PyTorch itself may leave out a hook that was registered after the first compiled call."
        ),
    ),
}
"""Cause → what is said of it."""
