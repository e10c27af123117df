"""Names what cut the graph between two module calls, for a picture: ``detach, line 24``."""

import re
from functools import cached_property

from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.parameters.graph_switches import GraphSwitches
from hookviz.support.messages import _
from hookviz.trace import TraceData
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
        lines = self._code.lines
        end = next((lines[one] for one in iter_enclosing_calls(self._trace, taker) if one in lines), None)
        code = [] if end is None else self._code.read_after((source, source), end, "").code
        found = [(one.place.line, _SHARING_OP.findall(one.text)) for one in code]
        ops = [(method or attribute, line) for line, names in found for method, attribute in names]
        if len({name for name, _line in ops}) != 1:
            return _("cut")
        name, line = ops[0]
        return _name_with_line(name, line) if len(ops) == 1 else name

    def _name_mode(self, call: int) -> str:
        """Name the mode in which a call ran without a graph, with the line that switched it on."""
        mode = self._trace.calls[call].mode
        switches = (self._switches.find(outer, mode) for outer in iter_enclosing_calls(self._trace, call))
        switch = next((one for one in switches if one is not None), None)
        return _MODE_NAMES[mode] if switch is None else _name_with_line(_MODE_NAMES[mode], switch.place.line)


def _name_with_line(name: str, line: int) -> str:
    return _("{op}, line {line}").format(op=name, line=line)
