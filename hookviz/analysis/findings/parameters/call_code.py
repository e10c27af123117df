"""The code of the program around the module calls of a trace: who made a call, and what can cut the graph there."""

from collections.abc import Iterable
from functools import cached_property

from hookviz.analysis.findings.parameters.cutting_code import (
    CuttingCode,
    find_cutting_code,
    find_cutting_code_around,
    find_other_call,
)
from hookviz.support.messages import _
from hookviz.support.source_code import describe_place
from hookviz.trace import LineRow, TraceData
from hookviz.trace.traversal import iter_enclosing_calls

FileCode = tuple[str | None, CuttingCode]
"""A file, and a piece of code in it that can cut."""


class CallCode:
    """Finds the code around the calls of one trace."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.lines = {row.call: row for row in trace.lines if row.call is not None}
        """Call → the line that made it."""

    @cached_property
    def pass_line(self) -> LineRow | None:
        """The line at which the last pass began, if it is known."""
        return next((row for row in reversed(self.trace.lines) if row.pass_id is not None), None)

    def file_of(self, line: LineRow) -> str | None:
        """Return the file of a line."""
        return self.trace.sources[line.source].file

    def called_at(self, call: int) -> list[str]:
        """Return the sentence that says where a call was made, if that is known."""
        line = self.lines.get(call)
        if line is None:
            return []
        where = describe_place(self.file_of(line), line.line)
        return [_("{on} was called at {where}.").format(on=self.trace.plain_call(call), where=where)]

    def list_after(self, call: int, until: LineRow | None, root: str, others: Iterable[int] = ()) -> list[FileCode]:
        """List the code that can cut after a call, up to a line in the same function or to its end.

        To read ``root``, the loss, as in ``loss.item()``, cuts nothing. ``others`` are other calls that got the same
        numbers: what is cut in a line that makes one of them is cut for that call.
        """
        start = self.lines.get(call)
        if start is None:
            return []
        source = self.trace.sources[start.source]
        found = find_cutting_code(source.text, source.line, start.line, _line_in(start, until))
        lines = {self.lines[other].line for other in others if other in self.lines}
        lines -= set() if until is None else {until.line}
        code = [(source.file, one) for one in found if not one.text.startswith(f"{root}.") and one.line not in lines]
        return [*code, *self._list_in_hooks(call)]

    def find_other_call(self, call: int, until: LineRow | None) -> str:
        """Return a function that the code after a call calls and that was not followed; empty if there is none."""
        start = self.lines.get(call)
        if start is None:
            return ""
        source = self.trace.sources[start.source]
        modules: dict[int, set[str]] = {}
        for other, line in self.lines.items():
            if line.source == start.source:
                modules.setdefault(line.line, set()).add(self.trace.plain_call(other).rpartition(".")[2])
        return find_other_call(source.text, source.line, start.line, _line_in(start, until), modules)

    def list_inside(self, call: int) -> list[FileCode]:
        """List the code that can cut in the forward of a call, of which a line is known if it calls a module."""
        calls = self.trace.calls
        line = next((line for inner, line in self.lines.items() if calls[inner].parent == call), None)
        if line is None:
            return []
        source = self.trace.sources[line.source]
        return [(source.file, one) for one in find_cutting_code_around(source.text, source.line, line.line)]

    def _list_in_hooks(self, call: int) -> list[FileCode]:
        """List the code that can cut in forward hooks of the outermost module around a call, and of modules in it."""
        outermost = list(iter_enclosing_calls(self.trace, call))[-1]
        rows = [self.trace.rows[step] for step in self.trace.lookup.steps_of_kinds("forward_hook")]
        near = [row for row in rows if outermost in iter_enclosing_calls(self.trace, row.call)]
        found: dict[FileCode, None] = {}
        for index in dict.fromkeys(row.hook for row in near if row.hook is not None):
            hook = self.trace.hook_rows[index]
            for one in find_cutting_code(hook.text or "", hook.line or 1, hook.line or 1, None):
                found.setdefault((hook.file, one))
        return list(found)


def _line_in(start: LineRow, until: LineRow | None) -> int | None:
    """Return the number of a line, if it is in the source of another one."""
    return until.line if until is not None and until.source == start.source else None


def describe_code(code: list[FileCode], other: str = "") -> str:
    """Name the code that can cut the graph, all of it or the first of several, and a function that may cut as well."""
    file, first = code[0]
    names = {"where": describe_place(file, first.line), "code": first.text, "count": len(code), "other": other}
    if other:
        text = _("Code there that can cut the graph: {code} ({where}). What {other}() does was not looked into.")
    elif len(code) == 1:
        text = _("The only code there that can cut the graph: {code} ({where}).")
    else:
        text = _("{count} pieces of code there can cut the graph; the first: {code} ({where}).")
    return text.format(**names)
