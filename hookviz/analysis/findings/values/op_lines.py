"""Finds the line of the program that made a node of the graph, if only one line can have made it."""

import ast
import re
from collections.abc import Iterable, Iterator

from hookviz.analysis.findings.parameters.call_code import CallCode, Region
from hookviz.analysis.findings.parameters.cutting_code import get_last_name, parse_source
from hookviz.trace import TraceData

_OPERATORS = {"div": ast.Div, "reciprocal": ast.Div, "pow": ast.Pow, "mul": ast.Mult, "sub": ast.Sub}
"""Function → the operator that does the same."""
_OTHER_NAMES = {
    "linalg_vector_norm": ("norm", "vector_norm"),
    "nll_loss": ("nll_loss", "cross_entropy"),
    "log_softmax": ("log_softmax", "cross_entropy"),
}
"""Function → the names of the functions that call it."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def find_op_line(trace: TraceData, nodes: Iterable[int]) -> tuple[str | None, int] | None:
    """Return file and line of the code that made the first of some nodes for which only one line can have."""
    code = CallCode(trace)
    return next((place for node in nodes if (place := _find_line(code, node)) is not None), None)


def _find_line(code: CallCode, node: int) -> tuple[str | None, int] | None:
    """Look in the forward that made a node, or in the function that began the pass; then in all that was recorded."""
    trace, function = code.trace, _name_function(code.trace.ops[node])
    call = trace.owners.get(node)
    region = code.find_forward(trace.calls[call].module) if call is not None else code.pass_region
    found = set() if region is None else set(_list_uses(code, region, function))
    if not found and call is None:
        found = {line for source in range(len(trace.sources)) for line in _list_in_source(code, source, function)}
    return found.pop() if len(found) == 1 else None


def _list_uses(code: CallCode, region: Region, function: str) -> Iterator[tuple[str | None, int]]:
    """Yield file and line of each use of a function in some lines, but for those of functions defined there."""
    source, lines = code.trace.sources[region[0]], region[1].shift(1 - code.trace.sources[region[0]].line)
    tree = parse_source(source.text)
    around = [] if tree is None else [part for part in ast.walk(tree) if isinstance(part, _SCOPES)]
    scope = next((part for part in around if lines.first <= part.lineno and part.end_lineno == lines.last), tree)
    for part in _walk_scope(scope) if scope is not None else ():
        if lines.first <= getattr(part, "lineno", 0) <= lines.last and _is_use(part, function):
            yield source.file, part.lineno + source.line - 1  # type: ignore[attr-defined]


def _list_in_source(code: CallCode, index: int, function: str) -> Iterator[tuple[str | None, int]]:
    """Yield file and line of each use of a function in the functions of a source that are no forward."""
    source = code.trace.sources[index]
    tree = parse_source(source.text)
    scopes = [part for part in ast.walk(tree) if isinstance(part, _SCOPES[:2])] if tree is not None else []
    for scope in scopes:
        for part in _walk_scope(scope) if scope.name != "forward" else ():
            if _is_use(part, function):
                yield source.file, part.lineno + source.line - 1  # type: ignore[attr-defined]


def _walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield all parts of a piece of code, but for the functions and classes that are defined in it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, _SCOPES):
            yield child
            yield from _walk_scope(child)


def _name_function(op: str) -> str:
    """Return the name of the function that makes a node.

    >>> _name_function("LogBackward0"), _name_function("LogSoftmaxBackward0")
    ('log', 'log_softmax')
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", re.sub(r"Backward\d*$", "", op)).lower()


def _is_use(part: ast.AST, function: str) -> bool:
    if isinstance(part, ast.Call):
        return get_last_name(part.func) in (function, f"{function}_", *_OTHER_NAMES.get(function, ()))
    operator = _OPERATORS.get(function)
    return operator is not None and isinstance(part, ast.BinOp) and isinstance(part.op, operator)
