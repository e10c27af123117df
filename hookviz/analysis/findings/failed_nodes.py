"""Explain the exceptions of nodes in a backward pass: an edit in place, a graph that was walked before."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.parameters.call_code import CallCode, Region
from hookviz.analysis.findings.parameters.cutting_code import get_last_name, parse_source
from hookviz.analysis.findings.training.program_calls import find_pass_line
from hookviz.analysis.findings.values.op_lines import find_op_line
from hookviz.support.messages import _, join_first, join_sentences
from hookviz.support.source_code import describe_place, read_place
from hookviz.trace import TraceData, UpdateRow
from hookviz.trace.rows import BACKWARD_LOCATION
from hookviz.trace.sentences import format_pass_number
from hookviz.trace.traversal import iter_enclosing_calls

_WALKED_TWICE = "backward through the graph a second time"
_EDITED = "modified by an inplace operation"
_MAX_NAMED = 3
"""A sentence names at most this many pieces of code that edit in place."""


def explain_failed_node(trace: TraceData, finding: Finding) -> Finding | None:
    """Say what made the node that raised, and what happened to its graph; None if no node did, or nothing is known."""
    row = trace.rows[finding.step or 0]
    if row.node is None:
        return None
    sentences, advice = [_describe_making(trace, row.node)], finding.advice
    if _WALKED_TWICE in (row.error or ""):
        sentences.append(_describe_first_walk(trace, row.node, row.pass_id))
        advice = _(
            "Compute it anew in each round, and detach() what one round hands to the next; or keep the graph with "
            "retain_graph=True."
        )
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
        return _("{op} was made at {where}.").format(op=name, where=describe_place(*place))
    code = CallCode(trace)
    for call in iter_enclosing_calls(trace, trace.owners.get(node)):
        line = code.lines.get(call)
        if line is not None:
            where = describe_place(code.file_of(line), line.line)
            return _("{op} was made by {on}, called at {where}.").format(op=name, on=trace.call(call), where=where)
    return ""


def _describe_own_backward(trace: TraceData, node: int, pass_id: int) -> str:
    """Say where the backward of a custom autograd.Function begins."""
    saved = trace.lookup.saved(pass_id, node)
    place = next((read_place(str(one.plain)) for one in saved if one.name == BACKWARD_LOCATION and one.plain), None)
    return "" if place is None else _("Its backward begins at {where}.").format(where=place.where)


# -- a graph that was walked before


def _describe_first_walk(trace: TraceData, node: int, pass_id: int) -> str:
    """Say which earlier pass walked a node, and freed what it had saved."""
    steps = (step for (other, one), step in trace.lookup.compute_steps.items() if one == node and other < pass_id)
    step = max(steps, default=None)
    if step is None:
        return ""
    earlier = trace.rows[step].pass_id
    names = {"number": format_pass_number(trace, earlier)}
    line = find_pass_line(trace, earlier)
    if line is None:
        return _("Pass {number} has walked this part of the graph before, and freed it.").format(**names)
    text = _("Pass {number}, begun at {where}, has walked this part of the graph before, and freed it.")
    return text.format(where=line.where, **names)


# -- an edit in place


def _describe_edit(trace: TraceData, node: int, step: int) -> tuple[str, str]:
    """Say what edited the tensor in place, the step of an optimizer or code after the op, and what to do."""
    update = _find_update_between(trace, node, step)
    if update is None:
        advice = _("Make a new tensor instead (x = x + 1 for x += 1), or edit it after backward().")
        return _describe_editing_code(trace, node), advice
    text = _("After that and before this pass, {optimizer} took a step, which edits the parameters of {on} in place.")
    place, owner = read_place(update.taken_at), trace.owners[node]
    if place is not None:
        text = _(
            "After that and before this pass, {optimizer} took a step at {where}, which edits the parameters of {on} "
            "in place."
        )
    names = {"optimizer": trace.optimizer(trace.rows[update.step].optimizer or 0), "on": trace.plain_call(owner)}
    advice = _("Take the step after all passes through what was computed with the old parameters.")
    return text.format(where="" if place is None else place.where, **names), advice


def _find_update_between(trace: TraceData, node: int, step: int) -> UpdateRow | None:
    """Return the step of an optimizer that changed parameters of the module that made a node, after it was called."""
    call = trace.owners.get(node)
    begin = next((index for index, row in enumerate(trace.rows) if row.kind == "call" and row.call == call), None)
    if call is None or begin is None:
        return None
    shape, owner = _read_shape(trace.rows[step].error or ""), trace.plain_call(call)
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
    code, call = CallCode(trace), trace.owners.get(node)
    forward = None if call is None else code.find_forward(trace.calls[call].module)
    regions = code.list_around_pass() if call is None else [] if forward is None else code.follow([forward])
    found = sorted({piece for region in regions for piece in _list_edits(trace, region)})
    if not found:
        return ""
    named = join_first([f"{text} ({describe_place(file or None, line)})" for file, line, text in found], _MAX_NAMED)
    return _("Code there that edits in place: {code}.").format(code=named)


def _list_edits(trace: TraceData, region: Region) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and text of the code in some lines that edits tensors in place."""
    source = trace.sources[region[0]]
    tree, lines = parse_source(source.text), region[1].shift(1 - source.line)
    for part in ast.walk(tree) if tree is not None else ():
        if lines.first <= getattr(part, "lineno", 0) <= lines.last and _edits(part):
            yield source.file or "", part.lineno + source.line - 1, ast.unparse(part)  # type: ignore[attr-defined]


def _edits(part: ast.AST) -> bool:
    """Whether code edits in place: ``x += y``, ``x.add_(y)``, ``x[i] = y``; a counter such as ``n += 1`` does not."""
    if isinstance(part, ast.AugAssign):
        value = part.value
        return not (isinstance(value, ast.Constant) and isinstance(value.value, (int, str)))
    if isinstance(part, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in part.targets)
    name = get_last_name(part.func) if isinstance(part, ast.Call) else ""
    return re.fullmatch(r"[a-z]\w*[^_]_", name) is not None and name != "requires_grad_"
