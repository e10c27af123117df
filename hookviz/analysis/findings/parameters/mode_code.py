"""Code that switches the graph off: ``with torch.no_grad():``, the decorator, and a generator that yields inside it."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from hookviz.analysis.findings.parameters.cutting_code import get_last_name, parse_source

_SWITCHES = {"no_grad": {"no_grad", "set_grad_enabled"}, "inference": {"inference_mode"}}
"""Mode of a call → the functions that switch it on."""


class Switch(NamedTuple):
    """A place where the graph is switched off."""

    line: int
    function: str = ""
    """The generator that yields there; empty if the code in question lies inside it."""


def find_switch(text: str, first_line: int, line: int, mode: str) -> Switch | None:
    """Return what switches a mode on for a line of a source, whose first line has the number ``first_line``.

    >>> text = '''with torch.no_grad():
    ...     net(x)
    ... '''
    >>> find_switch(text, 1, 2, "no_grad")
    Switch(line=1, function='')
    """
    tree, shift = parse_source(text), first_line - 1
    found = [] if tree is None else [node for node in _list_switches(tree, mode) if _covers(node, line - shift)]
    lines = [_line_of_switch(node, mode) for node in found]
    return Switch(max(lines) + shift) if lines else None


def list_yields(text: str, first_line: int, mode: str) -> list[Switch]:
    """List where generators of a source yield inside a mode: it stays on in the code that asks for the next value."""
    tree, shift = parse_source(text), first_line - 1
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)) if tree is not None else ()
    return [
        Switch(node.lineno + shift, function.name)
        for function in functions
        for statement in _list_switches(function, mode)
        if isinstance(statement, ast.With)
        for node in ast.walk(statement)
        if isinstance(node, ast.Yield)
    ]


def list_permanent_switches(text: str, first_line: int) -> list[int]:
    """List the lines of a source that switch the graph off until some code switches it on again.

    >>> list_permanent_switches("torch.set_grad_enabled(False)", 1)
    [1]
    """
    tree = parse_source(text)
    calls = [
        node.value
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value) == "set_grad_enabled"
    ]
    is_off = [any(isinstance(one, ast.Constant) and one.value is False for one in ast.walk(call)) for call in calls]
    return [call.lineno + first_line - 1 for call, off in zip(calls, is_off, strict=True) if off]


def _list_switches(tree: ast.AST, mode: str) -> Iterator[ast.With | ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.With, ast.FunctionDef)) and _line_of_switch(node, mode):
            yield node


def _line_of_switch(node: ast.With | ast.FunctionDef, mode: str) -> int:
    """Return the line at which a statement switches a mode on; 0 if it does not."""
    parts = [item.context_expr for item in node.items] if isinstance(node, ast.With) else node.decorator_list
    names = ((part.lineno, _name(part)) for part in parts)
    return next((line for line, name in names if name in _SWITCHES.get(mode, ())), 0)


def _name(part: ast.expr) -> str:
    return get_last_name(part.func if isinstance(part, ast.Call) else part)


def _covers(node: ast.With | ast.FunctionDef, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
