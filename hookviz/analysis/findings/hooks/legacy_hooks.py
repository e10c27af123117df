"""Find legacy backward hooks of modules whose forward made several nodes: such a hook sees one of them only."""

from hookviz.analysis.findings.finding import Finding
from hookviz.support.messages import N_, _
from hookviz.trace import TraceData
from hookviz.trace.traversal import iter_enclosing_calls

_LEAF = "AccumulateGrad"
USE_FULL_HOOK = N_("Use register_full_backward_hook.")


def list_legacy_hooks(trace: TraceData) -> list[Finding]:
    """List the legacy hooks that miss gradients; one finding for each hook.

    Torch puts ``register_backward_hook`` on the node of the first output tensor: its grad_input is that of this node.
    """
    found: dict[tuple[str, str], Finding] = {}
    for step in trace.lookup.steps_of_kinds("backward_hook"):
        row = trace.rows[step]
        if row.call is None or row.hook is None:
            continue
        hook, count = trace.hook(row.hook), _count_nodes(trace, row.call)
        names = {"hook": hook.label, "on": hook.on, "node": trace.name(row.node), "count": f"{count:,}"}
        if count > 1 and (hook.label, hook.on) not in found:
            found[hook.label, hook.on] = Finding(
                step,
                "legacy",
                _("{hook} on {on} does not get the gradients of all inputs of {on}.").format(
                    hook=hook.label, on=hook.on
                ),
                "warning",
                line=hook.line,
                file=hook.file,
                line_role="hook",
                cause=_(
                    "register_backward_hook is the old form: it puts the hook on one node, {node}, and the forward of "
                    "{on} made {count}."
                ).format(**names),
                advice=_(USE_FULL_HOOK),
                hooks=(hook,),
            )
    return list(found.values())


def _count_nodes(trace: TraceData, call: int) -> int:
    """Count the nodes that a call and the calls in it made."""
    made = (owner for node, owner in trace.owners.items() if trace.ops[node] != _LEAF)
    return sum(call in iter_enclosing_calls(trace, owner) for owner in made)
