"""Find hooks that edit a gradient in place and so change another one, which is kept in the same memory."""

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.hooks.firings import list_hooks_at
from hookviz.analysis.findings.hooks.program_text import find_edit_in_place, find_hook_line
from hookviz.analysis.findings.parameters.missing_gradients import tell_same
from hookviz.analysis.findings.parameters.none_gradients import describe_node
from hookviz.support.messages import N_, _, join_first, join_sentences
from hookviz.support.source_code import Source
from hookviz.trace import Hook, StepRow, TraceData
from hookviz.trace.sentences import format_values

RETURN_NEW = N_("Return a new tensor from {hook}, such as grad * 2, instead of an edit like grad *= 2.")


def list_edits_in_place(trace: TraceData) -> list[Finding]:
    """List the hooks whose edits changed the gradients of other tensors; one finding for each function.

    A loop registers it on a new tensor in each pass.
    """
    changed: dict[Source, list[int]] = {}
    for step in trace.lookup.steps_of_kinds("aliased"):
        row = trace.rows[step]
        if row.cause is not None and (hook := trace.rows[row.cause].hook) is not None:
            changed.setdefault(trace.hook(hook).source_, []).append(step)
    return [_describe_edit(trace, steps) for steps in changed.values()]


def _describe_edit(trace: TraceData, steps: list[int]) -> Finding:
    first = trace.rows[steps[0]]
    assert first.cause is not None
    edit = trace.steps[first.cause]
    assert edit.hook is not None
    passes = tuple(dict.fromkeys(trace.rows[step].pass_id for step in steps))
    names = {"hook": edit.hook.label, "on": describe_node(trace, edit.row.node, edit.row.output)}
    hooks, place = _list_hooks(trace, steps), find_edit_in_place(edit.hook)
    text = _("{hook} on {on} edits the gradient in place, and this changes the gradient of {others}, too.")
    sentence = text.format(others=_name_changed(trace, steps), **names)
    finding = Finding(
        first.cause,
        "edited_in_place",
        join_sentences([sentence, *tell_same(hooks)]),
        "warning",
        passes,
        cause=join_sentences([_describe_change(trace, steps[0]), *_tell_registration(trace, edit.row)]),
        advice=_(RETURN_NEW).format(**names),
        hooks=hooks,
    )
    return put_line(finding, *(find_hook_line(edit.hook) if place is None else (place, "edits")))


def _list_hooks(trace: TraceData, steps: list[int]) -> tuple[Hook, ...]:
    """List the hooks whose edits these steps show in the first pass: a function may be on several tensors."""
    first = trace.rows[steps[0]].pass_id
    causes = (trace.rows[step].cause for step in steps if trace.rows[step].pass_id == first)
    return tuple(map(trace.hook, list_hooks_at(trace, [cause for cause in causes if cause is not None])))


def _name_changed(trace: TraceData, steps: list[int]) -> str:
    """Name the gradients that the first edit changed."""
    cause = trace.rows[steps[0]].cause
    rows = [trace.rows[step] for step in steps if trace.rows[step].cause == cause]
    names = list(dict.fromkeys(describe_node(trace, row.node, row.output) for row in rows))
    return join_first(names)


def _tell_registration(trace: TraceData, row: StepRow) -> list[str]:
    where = None if row.hook is None else trace.hook_rows[row.hook].registered_at
    return [] if where is None else [_("It was registered at {where}.").format(where=where)]


def _describe_change(trace: TraceData, number: int) -> str:
    """Say from what to what a gradient changed, and why. It may be one of several that are added up there."""
    step = trace.steps[number]
    text = _("Both are kept in the same memory: a gradient on its way to {on} changed from {before} to {after}.")
    change = text.format(
        on=describe_node(trace, step.row.node, step.row.output),
        before=format_values(step.before),
        after=format_values(step.after),
    )
    return join_sentences([change, *_tell_sender(trace, step.row)])


def _tell_sender(trace: TraceData, changed: StepRow) -> list[str]:
    """Name the op of the pass that sent the same tensor to both, if it was one op."""
    assert changed.cause is not None
    edited = trace.rows[changed.cause].node
    rows = (trace.rows[step] for step in trace.lookup.steps(changed.pass_id))
    both = {row.own_node for row in rows if row.kind == "compute"}
    for node in (edited, changed.node):
        both &= {start for (start, _slot), (end, _output) in trace.edges.items() if end == node}
    if len(both) != 1:
        return []
    return [_("{op} sends the same tensor to both.").format(op=describe_node(trace, both.pop(), None))]
