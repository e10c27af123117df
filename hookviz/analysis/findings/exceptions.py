"""Find the exceptions that ended passes and calls, the hooks that raised them, and why a node could not compute."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.hooks.hook_contracts import explain_refusal
from hookviz.analysis.findings.hooks.program_text import (
    find_returning_line,
    list_argument_names,
    list_given,
    parse_hook,
)
from hookviz.analysis.findings.hooks.silent_hooks import list_silent_hooks
from hookviz.analysis.findings.ops import PARTS, VIEWS
from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.parameters.cutting_code import get_last_name, iter_nodes, parse_row
from hookviz.analysis.findings.parameters.none_gradients import find_backward
from hookviz.analysis.findings.parameters.places import PlaceFinder
from hookviz.analysis.findings.parameters.program_functions import Region
from hookviz.analysis.findings.training.program_calls import list_pass_lines
from hookviz.analysis.findings.training.rebound_names import explain_rebinding
from hookviz.analysis.findings.values.op_lines import find_op_line, list_regions
from hookviz.support.messages import N_, _, join_first, join_sentences
from hookviz.support.source_code import describe_place, read_place
from hookviz.trace import FORWARD_HOOK_KINDS, STEP_HOOK_KINDS, Hook, StepRow, TraceData, UpdateRow
from hookviz.trace.sentences import format_pass_number
from hookviz.trace.traversal import iter_enclosing_calls
from hookviz.trace.values import as_tuple

_NO_GRAPH = "does not require grad and does not have a grad_fn"
"""What torch says of a backward pass without a graph."""
_WRAPPED_OUTPUT = "BackwardHookFunction"
"""The autograd.Function that torch names if an op edits in place what a module with a full backward hook returned."""
_WRAPPING_KINDS = ("full_backward_hook", "full_backward_pre_hook")
_WALKED_TWICE = "backward through the graph a second time"
_EDITED = "modified by an inplace operation"
_OF_FORM = ("AttributeError", "RuntimeError", "TypeError", "ValueError")
"""What code raises that was given something of another form than it takes."""


_UPDATE = N_("Call scaler.update() once in each round, after the steps of all optimizers.")
_KNOWN_ERRORS = {
    "optimizer got an empty parameter list": (
        N_("What the optimizer was given holds no parameter."),
        N_(
            "An iterator, such as parameters() or filter(), is empty once it was walked: give the optimizer a list, or "
            "call parameters() anew."
        ),
    ),
    "unscale_() is being called after step()": (N_("scaler.update() has not run since the last step."), _UPDATE),
    "step() has already been called since the last update()": (
        N_("scaler.update() has not run since the last step."),
        _UPDATE,
    ),
    "post accumulate grad hooks cannot be registered on non-leaf tensors": (
        N_("Such a hook runs after .grad was written, which a pass does for leaves only."),
        N_("Use register_hook on a tensor that was computed."),
    ),
    "cannot register a hook on a tensor that doesn't require gradient": (
        N_("No gradient ever arrives at a tensor that does not require grad."),
        N_("Call requires_grad_() first, or register the hook on a tensor that is computed with a graph."),
    ),
}
"""A part of an error of torch → why it came, and what to do."""


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
    known = next((said for text, said in _KNOWN_ERRORS.items() if text in (row.error or "")), None)
    if known is not None:
        return replace(finding, cause=_(known[0]), advice=_(known[1]))
    return _explain_failed_node(trace, finding) or _explain_replaced(trace, finding)


def _explain_replaced(trace: TraceData, finding: Finding) -> Finding:
    """Name the forward hook that gave the raising code something of another form than the module does."""
    before = reversed(range(finding.step or 0))
    last = next((step for step in before if trace.rows[step].kind != "call"), None)
    row = None if last is None else trace.rows[last]
    if not (trace.rows[finding.step or 0].error or "").startswith(_OF_FORM):
        return finding
    if last is None or row is None or row.kind not in FORWARD_HOOK_KINDS or row.hook is None:
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
    if not calls or any(call.takes_grad for call in calls) or not _raises_from_input(trace, finding):
        return finding
    cause = _("No input of {on} requires grad: PyTorch calls {hook} with grad_input=(None,).")
    names = {"on": finding.hooks[0].on, "hook": finding.hooks[0].label}
    advice = _(
        "Register a tensor hook on what the module returns or on a parameter instead. If the hook only looks, let it "
        "check for None, or use grad_output."
    )
    return replace(finding, cause=cause.format(**names), advice=advice)


def _raises_from_input(trace: TraceData, finding: Finding) -> bool:
    """Whether the line that raised is one of the hook, and reads grad_input or an item of it."""
    hook, place = finding.hooks[0], read_place(trace.rows[finding.step or 0].raised_at)
    function, given = parse_hook(hook), list_given(hook)
    if place is None or function is None or len(given) < 2 or place.file != hook.file:
        return False
    lines, number = (hook.source or "").splitlines(), place.line - (hook.line or 0)
    names = list_argument_names(function, given[1:2])
    return 0 <= number < len(lines) and any(re.search(rf"\b{name}\b", lines[number]) for name in names)


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
    if kind in FORWARD_HOOK_KINDS or kind in STEP_HOOK_KINDS:
        return finding
    cause = _("In a hook of a backward pass PyTorch records no graph, unless the pass has create_graph=True.")
    advice = _("Compute in the hook within torch.enable_grad(), from tensors that require grad.")
    return replace(finding, cause=cause, advice=advice)


def _explain_wrapped_output(trace: TraceData, finding: Finding) -> Finding:
    """Name the full backward hook because of which torch does not let an op edit its input in place."""
    rows = list(enumerate(trace.rows[: finding.step]))
    returned = {trace.plain_call(row.own_call): step for step, row in rows if row.kind == "forward"}
    wrapping = [hook for hook in list_silent_hooks(trace) if hook.hook.kind in _WRAPPING_KINDS]
    last = max(
        (hook for hook in wrapping if hook.hook.on in returned), key=lambda hook: returned[hook.hook.on], default=None
    )
    if last is None:
        return finding
    hook, call = last.hook, trace.rows[finding.step or 0].call
    names = {"hook": hook.label, "on": hook.on}
    editor = (
        _("an op")
        if call is None
        else _("{on} ({kind})").format(on=trace.call(call), kind=trace.modules[trace.calls[call].module].kind)
    )
    text = _(
        "{hook} is a full backward hook: torch wraps what {on} returns, and does not let {editor} edit it in place."
    )
    advice = _("Let it return a new tensor (inplace=False, or x = x + 1 for x += 1), or use a tensor hook.")
    finding = replace(finding, cause=text.format(editor=editor, **names), advice=advice, hooks=(hook,))
    return put_line(finding, *last.find_line())


def _rate(trace: TraceData, row: StepRow, last: int) -> str:
    """Rate an exception: an error if a hook ended a backward pass, or if it ended all that was recorded.

    A program that goes on has caught it, perhaps on purpose: a forward hook may raise to end the forward early.
    """
    is_last = trace.has_raised and last == len(trace.rows) - 1
    is_in_backward_hook = row.hook is not None and trace.hook_rows[row.hook].kind not in FORWARD_HOOK_KINDS
    return "error" if is_last or is_in_backward_hook else "remark"


# -- a node that could not compute


def _explain_failed_node(trace: TraceData, finding: Finding) -> Finding | None:
    """Say what made the node that raised, and what happened to its graph; None if no node did, or nothing is known."""
    row = trace.rows[finding.step or 0]
    if row.node is None:
        return None
    sentences, advice = [_describe_making(trace, row.node)], finding.advice
    if _WALKED_TWICE in (row.error or ""):
        sentences.append(_describe_first_walk(trace, row.node, row.pass_id))
        advice = _advise_after_walk(trace, row.node, row.pass_id)
    elif _EDITED in (row.error or ""):
        edit, advice = _describe_edit(trace, row.node, finding.step or 0)
        sentences.append(edit)
    else:
        sentences.append(_describe_own_backward(trace, row.node, row.pass_id))
    cause = join_sentences([sentence for sentence in sentences if sentence])
    return replace(finding, cause=cause, advice=advice) if cause else None


def _describe_making(trace: TraceData, node: int) -> str:
    """Say which line made a node, or called the module that did."""
    place, name = find_op_line(trace, [node]), trace.name(node)
    if place is not None:
        is_owned = trace.owners.get(node) is not None
        text = _("{op} was made at {where}.") if is_owned else _("{op} may have been made at {where}.")
        return text.format(op=name, where=describe_place(*place))
    code = CallCode(trace)
    for call in iter_enclosing_calls(trace, trace.owners.get(node)):
        line = code.lines.get(call)
        if line is not None:
            where = code.place_of(line).where
            return _("{op} was made by {on}, called at {where}.").format(op=name, on=trace.call(call), where=where)
    return ""


def _describe_own_backward(trace: TraceData, node: int, pass_id: int) -> str:
    """Say where the backward of a custom autograd.Function begins."""
    place = find_backward(trace, pass_id, node)
    return "" if place is None else _("Its backward begins at {where}.").format(where=place.where)


# -- a graph that was walked before


def _find_first_walk(trace: TraceData, node: int, pass_id: int) -> int | None:
    """Return the last step in which an earlier pass walked a node; None if no recorded pass did."""
    steps = (step for (other, one), step in trace.lookup.compute_steps.items() if one == node and other < pass_id)
    return max(steps, default=None)


def _advise_after_walk(trace: TraceData, node: int, pass_id: int) -> str:
    """Say what to do: with the weights of another step, a graph that was kept would be of no use."""
    step = _find_first_walk(trace, node, pass_id)
    if step is None or any(row.step > step for row in trace.updates):
        return _("Compute it anew in each round, and detach() what one round hands to the next.")
    lines = list_pass_lines(trace)
    if lines.get(pass_id) == lines.get(trace.rows[step].pass_id):
        return _("Compute anew for each pass what both walk.")
    return _("Add up the losses and call backward() once, or keep the graph with retain_graph=True in the first.")


def _describe_first_walk(trace: TraceData, node: int, pass_id: int) -> str:
    """Say which earlier pass walked a node, and freed what it had saved."""
    step = _find_first_walk(trace, node, pass_id)
    if step is None:
        return ""
    earlier = trace.rows[step].pass_id
    line = list_pass_lines(trace).get(earlier)
    at = "" if line is None else _(" ({where})").format(where=line.where)
    text = _("Pass {number}{where} has walked this part of the graph before, and freed it.")
    return text.format(number=format_pass_number(trace, earlier), where=at)


# -- an edit in place


def _describe_edit(trace: TraceData, node: int, step: int) -> tuple[str, str]:
    """Say what edited the tensor in place, the step of an optimizer or code after the op, and what to do."""
    update = _find_update_between(trace, node, step)
    if update is None:
        advice = _("Make a new tensor instead (x = x + 1 for x += 1), or edit it after backward().")
        return _describe_editing_code(trace, node), advice
    text = _(
        "After that and before this pass, {optimizer} took a step{where}, which edits the parameters of {on} in place."
    )
    place, owner = read_place(update.taken_at), trace.owners[node]
    at = "" if place is None else _(" ({where})").format(where=place.where)
    names = {"optimizer": trace.optimizer(trace.rows[update.step].optimizer or 0), "on": trace.plain_call(owner)}
    advice = _("Take the step after all passes through what was computed with the old parameters.")
    return text.format(where=at, **names), advice


def _find_update_between(trace: TraceData, node: int, step: int) -> UpdateRow | None:
    """Return the step of an optimizer that changed parameters of the module that made a node, after it was called."""
    call = trace.owners.get(node)
    begin = next((index for index, row in enumerate(trace.rows) if row.kind == "call" and row.call == call), None)
    if call is None or begin is None:
        return None
    shape, owner = _read_shape(trace.rows[step].error or ""), trace.plain_call(call)
    made_by = re.search(r"which is output \d+ of ([A-Za-z]+)", trace.rows[step].error or "")
    if made_by is not None and made_by[1].partition("Backward")[0] not in (*VIEWS, *PARTS, "Expand"):
        return None
    held = [
        (number, row.optimizers)
        for number, row in enumerate(trace.parameters)
        if any(name.rpartition(".")[0] == owner for name in row.names) and shape in (row.shape, row.shape[::-1])
    ]
    for update in reversed(trace.updates):
        optimizer = trace.rows[update.step].optimizer
        moved = (number for number, optimizers in held if optimizer in optimizers)
        if begin < update.step < step and any(number not in update.without_grad for number in moved):
            return update
    return None


def _read_shape(error: str) -> tuple[int, ...] | None:
    """Read the shape of the edited tensor from what torch says.

    >>> _read_shape("... inplace operation: [torch.FloatTensor [10, 8]], which is output 0 of Sigmoid")
    (10, 8)
    """
    found = re.search(r"\[\S+ \[([\d, ]*)\]\]", error)
    return None if found is None else tuple(int(size) for size in found[1].split(",") if size.strip())


def _describe_editing_code(trace: TraceData, node: int) -> str:
    """Name the code that edits in place and may have run after an op, in its forward or around the pass."""
    found = sorted({piece for region in list_regions(CallCode(trace), node) for piece in _list_edits(trace, region)})
    if not found:
        return ""
    named = join_first([f"{text} ({describe_place(file or None, line)})" for file, line, text in found])
    return _("Code there that may edit it in place: {code}.").format(code=named)


def _list_edits(trace: TraceData, region: Region) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and text of the code in some lines that edits tensors in place."""
    source = trace.sources[region[0]]
    for part in iter_nodes(parse_row(source), region[1]):
        if _edits(part):
            yield source.file or "", part.lineno, ast.unparse(part)


def _edits(part: ast.AST) -> bool:
    """Whether code edits in place: ``x += y``, ``x.add_(y)``, ``x[i] = y``; a counter such as ``n += 1`` does not."""
    if isinstance(part, ast.AugAssign):
        value = part.value
        return not (isinstance(value, ast.Constant) and isinstance(value.value, (int, str)))
    if isinstance(part, ast.Assign):
        return any(isinstance(target, ast.Subscript) and not _is_text(target.slice) for target in part.targets)
    name = get_last_name(part.func) if isinstance(part, ast.Call) else ""
    return re.fullmatch(r"[a-z]\w*[^_]_", name) is not None and name != "requires_grad_"


def _is_text(index: ast.expr) -> bool:
    """Whether an index is a text, as the key of a dict."""
    return isinstance(index, ast.JoinedStr) or (isinstance(index, ast.Constant) and isinstance(index.value, str))
