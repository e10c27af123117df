"""Find the exceptions that ended passes and calls, and the hooks in which they were raised."""

from dataclasses import replace

from hookviz.analysis.findings.failed_nodes import explain_failed_node
from hookviz.analysis.findings.finding import Finding, describe_passes, put_line
from hookviz.analysis.findings.hooks.hook_contracts import explain_refusal
from hookviz.analysis.findings.hooks.program_text import find_returning_line
from hookviz.analysis.findings.hooks.silent_hooks import list_silent_hooks
from hookviz.analysis.findings.parameters.places import PlaceFinder
from hookviz.analysis.findings.training.rebound_names import explain_rebinding
from hookviz.support.messages import _
from hookviz.support.source_code import read_place
from hookviz.trace import STEP_HOOK_KINDS, Hook, StepRow, TraceData
from hookviz.trace.values import as_tuple

_NO_GRAPH = "does not require grad and does not have a grad_fn"
"""What torch says of a backward pass without a graph."""
_WRAPPED_OUTPUT = "BackwardHookFunction"
"""The autograd.Function that torch names if an op edits in place what a module with a full backward hook returned."""
_WRAPPING_KINDS = ("full_backward_hook", "full_backward_pre_hook")
_FORWARD_KINDS = ("forward_pre_hook", "forward_hook")


def list_exceptions(trace: TraceData) -> list[Finding]:
    """List the exceptions; those of the same text in the same hook together."""
    steps: dict[tuple[int | None, str | None], list[int]] = {}
    for step in trace.lookup.steps_of_kinds("exception"):
        row = trace.rows[step]
        steps.setdefault((row.hook, row.error), []).append(step)
    return [_describe_exception(trace, found) for found in steps.values()]


def _describe_exception(trace: TraceData, steps: list[int]) -> Finding:
    row = trace.rows[steps[0]]
    hook = None if row.hook is None else trace.hook(row.hook)
    passes = tuple(dict.fromkeys(trace.rows[step].pass_id for step in steps))
    finding = Finding(
        steps[0],
        "exception",
        trace.steps[steps[0]].sentence,
        _rate(trace, row, steps[-1]),
        passes,
        describe_passes(passes, trace),
        advice=_("Fix the exception first: what should have run after it did not.") if trace.has_raised else "",
        hooks=() if hook is None else (hook,),
    )
    finding = put_line(finding, read_place(row.raised_at), "raises")
    if _NO_GRAPH in (row.error or ""):
        return _explain_missing_graph(trace, finding)
    if "NoneType" in (row.error or "") and hook is not None and hook.kind == "full_backward_hook":
        return _explain_none(trace, finding)
    if "NoneType" in (row.error or "") and hook is None:
        finding = explain_rebinding(trace, finding)
        return finding if finding.cause else _explain_replaced(trace, finding)
    if _WRAPPED_OUTPUT in (row.error or ""):
        return _explain_wrapped_output(trace, finding)
    if hook is not None:
        return _explain_contract(finding, hook, row)
    return explain_failed_node(trace, finding) or _explain_replaced(trace, finding)


def _explain_replaced(trace: TraceData, finding: Finding) -> Finding:
    """Name the forward hook that gave the raising code something of another form than the module does."""
    before = reversed(range(finding.step or 0))
    last = next((step for step in before if trace.rows[step].kind != "call"), None)
    row = None if last is None else trace.rows[last]
    if last is None or row is None or row.kind not in _FORWARD_KINDS or row.hook is None:
        return finding
    if not _has_other_form(trace, last):
        return finding
    hook = trace.hook(row.hook)
    sentence, advice = _describe_replacement(trace, last)
    finding = replace(finding, cause=sentence, advice=advice, hooks=(hook,))
    return put_line(finding, *find_returning_line(hook))


def _describe_replacement(trace: TraceData, step: int) -> tuple[str, str]:
    """Say what a forward hook put in the place of what it was given, and what to return instead."""
    replaced = trace.steps[step]
    assert replaced.hook is not None
    counts = [len(labels) for labels in replaced.row.labels]
    names = {"hook": replaced.hook.label, "on": replaced.on, "before": counts[0], "after": counts[1]}
    text = _("Just before it, {hook} replaced the output of {on}.")
    if replaced.kind == "forward_pre_hook":
        text = _("Just before it, {hook} replaced the inputs of {on}.")
    elif counts[0] > 1 and counts[1] == 1:
        text = _("Just before it, {hook} returned one tensor in place of the {before} that {on} returned.")
        return text.format(**names), _("Return all of them, in the same structure, changed or not.")
    advice = _("Return from {hook} what the code behind it can use, or nothing if it should only look.")
    return text.format(**names), advice.format(**names)


def _explain_contract(finding: Finding, hook: Hook, row: StepRow) -> Finding:
    """Say which rule for hooks of its kind a hook broke, if PyTorch refused it."""
    contract = explain_refusal(hook, row.error or "", row.raised_at)
    if contract is None:
        return finding
    finding = replace(finding, cause=contract.cause, advice=contract.advice)
    return put_line(finding, *find_returning_line(hook))


def _has_other_form(trace: TraceData, step: int) -> bool:
    """Whether what a hook replaced has another structure, or other shapes and types, than it had before."""
    changed = trace.steps[step]
    if changed.row.effect != "replaced":
        return False
    before, after = (as_tuple(value) for value in (changed.before, changed.after))
    forms = [[(value.shape, value.dtype) for value in values if value is not None] for values in (before, after)]
    names = changed.row.labels
    return forms[0] != forms[1] or names[0] != names[1]


def _explain_none(trace: TraceData, finding: Finding) -> Finding:
    """Say that a full backward hook gets None for an input that does not require grad."""
    index = trace.rows[finding.step or 0].hook
    module = None if index is None else trace.hook_rows[index].module
    calls = [call for call in trace.calls if call.module == module]
    if not calls or any(call.takes_grad for call in calls):
        return finding
    cause = _("No input of {on} requires grad: PyTorch calls {hook} with grad_input=(None,).")
    names = {"on": finding.hooks[0].on, "hook": finding.hooks[0].label}
    advice = _(
        "Register a tensor hook on what the module returns or on a parameter instead. If the hook only looks, let it "
        "check for None, or use grad_output."
    )
    return replace(finding, cause=cause.format(**names), advice=advice)


def _explain_missing_graph(trace: TraceData, finding: Finding) -> Finding:
    """Say why there was no graph at which the pass could begin."""
    if trace.rows[finding.step or 0].hook is not None:
        return _explain_hook_without_graph(trace, finding)
    place = PlaceFinder(trace).find_before(finding.step or 0)
    if place is None:
        return finding
    finding = replace(finding, cause=place.sentence, advice=_("Give the backward pass a graph: fix that first."))
    return put_line(finding, place.code, place.line_role)


def _explain_hook_without_graph(trace: TraceData, finding: Finding) -> Finding:
    """Say that hooks of a backward pass run without recording a graph."""
    kind = finding.hooks[0].kind
    if kind in _FORWARD_KINDS or kind in STEP_HOOK_KINDS:
        return finding
    cause = _("In a hook of a backward pass PyTorch records no graph, unless the pass has create_graph=True.")
    advice = _("Compute in the hook within torch.enable_grad(), from tensors that require grad.")
    return replace(finding, cause=cause, advice=advice)


def _explain_wrapped_output(trace: TraceData, finding: Finding) -> Finding:
    """Name the full backward hook because of which torch does not let an op edit its input in place."""
    returned = {trace.plain_call(row.own_call) for row in trace.rows[: finding.step] if row.kind == "forward"}
    wrapping = [hook for hook in list_silent_hooks(trace) if hook.hook.kind in _WRAPPING_KINDS]
    hooks = [hook for hook in wrapping if hook.hook.on in returned]
    if not hooks:
        return finding
    hook, call = hooks[-1].hook, trace.rows[finding.step or 0].call
    names = {"hook": hook.label, "on": hook.on}
    text = _("{hook} is a full backward hook: torch wraps what {on} returns, and does not let an op edit it in place.")
    if call is not None:
        module = trace.modules[trace.calls[call].module]
        names |= {"editor": module.name, "class": module.kind}
        text = _(
            "{hook} is a full backward hook: torch wraps what {on} returns, and does not let {editor}, a module of the "
            "class {class}, edit it in place."
        )
    advice = _("Let it return a new tensor (inplace=False, or x = x + 1 for x += 1), or use a tensor hook.")
    finding = replace(finding, cause=text.format(**names), advice=advice, hooks=(hook,))
    return put_line(finding, *hooks[-1].find_line())


def _rate(trace: TraceData, row: StepRow, last: int) -> str:
    """Rate an exception: an error if a hook ended a backward pass, or if it ended all that was recorded.

    A program that goes on has caught it, perhaps on purpose: a forward hook may raise to end the forward early.
    """
    is_last = trace.has_raised and last == len(trace.rows) - 1
    is_in_backward_hook = row.hook is not None and trace.hook_rows[row.hook].kind not in _FORWARD_KINDS
    return "error" if is_last or is_in_backward_hook else "remark"
