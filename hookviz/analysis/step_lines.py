"""Find for each step the line of the user's code that it belongs to, and say what that line does."""

from typing import NamedTuple

from hookviz.analysis.assignments import read_program
from hookviz.support.messages import N_, _
from hookviz.support.source_code import CodePlace
from hookviz.trace import LineRow, SourceRow, Step, TensorRow, TraceData
from hookviz.trace.traversal import iter_enclosing_calls

_CALL_KINDS = ("call", "forward")
_PASS_KINDS = ("seed", "returned")


class CodeLine(NamedTuple):
    """A place in the user's code."""

    source: int
    """An index of ``StepLines.sources``."""
    line: int | None
    """None if the step is known to belong to this text, but not to which line."""
    note: str
    """What the line does, as a sentence; empty without a line."""


class StepLines:
    """The lines of the steps of one trace."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self.sources = list(trace.sources)
        """The texts: those of the trace, and those of hooks that are defined elsewhere."""
        self._passes = {row.pass_id: row for row in trace.lines if row.pass_id is not None}
        self._calls = {row.call: row for row in trace.lines if row.call is not None}
        self._hooks = {index: self._find_hook(index) for index in trace.lookup.hooks_that_ran}
        self._assigned: dict[tuple[LineRow, str], tuple[int, int] | None] = {}

    def used_lines(self) -> dict[int, set[int]]:
        """Return source → all lines in it that steps can belong to; much fewer than there are steps."""
        found: list[tuple[int, int | None]] = [(row.source, row.line) for row in self._trace.lines]
        found += [(line.source, line.line) for line in self._hooks.values() if line is not None]
        for row in self._trace.tensors:
            start = self._passes.get(row.pass_id)
            found += [place for place in (start and self._assignment(start, row),) if place is not None]
        used: dict[int, set[int]] = {}
        for source, line in found:
            used.setdefault(source, set()).update([] if line is None else [line])
        return used

    def line(self, step: Step) -> CodeLine | None:
        """Return the line of ``step``; the text alone if only that is known, and None if nothing is."""
        found = self._find_line(step)
        if found is not None or not self.sources:
            return found
        row = self._passes.get(step.pass_id)
        return None if row is None else CodeLine(row.source, None, "")

    def place(self, step: Step) -> CodePlace | None:
        """Return the line of ``step`` in its file; None if it is not known."""
        found = self.line(step)
        return None if found is None or found.line is None else CodePlace(self.sources[found.source].file, found.line)

    def running_line(self, step: Step) -> tuple[int, int] | None:
        """Return (source, line) of the line that runs in ``step``; of a node's step, that which started the pass."""
        row = step.row
        if row.hook is not None or row.kind in _CALL_KINDS:
            found = self._find_line(step)
            return None if found is None or found.line is None else (found.source, found.line)
        start = self._passes.get(row.pass_id)
        return None if start is None else (start.source, start.line)

    def making_line(self, step: Step) -> tuple[int, int] | None:
        """Return (source, line) of the line that made the tensor or node that ``step`` is about."""
        row = step.row
        if row.node is None or row.kind in _PASS_KINDS:
            return None
        found = self._node_line(row.pass_id, row.node, row.output)
        return None if found is None or found.line is None else (found.source, found.line)

    def _find_line(self, step: Step) -> CodeLine | None:
        row = step.row
        if row.hook is not None:
            return self._hooks.get(row.hook)
        if row.kind in _CALL_KINDS and row.call is not None:
            return self._call_line(row.call, N_("Line {line} called {name}."))
        if row.kind in _PASS_KINDS:
            start = self._passes.get(row.pass_id)
            return (
                None
                if start is None
                else _say_line(start.source, start.line, N_("Line {line} started this backward pass."))
            )
        return None if row.node is None else self._node_line(row.pass_id, row.node, row.output)

    # -- hooks

    def _find_hook(self, hook: int) -> CodeLine | None:
        """Return the line of a hook that returns, or its first; its source is added unless a text contains it."""
        row = self._trace.hook_rows[hook]
        if row.text is None or row.line is None:
            return None
        name = self._trace.hook(hook).label
        line = row.return_line or row.line
        for index, source in enumerate(self.sources):
            if source.file == row.file and _contains(source, row.line, row.text):
                return _say_line(index, line, N_("Line {line}: the hook {name}."), name=name)
        self.sources.append(SourceRow(row.file, row.line, row.text, False))
        return _say_line(len(self.sources) - 1, line, N_("Line {line}: the hook {name}."), name=name)

    # -- nodes

    def _node_line(self, pass_id: int, node: int, output: int | None) -> CodeLine | None:
        """Return the line that assigned the tensor of a node, else that of the module call that made the node."""
        rows = self._trace.lookup.tensors(pass_id, node)
        row = next((row for row in rows if output is None or row.output == output), None)
        start = self._passes.get(pass_id)
        assigned = None if row is None or start is None else self._assignment(start, row)
        if assigned is not None and row is not None:
            return _say_line(*assigned, N_("Line {line} assigned {name}."), name=row.name)
        owner = self._trace.owners.get(node)
        made = self._trace.ops[node] != "AccumulateGrad"
        return (
            None
            if owner is None
            else self._call_line(
                owner,
                N_("Line {line} called {name}, which made this node.") if made else N_("Line {line} called {name}."),
            )
        )

    def _call_line(self, call: int, text: str) -> CodeLine | None:
        """Return the line that made a module call, else that of the innermost call around it which has one."""
        for outer in iter_enclosing_calls(self._trace, call):
            row = self._calls.get(outer)
            if row is not None:
                return _say_line(row.source, row.line, text, name=self._trace.call(outer))
        return None

    def _assignment(self, start: LineRow, row: TensorRow) -> tuple[int, int] | None:
        """Return (source, line) of the only assignment that can have given the tensor its name."""
        key = (start._replace(pass_id=None), row.name)
        if key not in self._assigned:
            self._assigned[key] = self._find_assignment(start, row.name) if row.name.isidentifier() else None
        return self._assigned[key]

    def _find_assignment(self, start: LineRow, name: str) -> tuple[int, int] | None:
        """Return (source, line) of the assignment to ``name`` that the pass at ``start`` sees, if it is certain."""
        cells = dict(start.names)
        cell = cells.get(name, start.source)
        source = self._trace.sources[start.source]
        program = read_program(source.text)
        if program is None or cell is None:
            return None
        running = start.line - source.line + 1
        scope = program.local_scope(running, name)
        if scope is not None:
            known_outside = name in cells or not source.whole
            line = program.local_assignment(name, running, scope, known_outside=known_outside)
            return None if line is None else (start.source, line + source.line - 1)
        program = read_program(self._trace.sources[cell].text)
        if program is None or not source.whole:  # the rest of the file is not known
            return None
        has_run = cell != start.source or program.is_in_function(running)
        line = program.module_assignment(name, before=None if has_run else running)
        return None if line is None else (cell, line + self._trace.sources[cell].line - 1)


def _say_line(source: int, line: int, text: str, **arguments: str) -> CodeLine:
    return CodeLine(source, line, _(text).format(line=line, **arguments))


def _contains(source: SourceRow, line: int, text: str) -> bool:
    """Whether ``text`` stands at ``line`` of ``source``; blanks at the ends of lines do not count."""
    first = line - source.line
    own = [one.strip() for one in text.splitlines()]
    return first >= 0 and [one.strip() for one in source.text.splitlines()[first : first + len(own)]] == own
