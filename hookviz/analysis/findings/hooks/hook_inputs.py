"""Find hooks that get no inputs or not all gradients of them, or lose some: an input, or all rows but one."""

import ast

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.hooks.firings import iter_firings
from hookviz.analysis.findings.hooks.program_text import find_hook_line, find_returning_line, list_given, parse_hook
from hookviz.support.definitions import list_names
from hookviz.support.messages import N_, _, join_list
from hookviz.trace import Hook, Step, StepRow, TraceData
from hookviz.trace.sentences import format_values, name_tensors
from hookviz.trace.traversal import iter_enclosing_calls
from hookviz.trace.values import Value

_LEAF = "AccumulateGrad"
USE_FULL_HOOK = N_("Use register_full_backward_hook.")


def list_hook_inputs(trace: TraceData) -> list[Finding]:
    """List the forward pre-hooks to which torch gave no input, or whose result lost one; the first time of each."""
    found: dict[int, Finding] = {}
    taking = {row.call for row in trace.rows if row.kind == "call" and row.after not in (None, ())}
    for step, index, hook in iter_firings(trace, "forward_pre_hook"):
        row = trace.rows[step]
        if index in found:
            continue
        lost = _list_lost(row)
        if lost:
            severity = "remark" if _reads_rest(trace.hook(index), len(row.labels[1])) else "warning"
            found[index] = _make_lost(trace, step, index, lost, severity)
        elif row.before == () and row.call in taking and "with_kwargs" not in hook.flags:
            found[index] = _make_blind(trace, step, index)
    return list(found.values())


def list_lost_rows(trace: TraceData) -> list[Finding]:
    """List the forward hooks that returned a row of the only tensor that they were given; the first time of each."""
    found: dict[int, Finding] = {}
    for step, index, _row in iter_firings(trace, "forward_pre_hook", "forward_hook"):
        if index not in found and loses_rows(trace.steps[step]):
            found[index] = _make_row(trace, step, index)
    return list(found.values())


def loses_rows(step: Step) -> bool:
    """Whether a hook that takes a first item put a tensor without its first dimension in the place of the whole."""
    before, after = step.before, step.after
    function = None if step.hook is None else parse_hook(step.hook)
    if function is None or "[0]" not in ast.unparse(function):
        return False
    if step.row.effect != "replaced" or not isinstance(before, Value) or not isinstance(after, Value):
        return False
    return (
        len(before.shape) > 1
        and before.shape[0] > 1
        and after.shape == before.shape[1:]
        and after.dtype == before.dtype
    )


def _make_row(trace: TraceData, step: int, index: int) -> Finding:
    names = {"before": format_values(trace.steps[step].before), "after": format_values(trace.steps[step].after)}
    sentence = _("{hook} on {on} returned something without the first dimension: {before} → {after}.")
    cause = _("If it takes output[0]: {on} returns a tensor, not a tuple, and [0] is its first row.")
    advice = _("Use output itself, or look whether it is a tuple.")
    if trace.rows[step].kind == "forward_pre_hook":
        cause = _("What a forward pre-hook returns takes the place of the inputs.")
        advice = _("Return the inputs with all rows.")
    return _describe_inputs(trace, step, index, ("lost_rows", "warning", sentence, cause, advice), names)


def _list_lost(row: StepRow) -> list[str]:
    """List the names of the inputs that a hook was given and that its result does not have."""
    before, after = row.labels
    is_shorter = row.effect == "replaced" and before[: len(after)] == after and len(before) > len(after)
    return [name for name in name_tensors(before)[len(after) :] if name.isidentifier()] if is_shorter else []


def _reads_rest(hook: Hook, count: int) -> bool:
    """Whether a hook reads more of its inputs than the first ones: it may have put them into what it returned."""
    function, given = parse_hook(hook), list_given(hook)
    if function is None or len(given) < 2:
        return False
    nodes = list(ast.walk(function))
    loads = [part for part in nodes if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    few = {part.value for part in nodes if isinstance(part, ast.Subscript) and _is_below(part.slice, count)}
    for part in nodes:
        if isinstance(part, ast.Assign) and isinstance(target := part.targets[0], (ast.Tuple, ast.List)):
            rest = {name for one in target.elts[count:] for name in list_names(one)}
            is_unread = all(one.id not in rest for one in loads)
            few |= {part.value} if is_unread else set()
    return any(one.id in given[1:] and one not in few for one in loads)


def _is_below(index: ast.expr, count: int) -> bool:
    return isinstance(index, ast.Constant) and isinstance(index.value, int) and 0 <= index.value < count


def _make_lost(trace: TraceData, step: int, index: int, lost: list[str], severity: str) -> Finding:
    names = {"lost": join_list(lost)}
    sentence = _("{hook} on {on} returned fewer inputs than it was given: {lost} did not reach the forward.")
    if "with_kwargs" in trace.hook_rows[index].flags:
        cause = _("What a forward pre-hook with with_kwargs=True returns takes the place of all inputs.")
        advice = _("Return (args, kwargs) with all inputs, changed or not.")
    else:
        cause = _("What a forward pre-hook returns takes the place of all positional inputs.")
        advice = _("Return a tuple with all inputs, changed or not.")
    return _describe_inputs(trace, step, index, ("lost_inputs", severity, sentence, cause, advice), names)


def _make_blind(trace: TraceData, step: int, index: int) -> Finding:
    sentence = _("{hook} on {on} was given no inputs, though {on} got some.")
    cause = _("{on} got its inputs by keyword, and PyTorch gives a hook the positional ones only.")
    advice = _("Register it with with_kwargs=True: it is then called with (module, args, kwargs).")
    return _describe_inputs(trace, step, index, ("no_inputs", "remark", sentence, cause, advice), {})


def _describe_inputs(
    trace: TraceData, step: int, index: int, texts: tuple[str, str, str, str, str], names: dict[str, str]
) -> Finding:
    kind, severity, *sentences = texts
    hook, row = trace.hook(index), trace.hook_rows[index]
    find_line = find_returning_line if kind in ("lost_inputs", "lost_rows") else find_hook_line
    sentence, cause, advice = (text.format(hook=hook.label, on=hook.on, **names) for text in sentences)
    finding = Finding(step, kind, sentence, severity, cause=cause, advice=advice, hooks=(hook,))
    return put_line(finding, *find_line(hook, row.registered_at))


# -- legacy backward hooks


def list_legacy_hooks(trace: TraceData) -> list[Finding]:
    """List the legacy hooks that miss gradients; one finding for each hook.

    Torch puts ``register_backward_hook`` on the node of the first output tensor: its grad_input is that of this node.
    """
    found: dict[tuple[str, str], Finding] = {}
    for step, index, _row in iter_firings(trace, "backward_hook"):
        row = trace.rows[step]
        if row.call is None:
            continue
        hook, others = trace.hook(index), _list_inner_nodes(trace, row.call) - {row.node}
        names = {"hook": hook.label, "on": hook.on, "node": trace.name(row.node), "count": f"{len(others) + 1:,}"}
        if others and (hook.label, hook.on) not in found:
            finding = Finding(
                step,
                "legacy",
                _("{hook} on {on} does not get the gradients of all inputs of {on}.").format(**names),
                "warning",
                cause=_(
                    "register_backward_hook is the old form: it puts the hook on one node, {node}, and {count} nodes "
                    "that the forward of {on} made lead to its inputs."
                ).format(**names),
                advice=_(USE_FULL_HOOK),
                hooks=(hook,),
            )
            found[hook.label, hook.on] = put_line(finding, *find_hook_line(hook))
    return list(found.values())


def _list_inner_nodes(trace: TraceData, call: int) -> set[int]:
    """List the nodes that a call and the calls in it made, and that lead to an input: to more than parameters."""
    own = f"{trace.modules[trace.calls[call].module].name}."
    owners = ((node, owner) for node, owner in trace.owners.items() if trace.ops[node] != _LEAF)
    made = {node for node, owner in owners if call in iter_enclosing_calls(trace, owner)}
    leading: set[int] = set()
    for (start, _slot), (end, _output) in trace.edges.items():
        is_input = end not in made and not trace.lookup.leaf_names.get(end, "").startswith(own)
        if start in made and is_input:
            leading.add(start)
    edges = [(start, end) for (start, _slot), (end, _output) in trace.edges.items() if start in made]
    while more := {start for start, end in edges if end in leading} - leading:
        leading |= more
    return leading
