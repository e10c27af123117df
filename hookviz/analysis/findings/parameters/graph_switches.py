"""What switched the graph off for a call: code around its line, or a generator or a setting that reaches there."""

import ast
import sys
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.parameters.cutting_code import (
    FUNCTIONS,
    Lines,
    covers,
    find_innermost,
    get_last_name,
    parse_row,
)
from hookviz.analysis.findings.parameters.program_functions import Function
from hookviz.support.source_code import CodePlace

_SWITCHES = {"no_grad": {"no_grad", "set_grad_enabled"}, "inference": {"inference_mode"}}
"""Mode of a call → the functions that switch it on."""
_LOOPS = (ast.For, ast.AsyncFor)
_BLOCKS = (ast.With, ast.AsyncWith)


class Switch(NamedTuple):
    """A place where the graph is switched off."""

    place: CodePlace
    function: str = ""
    """The generator that yields there; empty if the code in question lies inside it."""


class GraphSwitches:
    """Finds what switched the graph off for the calls of one trace."""

    def __init__(self, code: CallCode) -> None:
        self._code, self._sources = code, code.trace.sources
        self._leading: dict[Function, list[tuple[int, int]]] = {}
        """Function → source and line of each call that leads there."""

    def find(self, call: int, mode: str) -> Switch | None:
        """Return what switched a mode on for a call: around its line, or a generator that it gets from.

        None if that is unclear, as where code around a function that leads to the line switches a mode on.
        """
        line = self._code.lines.get(call)
        if line is None:
            return None
        around = self._find_around(line.source, line.line, mode)
        if around is not None:
            return Switch(self._code.place_of(line)._replace(line=around))
        yields = set() if self._is_unclear(call, mode) else set(self._list_yields(call, mode))
        return yields.pop() if len(yields) == 1 else None

    def find_permanent(self, call: int) -> CodePlace | None:
        """Return the only code that switched the graph off until some code switches it on again; None if unclear."""
        if self._is_unclear(call, "no_grad"):
            return None
        lines = {(self._sources[source].file, line) for source, line in self._list_lines(call)}
        found = {
            CodePlace(source.file, span.first)
            for source in self._sources
            for span in _list_permanent_switches(parse_row(source))
            if span.last == sys.maxsize or any(file == source.file and span.contain(line) for file, line in lines)
        }
        return found.pop() if len(found) == 1 else None

    def _list_lines(self, call: int) -> list[tuple[int, int]]:
        """List source and line of a call, and of all calls of the functions that lead there."""
        line = self._code.lines.get(call)
        if line is None:
            return []
        function = self._code.functions.find_around(line.source, line.line)
        if function is not None and function not in self._leading:
            self._leading[function] = self._code.functions.list_lines_of_calls(function)
        return [(line.source, line.line), *([] if function is None else self._leading[function])]

    def _is_unclear(self, call: int, mode: str) -> bool:
        """Return whether code around a call of a function that leads to the line of ``call`` switches a mode on."""
        return any(self._find_around(*place, mode) is not None for place in self._list_lines(call)[1:])

    def _find_around(self, source: int, line: int, mode: str) -> int | None:
        return find_switch(parse_row(self._sources[source]), line, mode)

    def _list_yields(self, call: int, mode: str) -> Iterator[Switch]:
        """Yield the generators from which a loop or a ``with`` around the line of a call gets."""
        places = [(parse_row(self._sources[source]), line) for source, line in self._list_lines(call)]
        givers = set(chain.from_iterable(_list_givers(tree, line) for tree, line in places))
        for function in self._code.functions.every:
            if not givers.isdisjoint({function.node.name, function.owner}):
                lines = _list_yields(function.node, mode)
                yield from (Switch(CodePlace(function.file, line), function.node.name) for line in lines)


def find_switch(tree: ast.AST, line: int, mode: str) -> int | None:
    """Return the line that switches a mode on for a line of a text.

    >>> text = '''with torch.no_grad():
    ...     net(x)
    ... '''
    >>> find_switch(ast.parse(text), 2, "no_grad")
    1
    """
    lines = [_line_of_switch(node, mode) for node in _list_switches(tree, mode) if covers(node, line)]
    return max(lines, default=None)


def _list_givers(tree: ast.AST, line: int) -> set[str]:
    """Return what the loops and ``with`` statements around a line call to get what they give.

    >>> _list_givers(ast.parse("for x in batches(net):\\n    net(x)"), 2)
    {'batches'}
    """
    parts = list[ast.expr]()
    for node in ast.walk(tree):
        if isinstance(node, (*_LOOPS, *_BLOCKS)) and covers(node, line):
            parts += [node.iter] if isinstance(node, _LOOPS) else [item.context_expr for item in node.items]
    return {get_last_name(one.func) for part in parts for one in ast.walk(part) if isinstance(one, ast.Call)}


def _list_yields(function: ast.AST, mode: str) -> list[int]:
    """List the lines where a generator yields inside a mode: it stays on in the code that asks for the next value."""
    return [
        node.lineno
        for statement in _list_switches(function, mode)
        if isinstance(statement, ast.With)
        for node in ast.walk(statement)
        if isinstance(node, ast.Yield)
    ]


def _list_permanent_switches(tree: ast.AST) -> list[Lines]:
    """List the lines of a text that switch the graph off, each with the later line of its function that ends that.

    >>> _list_permanent_switches(ast.parse("torch.set_grad_enabled(False)\\nf()\\ntorch.set_grad_enabled(True)"))
    [Lines(first=1, last=3)]
    """
    nodes = list(ast.walk(tree))
    statements = (node.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    calls = [(call.lineno, _is_off(call)) for call in statements if _name(call) == "set_grad_enabled"]
    inner = {line: find_innermost(tree, FUNCTIONS, line) for line, _ignored in calls}
    ends = {
        line: min((end for end, off in calls if not off and end > line and inner[end] == inner[line]), default=None)
        for line, is_off in calls
        if is_off
    }
    return [Lines(line, sys.maxsize if end is None else end) for line, end in ends.items()]


def _is_off(call: ast.Call) -> bool:
    return any(isinstance(one, ast.Constant) and one.value is False for one in ast.walk(call))


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
