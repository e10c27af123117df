"""Find hooks that a loop made and that read its variable when they run: all of them see the last value."""

import ast

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.parameters.cutting_code import parse_source
from hookviz.support.definitions import list_loop_variables, path_to
from hookviz.support.messages import N_, _, join_first, join_list
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, Hook, SourceRow, TraceData
from hookviz.trace.traversal import iter_enclosing_calls

MAX_NAMED = 4
"""How many owners a finding names."""
BIND_VALUE = N_("Bind the value when the function is made: add the parameter {name}={name}.")


def list_late_bindings(trace: TraceData) -> list[Finding]:
    """List the functions that a loop made for several owners, that read its variable, and that fired after the loop."""
    found = []
    for steps in _group_steps(trace).values():
        names = _list_loop_variables(trace, trace.hook(steps[0][1])) if _fire_together(trace, steps) else []
        if names:
            found.append(_describe_binding(trace, steps, names))
    return found


def _group_steps(trace: TraceData) -> dict[tuple[object, ...], list[tuple[int, int]]]:
    """Return file, line and column of each function that is a hook → the steps at which it fired, with the hook."""
    groups: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for step in trace.lookup.steps_of_kinds(*HOOK_KINDS):
        index = trace.rows[step].hook
        row = None if index is None else trace.hook_rows[index]
        if index is not None and row is not None and row.line is not None:
            groups.setdefault((row.kind, row.file, row.line, row.name), []).append((step, index))
    return groups


def _fire_together(trace: TraceData, steps: list[tuple[int, int]]) -> bool:
    """Whether the hooks of two owners fired in one call or pass: the loop had made both then."""
    owners: dict[object, set[str]] = {}
    for step, index in steps:
        row = trace.rows[step]
        is_forward = row.kind in FORWARD_HOOK_KINDS and row.call is not None
        outermost = [*iter_enclosing_calls(trace, row.call)][-1:] if is_forward else []
        moment = (row.pass_id, *outermost)
        owners.setdefault(moment, set()).add(trace.hook(index).on)
    return any(len(names) > 1 for names in owners.values())


def _list_loop_variables(trace: TraceData, hook: Hook) -> list[str]:
    """List the variables of the loops around a function, in the same scope, that it reads."""
    sources = (row for row in trace.sources if row.file == hook.file)
    return next((names for row in sources if (names := _read_variables(row, hook))), [])


def _read_variables(source: SourceRow, hook: Hook) -> list[str]:
    tree = parse_source(source.text)
    line = (hook.line or 0) - source.line + 1
    kinds = (ast.Lambda,) if hook.source_.is_lambda else (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)] if tree is not None else []
    found = [node for node in nodes if _begins_at(node, line)]
    return list_loop_variables(found[0], path_to(tree, found[0])) if tree is not None and len(found) == 1 else []


def _begins_at(node: ast.AST, line: int) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return line in (getattr(node, "lineno", 0), *(one.lineno for one in decorators[:1]))


def _describe_binding(trace: TraceData, steps: list[tuple[int, int]], names: list[str]) -> Finding:
    hooks = tuple({trace.hook(index).on: trace.hook(index) for _step, index in steps}.values())
    on = join_first([hook.on for hook in hooks], MAX_NAMED)
    words = {"hook": hooks[0].label, "on": on, "names": join_list(names), "name": names[0]}
    return Finding(
        steps[0][0],
        "late_binding",
        _("{hook} on {on} reads {names}, a variable of the loop that made it, when it fires.").format(**words),
        "warning",
        line=hooks[0].line,
        file=hooks[0].file,
        line_role="hook",
        cause=_("After the loop, all of them see its last value.").format(**words),
        advice=_(BIND_VALUE).format(**words),
        hooks=hooks,
    )
