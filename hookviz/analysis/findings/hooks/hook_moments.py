"""Find tensor hooks at another moment than meant: before ``.grad`` is written, or for a tensor before its edit."""

import ast
from collections.abc import Iterator

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.hooks.program_text import list_argument_names
from hookviz.analysis.findings.parameters.cutting_code import parse_source
from hookviz.analysis.findings.training.program_calls import CodePlace, find_function, read_place
from hookviz.support.definitions import find_edited
from hookviz.support.messages import _, join_first
from hookviz.trace import Hook, TraceData

_MAX_NAMED = 4
"""How many owners a finding names."""


def list_hook_moments(trace: TraceData) -> list[Finding]:
    """List the tensor hooks that read a ``.grad`` that is not written yet, and those whose tensor is edited later."""
    groups: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for step in trace.lookup.steps_of_kinds("tensor_hook"):
        index = trace.rows[step].hook
        if index is not None:
            row = trace.hook_rows[index]
            groups.setdefault((row.file, row.line, row.name, row.registered_at), []).append((step, index))
    found = (_find_early_read(trace, steps) or _find_later_edit(trace, steps[0]) for steps in groups.values())
    return [finding for finding in found if finding is not None]


def _is_on_leaf(trace: TraceData, hook: int) -> bool:
    node = trace.hook_rows[hook].node
    return node is not None and trace.ops[node] == "AccumulateGrad"


def _find_early_read(trace: TraceData, steps: list[tuple[int, int]]) -> Finding | None:
    """Return the finding of a hook on leaves that reads the ``.grad`` of a variable; None if it reads none."""
    step, index = steps[0]
    hook = trace.hook(index)
    read = _find_grad(hook) if _is_on_leaf(trace, index) else None
    if read is None or hook.line is None:
        return None
    hooks = tuple({trace.hook(one).on: trace.hook(one) for _step, one in steps}.values())
    names = {"hook": hook.label, "on": join_first([one.on for one in hooks], _MAX_NAMED), "code": ast.unparse(read)}
    return Finding(
        step,
        "early_read",
        _("{hook} on {on} reads {code}: a tensor hook runs before the pass writes .grad.").format(**names),
        "remark",
        line=hook.line + read.lineno - 1,
        file=hook.file,
        advice=_("Use the argument of the hook, or register it with register_post_accumulate_grad_hook."),
        certainty="likely",
        hooks=hooks,
    )


def _find_grad(hook: Hook) -> ast.Attribute | None:
    """Return where a function reads the ``.grad`` of something that it was not given, if it writes none."""
    tree = parse_source(hook.source or "")
    nodes = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    grads = [node for node in nodes if node.attr == "grad"]
    if tree is None or any(isinstance(node.ctx, ast.Store) for node in grads):
        return None
    given = list_argument_names(tree) | {"self", "torch"}
    return next((node for node in grads if isinstance(node.value, ast.Name) and node.value.id not in given), None)


def _find_later_edit(trace: TraceData, first: tuple[int, int]) -> Finding | None:
    """Return the finding of a hook on a tensor that the same function edits in place afterwards."""
    step, index = first
    hook, place = trace.hook(index), read_place(trace.hook_rows[index].registered_at)
    edit = None if place is None or _is_on_leaf(trace, index) else _find_edit(trace, place)
    if place is None or edit is None:
        return None
    name, code, line = edit
    names = {"hook": hook.label, "name": name, "code": code, "where": place.where}
    sentence = _("{hook} gets the gradient of {name} as it was when it was registered ({where}).")
    return Finding(
        step,
        "edited_later",
        sentence.format(**names),
        "remark",
        line=line,
        file=place.file,
        line_role="edits",
        cause=_("{code} edits {name} in place after that.").format(**names),
        advice=_("Register it after the edit, to get the gradient of the edited tensor."),
        certainty="likely",
        hooks=(hook,),
    )


def _find_edit(trace: TraceData, place: CodePlace) -> tuple[str, str, int] | None:
    """Return variable, code and line of the first edit of what a line registers a hook on, in the same function."""
    for source in trace.sources:
        tree = parse_source(source.text) if source.file == place.file else None
        line = place.line - source.line + 1
        scope = None if tree is None else find_function(tree, line)
        name = "" if scope is None else next(_list_registered(scope, line), "")
        if scope is None or not name:
            continue
        for node in ast.walk(scope):
            if not isinstance(node, (ast.stmt, ast.expr)) or node.lineno <= line:
                continue
            edited = find_edited(node)
            if isinstance(edited, ast.Name) and edited.id == name and not _is_bound(scope, name, line, node.lineno):
                return name, ast.unparse(node), node.lineno + source.line - 1
    return None


def _list_registered(scope: ast.AST, line: int) -> Iterator[str]:
    """Yield the variable on which a line registers a tensor hook."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and node.lineno == line and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if node.func.attr == "register_hook" and isinstance(owner, ast.Name):
                yield owner.id


def _is_bound(scope: ast.AST, name: str, start: int, end: int) -> bool:
    """Whether a function gives a variable another value between two lines."""
    parts = [part for part in ast.walk(scope) if isinstance(part, ast.Name)]
    edits = [node.target for node in ast.walk(scope) if isinstance(node, ast.AugAssign)]
    stores = (part for part in parts if part.id == name and isinstance(part.ctx, ast.Store) and part not in edits)
    return any(start < part.lineno <= end for part in stores)
