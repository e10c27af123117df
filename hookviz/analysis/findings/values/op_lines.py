"""Finds the line of the program that made a node of the graph, if only one line of its forward can have made it."""

import ast
import re

from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.parameters.cutting_code import get_last_name, parse_source
from hookviz.trace import TraceData

_OPERATORS = {"div": ast.Div, "pow": ast.Pow, "mul": ast.Mult, "sub": ast.Sub}
"""Function → the operator that does the same."""


def find_op_line(trace: TraceData, node: int) -> tuple[str | None, int] | None:
    """Return file and line of the code that made a node; None if several lines may have, or the text is not known."""
    call, function = trace.owners.get(node), _name_function(trace.ops[node])
    region = None if call is None else CallCode(trace).find_forward(trace.calls[call].module)
    tree = None if region is None else parse_source(trace.sources[region[0]].text)
    if region is None or tree is None:
        return None
    source, shift = trace.sources[region[0]], trace.sources[region[0]].line - 1
    lines = {part.lineno + shift for part in ast.walk(tree) if isinstance(part, ast.expr) and _is_use(part, function)}
    inside = [line for line in lines if region[1].first <= line <= region[1].last]
    return (source.file, inside[0]) if len(inside) == 1 else None


def _name_function(op: str) -> str:
    """Return the name of the function that makes a node.

    >>> _name_function("LogBackward0"), _name_function("LogSoftmaxBackward0")
    ('log', 'log_softmax')
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", re.sub(r"Backward\d*$", "", op)).lower()


def _is_use(part: ast.expr, function: str) -> bool:
    if isinstance(part, ast.Call):
        return get_last_name(part.func) in (function, f"{function}_")
    operator = _OPERATORS.get(function)
    return operator is not None and isinstance(part, ast.BinOp) and isinstance(part.op, operator)
