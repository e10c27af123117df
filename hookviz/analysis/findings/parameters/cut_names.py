"""Names what cut the graph between two module calls, for a picture: ``detach, line 24``."""

import ast
import re
from collections.abc import Sequence
from functools import cached_property

from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.parameters.cutting_code import (
    Lines,
    find_innermost,
    find_lines,
    list_cutting_code,
    parse_source,
)
from hookviz.analysis.findings.parameters.graph_switches import GraphSwitches
from hookviz.support.messages import _
from hookviz.trace import LineRow, SourceRow, TraceData
from hookviz.trace.traversal import iter_enclosing_calls

MODES_THAT_CUT = ("no_grad", "inference")
"""The modes of a call in which torch records no graph, because the program says so."""
_MODE_NAMES = {"no_grad": "no_grad", "inference": "inference_mode"}
_SHARING_OP = re.compile(r"\.(detach_?)\(\)|(\.data)\b")
"""The ops that cut and return a tensor with the same memory."""


class CutNames:
    """Names cuts between the module calls of one trace."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace

    @cached_property
    def _code(self) -> CallCode:
        return CallCode(self._trace)

    @cached_property
    def _switches(self) -> GraphSwitches:
        return GraphSwitches(self._code)

    def name(self, source: int, taker: int) -> str:
        """Name what cut off the output of ``source`` before ``taker`` got it; ``cut`` if the code does not say."""
        cut = dict(self._trace.calls[taker].cuts).get(source)
        if cut is not None:
            row = self._trace.cut_rows[cut]
            op = _MODE_NAMES.get(row.kind, row.op)
            return op if row.line is None else _name_with_line(op, row.line)
        is_mode = self._trace.calls[source].mode in MODES_THAT_CUT
        return self._name_mode(source) if is_mode else self._name_op(source, taker)

    def _name_op(self, source: int, taker: int) -> str:
        start, end = self._find_line(source), self._find_line(taker)
        if start is None or end is None:
            return _("cut")
        row = self._trace.sources[end.source]
        statement = _find_statement(row, end.line)
        ops = _list_sharing_ops(row, statement)
        if not ops and start.source == end.source:
            between = find_lines(row.text, row.line, start.line, end.line)
            ops = _list_sharing_ops(row, Lines(between.first, max(between.last, statement.last)))
        if len({name for name, _line in ops}) != 1:
            return _("cut")
        name, line = ops[0]
        return _name_with_line(name, line) if len(ops) == 1 else name

    def _name_mode(self, call: int) -> str:
        """Name the mode in which a call ran without a graph, with the line that switched it on."""
        mode = self._trace.calls[call].mode
        switches = (self._switches.find(outer, mode) for outer in iter_enclosing_calls(self._trace, call))
        switch = next((one for one in switches if one is not None), None)
        return _MODE_NAMES[mode] if switch is None else _name_with_line(_MODE_NAMES[mode], switch[0].line)

    def _find_line(self, call: int) -> LineRow | None:
        """Return the line that made a call, or the innermost call around it that the program itself made."""
        lines = self._code.lines
        return next((lines[outer] for outer in iter_enclosing_calls(self._trace, call) if outer in lines), None)


def _name_with_line(name: str, line: int) -> str:
    return _("{op}, line {line}").format(op=name, line=line)


def _list_sharing_ops(row: SourceRow, lines: Lines) -> Sequence[tuple[str, int]]:
    """List (name, line) of the ops in some lines of a source that cut and share the memory."""
    code = [(one.line, _SHARING_OP.findall(one.text)) for one in list_cutting_code(row.text, row.line, lines)]
    return [(method or attribute, line) for line, ops in code for method, attribute in ops]


def _find_statement(row: SourceRow, line: int) -> Lines:
    """Return the lines of the innermost statement around a line of a source."""
    shift = row.line - 1
    statement = find_innermost(parse_source(row.text), (ast.stmt,), line - shift)
    own = None if statement is None else Lines(statement.lineno, statement.end_lineno or 0)
    return Lines(line, line) if own is None else own.shift(shift)
