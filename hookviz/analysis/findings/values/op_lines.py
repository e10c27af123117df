"""Finds the line of the program that made a node of the graph: from its text, and the order in which it computes."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.parameters.cutting_code import (
    FUNCTIONS,
    get_last_name,
    iter_file_trees,
    parse_row,
    parse_source,
)
from hookviz.analysis.findings.parameters.graph_switches import find_switch
from hookviz.analysis.findings.parameters.none_gradients import find_backward
from hookviz.analysis.findings.parameters.program_functions import Function, Region
from hookviz.support.source_code import CodePlace
from hookviz.trace import TraceData
from hookviz.trace.traversal import iter_enclosing_calls

_OPERATORS: dict[str, type[ast.AST]] = {
    "add": ast.Add,
    "sub": ast.Sub,
    "rsub": ast.Sub,
    "mul": ast.Mult,
    "div": ast.Div,
    "reciprocal": ast.Div,
    "pow": ast.Pow,
    "neg": ast.USub,
    "mm": ast.MatMult,
    "bmm": ast.MatMult,
}
"""Function → the operator that does the same."""
_OTHER_NAMES = {
    "linalg_vector_norm": ("norm", "vector_norm", "normalize"),
    "nll_loss": ("nll_loss", "cross_entropy"),
    "log_softmax": ("log_softmax", "cross_entropy"),
    "log1_p": ("log1p",),
    "mm": ("mm", "matmul", "linear", "einsum"),
    "bmm": ("bmm", "matmul", "einsum"),
    "pow": ("pow", "square"),
    "acos": ("acos", "arccos"),
    "asin": ("asin", "arcsin"),
    "clamp": ("clamp", "clip"),
    "clamp_min": ("clamp", "clip", "clamp_min"),
    "clamp_max": ("clamp", "clip", "clamp_max"),
    "to_copy": ("to", "half", "float", "type"),
}
"""Function → the names of the functions that call it."""
_SCALE = "scale"
"""The method of a GradScaler that multiplies a loss, in the place of the name of an op."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.Lambda, ast.BoolOp, ast.comprehension)
_NOT_TORCH = ("math", "np", "numpy")


class _Use(NamedTuple):
    """A piece of code that can have made a node."""

    place: CodePlace
    region: Region | None
    """The lines that it is in; None in a hook."""
    runs_once: bool
    """Whether it runs once where its function does: it is in no loop and no branch."""
    has_number: bool
    """Whether it computes with a number that is written there, so that the node has one input."""


def find_op_line(trace: TraceData, nodes: Iterable[int]) -> CodePlace | None:
    """Return the line of the code that made the first of some nodes for which only one line can have."""
    places = (list_op_lines(trace, node) for node in nodes)
    return next((found[0] for found in places if len(found) == 1), None)


def find_backward_line(trace: TraceData, pass_id: int, node: int) -> CodePlace | None:
    """Return the line of the only ``return`` in the backward of a Function, else the first line of that."""
    place = find_backward(trace, pass_id, node)
    if place is None:
        return None
    for _source, tree in iter_file_trees(trace, place.file):
        for function in (part for part in ast.walk(tree) if isinstance(part, FUNCTIONS)):
            first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
            returns = [part for part in ast.walk(function) if isinstance(part, ast.Return)]
            if first == place.line and len(returns) == 1:
                return CodePlace(place.file, returns[0].lineno)
    return place


def list_op_lines(trace: TraceData, node: int) -> list[CodePlace]:
    """List the lines that can have made a node: of the forward that made it and its hooks, or of the code around."""
    code, call = CallCode(trace), trace.owners.get(node)
    scales = call is None and any(node in row.at for row in trace.scales)
    op = _SCALE if scales else trace.ops[node]
    uses = [use for region in list_regions(code, node) for use in _list_uses(code, region, op, call is None)]
    uses = [use for use in uses if not _has_no_graph(code, use)]
    uses += [] if call is None else _list_in_hooks(trace, call, trace.ops[node])
    made = _list_alike(trace, node)
    if _count_inputs(trace, node) > 1 and any(use.has_number for use in uses):
        uses = [use for use in uses if not use.has_number]
        made = [other for other in made if _count_inputs(trace, other) > 1]
    paired = _pair(node, made, uses)
    forward = None if call is None else code.find_forward(trace.calls[call].module)
    if paired is None and forward is not None:
        uses = _narrow(code, node, uses, forward)
    return sorted(
        {use.place for use in ([paired] if paired else uses)}, key=lambda place: (place.file or "", place.line)
    )


def list_regions(code: CallCode, node: int) -> list[Region]:
    """List the code that can have made a node: the forward of its module, what that calls; or what is around a pass."""
    call = code.trace.owners.get(node)
    if call is None:
        return code.list_around_pass()
    forward = code.find_forward(code.trace.calls[call].module)
    return [] if forward is None else code.follow([forward.region])


def _list_uses(code: CallCode, region: Region, op: str, outside: bool) -> Iterator[_Use]:
    """Yield each use of a function in some lines, in the order of evaluation; ``outside``: but for those in a forward.

    The loop in which the pass begins runs once in a pass.
    """
    source, begins = code.trace.sources[region[0]], code.pass_line if outside else None
    is_here = begins is not None and code.place_of(begins).file == source.file
    start = begins.line if begins is not None and is_here else 0
    for part, runs_once in _walk(parse_row(source), outside, start):
        line = getattr(part, "lineno", 0)
        if region[1].contain(line) and _is_use(part, op):
            yield _Use(CodePlace(source.file, line), region, runs_once, _has_number(part))


def _has_no_graph(code: CallCode, use: _Use) -> bool:
    """Whether a piece of code runs in ``torch.no_grad``, so that it made no node."""
    source = None if use.region is None else code.trace.sources[use.region[0]]
    return source is not None and find_switch(parse_row(source), use.place.line, "no_grad") is not None


def _list_in_hooks(trace: TraceData, call: int, op: str) -> Iterator[_Use]:
    """Yield each use of a function in a hook that ran in the forward of a module call."""
    calls = set(iter_enclosing_calls(trace, call))
    rows = (trace.rows[step] for step in trace.lookup.steps_of_kinds("forward_hook", "forward_pre_hook"))
    hooks = dict.fromkeys(row.hook for row in rows if row.call in calls and row.hook is not None)
    for hook in map(trace.hook_rows.__getitem__, hooks):
        for part, runs_once in _walk(parse_source(hook.text or ""), False, 0) if hook.line is not None else ():
            if _is_use(part, op):
                place = CodePlace(hook.file, part.lineno + (hook.line or 1) - 1)  # type: ignore[attr-defined]
                yield _Use(place, None, runs_once, _has_number(part))


def _walk(scope: ast.AST, outside: bool, start: int, runs_once: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Yield what some code evaluates, in that order, and whether it runs once; not in a loop around line ``start``."""
    children = list(ast.iter_child_nodes(scope))
    if isinstance(scope, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        children.sort(key=lambda child: child is not scope.value)
    for child in children:
        if not (outside and isinstance(child, FUNCTIONS) and child.name == "forward"):
            yield from _walk(child, outside, start, runs_once and not _repeats(child, start))
    yield scope, runs_once


def _repeats(part: ast.AST, start: int) -> bool:
    is_around = isinstance(part, _LOOPS) and part.lineno <= start <= (part.end_lineno or 0)
    return isinstance(part, (*_LOOPS, *_BRANCHES)) and not is_around


def _pair(node: int, made: list[int], uses: list[_Use]) -> _Use | None:
    """Return the use that made a node, if as many nodes were made as there are uses, each of which ran once."""
    is_clear = len(made) == len(uses) and all(use.runs_once for use in uses)
    return uses[made.index(node)] if is_clear and len({use.region for use in uses}) == 1 else None


def _list_alike(trace: TraceData, node: int) -> list[int]:
    """List the nodes that the same function made in the same module call, or outside of all, in order."""
    call = trace.owners.get(node)
    made = trace.lookup.nodes_by_call.get(call, ()) if call is not None else _list_outside(trace, node)
    function = name_function(trace.ops[node])
    return sorted(other for other in made if name_function(trace.ops[other]) == function)


def _count_inputs(trace: TraceData, node: int) -> int:
    return len(trace.lookup.next_nodes.get(node, ()))


def _has_number(part: ast.AST) -> bool:
    return isinstance(part, ast.BinOp) and any(isinstance(one, ast.Constant) for one in (part.left, part.right))


def _list_outside(trace: TraceData, node: int) -> list[int]:
    """List the nodes that were made outside of all modules for the pass in which a node computes."""
    own = next((pass_id for pass_id, other in trace.lookup.compute_steps if other == node), None)
    nodes = (other for pass_id, other in trace.lookup.compute_steps if pass_id == own)
    return [other for other in nodes if other not in trace.owners]


def _narrow(code: CallCode, node: int, uses: list[_Use], forward: Function) -> list[_Use]:
    """Leave out what comes before a module call that ran earlier in a forward, or after one that ran later."""
    trace, call = code.trace, code.trace.owners[node]
    first, last = 0, None
    for inner, line in code.lines.items():
        made = trace.lookup.nodes_by_call.get(inner, ()) if trace.calls[inner].parent == call else ()
        inside = line.source == forward.source and forward.lines.contain(line.line)
        nodes = [one for one in made if trace.ops[one] != "AccumulateGrad"]
        if nodes and inside:
            first = max(first, line.line) if max(nodes) < node else first
            last = min(last or line.line, line.line) if min(nodes) > node else last
    if last is not None and last < first:  # a loop
        return uses
    own = [use for use in uses if use.region == forward.region]
    out = {use for use in own if use.runs_once and not first <= use.place[1] <= (last or use.place[1])}
    return [use for use in uses if use not in out]


def name_function(op: str) -> str:
    """Return the name of the function that makes a node.

    >>> name_function("LogBackward0"), name_function("LogSoftmaxBackward0")
    ('log', 'log_softmax')
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", re.sub(r"Backward\d*$", "", op)).lower()


def _is_use(part: ast.AST, op: str) -> bool:
    function = name_function(op)
    if isinstance(part, ast.Call):
        names = (function, f"{function}_", *_OTHER_NAMES.get(function, ()))
        is_torch = not _is_builtin(part.func)
        return is_torch and get_last_name(part.func) in names
    operator = _OPERATORS.get(function)
    return operator is not None and isinstance(getattr(part, "op", None), operator)


def _is_builtin(function: ast.expr) -> bool:
    """Return whether code calls Python's ``round``, or a function of a library of numbers."""
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id in _NOT_TORCH
    return isinstance(function, ast.Name) and function.id in ("round", "pow", "float")
