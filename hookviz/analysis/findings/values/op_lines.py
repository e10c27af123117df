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
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def find_op_line(trace: TraceData, nodes: Iterable[int]) -> tuple[str | None, int] | None:
    """Return file and line of the code that made the first of some nodes for which only one line can have."""
    code = CallCode(trace)
    return next((place for node in nodes if (place := _find_line(code, node)) is not None), None)


def _find_line(code: CallCode, node: int) -> tuple[str | None, int] | None:
    """Return the only line that can have made a node: of the forward that made it, or of the code around the pass."""
    trace, function = code.trace, _name_function(code.trace.ops[node])
    call = trace.owners.get(node)
    forward = None if call is None else code.find_forward(trace.calls[call].module)
    regions = code.list_around_pass() if call is None else [] if forward is None else code.follow([forward])
    found = {place for region in regions for place in _list_uses(code, region, function, call is None)}
    return found.pop() if len(found) == 1 else None


def _list_uses(code: CallCode, region: Region, function: str, outside: bool) -> Iterator[tuple[str | None, int]]:
    """Yield file and line of each use of a function in some lines; ``outside``: but for those in a forward."""
    source = code.trace.sources[region[0]]
    tree, lines = parse_source(source.text), region[1].shift(1 - source.line)
    for part in _walk(tree, outside) if tree is not None else ():
        if lines.first <= getattr(part, "lineno", 0) <= lines.last and _is_use(part, function):
            yield source.file, part.lineno + source.line - 1  # type: ignore[attr-defined]


def _walk(scope: ast.AST, outside: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(scope):
        if not (outside and isinstance(child, _FUNCTIONS) and child.name == "forward"):
            yield child
            yield from _walk(child, outside)


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
