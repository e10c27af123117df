"""Find hooks that read something at another moment than meant: ``.grad``, an edited tensor, a variable of a loop."""

import ast
from collections.abc import Iterator

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.hooks.firings import group_firings, identify_run, list_fired, name_fired
from hookviz.analysis.findings.hooks.program_text import find_hook_line, iter_registered, list_argument_names
from hookviz.analysis.findings.parameters.cutting_code import (
    find_function,
    get_last_name,
    iter_file_trees,
    parse_row,
    parse_source,
)
from hookviz.analysis.findings.training.control_flow import may_be_left_out
from hookviz.support.definitions import LOOPS, find_edited, iter_rebound, list_loop_variables, path_to
from hookviz.support.messages import N_, _, join_list
from hookviz.support.source_code import CodePlace, place_of, read_place
from hookviz.trace import HOOK_KINDS, Hook, SourceRow, TraceData

BIND_VALUE = N_("Bind the value when the function is made: add the parameter {name}={name}.")


def list_hook_moments(trace: TraceData) -> list[Finding]:
    """List the tensor hooks that read a ``.grad`` that is not written yet, and those whose tensor is edited later."""
    groups = group_firings(trace, ["tensor_hook"], "registered_at")
    found = (
        _find_early_read(trace, index, steps) or _find_later_edit(trace, index, steps[0])
        for index, steps in groups.items()
    )
    return [finding for finding in found if finding is not None]


def _is_on_leaf(trace: TraceData, hook: int) -> bool:
    node = trace.hook_rows[hook].node
    return node is not None and trace.ops[node] == "AccumulateGrad"


def _find_early_read(trace: TraceData, index: int, steps: list[int]) -> Finding | None:
    """Return the finding of a hook on leaves that reads the ``.grad`` of a variable; None if it reads none."""
    hook = trace.hook(index)
    read = _find_grad(trace, index) if _is_on_leaf(trace, index) else None
    if read is None or hook.line is None:
        return None
    hooks = list_fired(trace, steps)
    names = {**name_fired(hooks), "code": ast.unparse(read)}
    finding = Finding(
        steps[0],
        "early_read",
        _("{hook} on {on} reads {code}: a tensor hook runs before the pass writes .grad.").format(**names),
        "remark",
        advice=_("Use the argument of the hook, or register it with register_post_accumulate_grad_hook."),
        certainty="likely",
        hooks=hooks,
    )
    return put_line(finding, place_of(read, hook))


def _find_grad(trace: TraceData, index: int) -> ast.Attribute | None:
    """Return where a function reads the ``.grad`` of the variable that it was registered on, if it writes none."""
    hook, place = trace.hook(index), read_place(trace.hook_rows[index].registered_at)
    tree, owners = parse_source(hook.source or ""), {hook.on}
    for _source, one in iter_file_trees(trace, place.file) if place is not None else ():
        owners |= set(_list_registered(one, place.line))  # type: ignore[union-attr]
    grads = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "grad"]
    if any(isinstance(node.ctx, ast.Store) for node in grads):
        return None
    owners -= list_argument_names(tree)
    return next((node for node in grads if isinstance(node.value, ast.Name) and node.value.id in owners), None)


def _find_later_edit(trace: TraceData, index: int, step: int) -> Finding | None:
    """Return the finding of a hook on a tensor that the same function edits in place afterwards."""
    hook, place = trace.hook(index), read_place(trace.hook_rows[index].registered_at)
    edit = None if place is None or _is_on_leaf(trace, index) else _find_edit(trace, place)
    if place is None or edit is None:
        return None
    name, node, edited_at = edit
    names = {"hook": hook.label, "name": name, "code": ast.unparse(node), "where": place.where}
    sentence = _("{hook} gets the gradient of {name} as it was when it was registered ({where}).")
    finding = Finding(
        step,
        "edited_later",
        sentence.format(**names),
        "remark",
        cause=_("{code} edits {name} in place after that.").format(**names),
        advice=_("Register it after the edit, to get the gradient of the edited tensor."),
        certainty="likely",
        hooks=(hook,),
    )
    return put_line(finding, edited_at, "edits")


def _find_edit(trace: TraceData, place: CodePlace) -> tuple[str, ast.AST, CodePlace] | None:
    """Return variable, code and line of the first edit of what a line registers a hook on, in the same function."""
    for _source, tree in iter_file_trees(trace, place.file):
        scope = find_function(tree, place.line)
        name = next(_list_registered(scope, place.line), "")
        if not name:
            continue
        for node in ast.walk(scope):
            if not isinstance(node, (ast.stmt, ast.expr)) or node.lineno <= place.line:
                continue
            edited = find_edited(node)
            if isinstance(edited, ast.Name) and edited.id == name and _comes_next(scope, name, place.line, node):
                return name, node, CodePlace(place.file, node.lineno)
    return None


def _list_registered(scope: ast.AST, line: int) -> Iterator[str]:
    """Yield the variable on which a line registers a tensor hook."""
    owners = iter_registered(scope, line, "register_hook")
    return (owner.id for owner in owners if isinstance(owner, ast.Name))


def _comes_next(scope: ast.AST, name: str, line: int, edit: ast.stmt | ast.expr) -> bool:
    """Whether code that edits a variable runs after a line for sure, before a pass, with the same tensor in it."""
    calls = (part for part in ast.walk(scope) if isinstance(part, ast.Call) and line < part.lineno <= edit.lineno)
    has_pass = any(get_last_name(call.func) in ("backward", "grad") for call in calls)
    is_rebound = any(part.id == name and line < part.lineno <= edit.lineno for part in iter_rebound(scope))
    return not (has_pass or may_be_left_out(scope, edit) or is_rebound)


# -- variables of a loop


def list_late_bindings(trace: TraceData) -> list[Finding]:
    """List the functions that a loop made for several owners, that read its variable, and that fired after the loop."""
    found = []
    for index, steps in group_firings(trace, HOOK_KINDS).items():
        hook = trace.hook(index)
        names = _list_loop_variables(trace, hook) if hook.line and _fire_together(trace, steps) else []
        if names:
            found.append(_describe_binding(trace, steps, names))
    return found


def _fire_together(trace: TraceData, steps: list[int]) -> bool:
    """Whether the hooks of two owners fired in one call or pass: the loop had made both then."""
    owners: dict[object, set[str]] = {}
    for step in steps:
        hook = trace.steps[step].hook
        owners.setdefault(identify_run(trace, step), set()).update([] if hook is None else [hook.on])
    return any(len(names) > 1 for names in owners.values())


def _list_loop_variables(trace: TraceData, hook: Hook) -> list[str]:
    """List the variables of the loops around a function, in the same scope, that it reads."""
    sources = (row for row in trace.sources if row.file == hook.file)
    return next((names for row in sources if (names := _read_variables(row, hook))), [])


def _read_variables(source: SourceRow, hook: Hook) -> list[str]:
    tree = parse_row(source)
    kinds = (ast.Lambda,) if hook.source_.is_lambda else (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    found = [node for node in nodes if _begins_at(node, hook.line or 0)]
    if len(found) != 1:
        return []
    around = path_to(tree, found[0])
    loops = [index for index, node in enumerate(around) if isinstance(node, LOOPS)]
    is_registered = bool(loops) and _registers_once(around[loops[-1]], found[0])
    return list_loop_variables(found[0], around[loops[-1] :]) if is_registered else []


def _registers_once(loop: ast.AST, function: ast.AST) -> bool:
    """Whether each turn of a loop registers a function that it makes once, itself: it holds another one in the next."""
    uses = [function]
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        uses = [part for part in ast.walk(loop) if isinstance(part, ast.Name) and part.id == function.name]
    around = path_to(loop, uses[0]) if len(uses) == 1 else []
    call = around[-1] if around else None
    is_inner = not any(isinstance(node, LOOPS) for node in around[1:])
    return isinstance(call, ast.Call) and get_last_name(call.func).startswith("register_") and is_inner


def _begins_at(node: ast.AST, line: int) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return line in (getattr(node, "lineno", 0), *(one.lineno for one in decorators[:1]))


def _describe_binding(trace: TraceData, steps: list[int], names: list[str]) -> Finding:
    hooks = list_fired(trace, steps)
    words = {**name_fired(hooks), "names": join_list(names), "name": names[0]}
    finding = Finding(
        steps[0],
        "late_binding",
        _("{hook} on {on} reads {names}, a variable of the loop that made it, when it fires.").format(**words),
        "warning",
        cause=_("After the loop, all of them see its last value.").format(**words),
        advice=_(BIND_VALUE).format(**words),
        hooks=hooks,
    )
    return put_line(finding, *find_hook_line(hooks[0]))
