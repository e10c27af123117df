"""The code of the program around the module calls of a trace: who made a call, and what can cut the graph there."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from hookviz.analysis.findings.parameters.cutting_code import (
    FOLLOWED_METHODS,
    FUNCTIONS,
    UNSEEN,
    CuttingCode,
    Lines,
    find_cutting_code,
    find_innermost,
    find_lines,
    get_last_name,
    iter_nodes,
    list_cutting_code,
    list_other_calls,
    parse_row,
    reaches_unnamed,
    uses_attribute,
)
from hookviz.analysis.findings.parameters.program_functions import Function, ProgramFunctions, Region
from hookviz.support.messages import _, join_first, join_sentences
from hookviz.support.source_code import CodePlace, read_place
from hookviz.trace import LineRow, SourceRow, TraceData
from hookviz.trace.traversal import iter_enclosing_calls

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
"""Statements that contain no others."""


class Reading(NamedTuple):
    """What was found in code that may cut."""

    code: Sequence[CuttingCode] = ()
    other: str = ""
    """A function that the code calls and whose text was not recorded; empty if there is none."""


class _RecordedLines:
    """The lines that are known to have run, and which code these rule out."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self._op_lines = {(row.source, row.line) for row in trace.lines if row.pass_id is None and row.call is None}
        facts = {note.fact for note in trace.remarks}
        hidden = facts & {"elsewhere", "elsewhere.calls"} or trace.lookup.steps_of_kinds("unobserved", "compiled")
        self._is_whole = not (hidden or trace.dropped)
        self._follows_ops = "cuts" in facts

    @cached_property
    def modules(self) -> dict[int, dict[int, set[str]]]:
        """Source → line of it → the last names of the modules that were called there."""
        modules: dict[int, dict[int, set[str]]] = {}
        for row in self._trace.lines:
            if row.call is not None:
                name = self._trace.plain_call(row.call).rpartition(".")[2]
                modules.setdefault(row.source, {}).setdefault(row.line, set()).add(name)
        return modules

    def rules_out(self, source: int, piece: CuttingCode) -> bool:
        """Return whether a piece of code is known not to have run: an op in it, or a call before it, was not seen."""
        tree, line = parse_row(self._trace.sources[source]), piece.place.line
        nodes = (node for node in iter_nodes(tree, Lines(line, line)) if isinstance(node, ast.expr))
        node = next((node for node in nodes if ast.unparse(node) == piece.text), None)
        if node is None or not self._is_whole:
            return False
        return self._lacks_op(source, node) or self._lacks_call(source, tree, node)

    def _lacks_op(self, source: int, node: ast.expr) -> bool:
        """Return whether code would run a method that is followed, and no line of it did."""
        calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
        methods = (call.func for call in calls if isinstance(call.func, ast.Attribute))
        is_seen = any((source, line) in self._op_lines for line in _list_lines(node))
        is_followed = self._follows_ops and any(method.attr in FOLLOWED_METHODS for method in methods)
        return is_followed and not is_seen and not _may_skip(node)

    def _lacks_call(self, source: int, tree: ast.Module, node: ast.expr) -> bool:
        """Return whether a module call did not run that comes before code, or around it, in a branch of an ``if``."""
        modules = self.modules.get(source, {})
        function = find_innermost(tree, FUNCTIONS, node.lineno)
        calls = [] if function is None else [part for part in ast.walk(function) if isinstance(part, ast.Call)]

        def has_run(part: ast.stmt | ast.expr, call: ast.Call) -> bool:
            name = get_last_name(call.func)
            return any(name in modules.get(line, ()) for line in _list_lines(part))

        made = {ast.unparse(call.func) for call in calls if has_run(call, call)}
        for statement in [] if function is None or not made else _list_before(function, node):
            inside = (part for part in ast.walk(statement) if isinstance(part, ast.Call))
            if any(ast.unparse(call.func) in made and not has_run(statement, call) for call in inside):
                return True
        return False


def _list_lines(node: ast.expr | ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _list_before(function: ast.AST, node: ast.expr) -> Iterator[ast.stmt]:
    """Yield the statements that run whenever a piece of code does: before it or around it in a branch of an ``if``."""
    for branch in (part for part in ast.walk(function) if isinstance(part, ast.If)):
        for block in (branch.body, branch.orelse):
            if block and block[0].lineno <= node.lineno <= (block[-1].end_lineno or 0):
                before = (one for one in block if one.lineno <= node.lineno and isinstance(one, _SIMPLE))
                yield from (one for one in before if not _may_skip(one))


def _may_skip(part: ast.AST) -> bool:
    """Return whether some of a part may not run although its line does."""
    return any(isinstance(one, (*UNSEEN, ast.IfExp)) for one in ast.walk(part))


class CallCode:
    """Finds the code around the calls of one trace."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.lines = {row.call: row for row in trace.lines if row.call is not None}
        """Call → the line that made it."""
        self._recorded = _RecordedLines(trace)

    @cached_property
    def pass_line(self) -> LineRow | None:
        """The line at which the last pass began, if it is known."""
        return next((row for row in reversed(self.trace.lines) if row.pass_id is not None), None)

    def place_of(self, line: LineRow) -> CodePlace:
        """Return the place of a line."""
        return CodePlace(self.trace.sources[line.source].file, line.line)

    def called_at(self, call: int) -> list[str]:
        """Return the sentence that says where a call was made, if that is known."""
        line = self.lines.get(call)
        if line is None:
            return []
        where = self.place_of(line).where
        return [_("{on} was called at {where}.").format(on=self.trace.plain_call(call), where=where)]

    def read_after(
        self, path: tuple[int, int], until: LineRow | None, root: str, others: Iterable[int] = ()
    ) -> Reading:
        """Read the code after the last call of a path, up to a line or to the end of the function that calls.

        To read ``root``, the loss, as in ``loss.item()`` or ``float(loss)``, cuts nothing. ``others`` are other calls
        that got the same numbers: what is cut in a line that makes one of them is cut for that call.
        """
        regions = self._find_regions(path[-1], until)
        if not regions and until is not None and until.call is None:
            regions = self._find_regions(path[-1], None)  # a pass begins elsewhere: the code up to here is known
        if not regions:
            return Reading()
        reading = self.read(regions)
        used = {self.place_of(self.lines[other]) for other in others if other in self.lines}
        used -= set() if until is None else {self.place_of(until)}
        code = [one for one in reading.code if one.place not in used]
        code = [one for one in code if not one.text.startswith((f"{root}.", f"float({root}"))]
        code = [one for one in code if not self._is_about_parameter(one.text)]
        return reading._replace(code=[*code, *self._list_in_hooks(path)])

    def _is_about_parameter(self, text: str) -> bool:
        """Return whether code cuts off a parameter alone, which is not on the way of what a call returned."""
        attribute = re.match(r"self\.(\w+)", text)
        return attribute is not None and attribute[1] in self._parameters

    @cached_property
    def _parameters(self) -> set[str]:
        """The attributes that hold parameters."""
        names = [name for row in self.trace.parameters for name in row.names]
        return {name.rpartition(".")[2] for name in (*names, *(row.name for row in self.trace.missing_rows))}

    def read_inside(self, call: int) -> Reading:
        """Read the code of the forward of a call."""
        forward = self.find_forward(self.trace.calls[call].module)
        return Reading() if forward is None else self.read([forward.region])

    def is_about(self, code: CuttingCode, region: Region, expression: str) -> bool:
        """Return whether code uses an expression of some lines, itself or as an argument of a function."""
        if re.search(rf"\b{re.escape(expression)}\b", code.text):
            return True
        return any(
            function.file == code.place.file
            and function.lines.contain(code.place.line)
            and re.search(rf"\b{re.escape(name)}\b", code.text)
            for function, name in self.functions.list_receivers(*region, expression)
        )

    def find_forward(self, module: int) -> Function | None:
        """Return the forward of a module; None if it is unclear or was not recorded."""
        own = self.trace.modules[module].forward
        if own is not None:
            return self.functions.find_at(read_place(own))
        parents = ((self.trace.calls[call].parent, line) for call, line in self.lines.items())
        callers = (line for call, line in parents if call is not None and self.trace.calls[call].module == module)
        around = (self.functions.find_around(line.source, line.line) for line in callers)
        forwards = (one for one in around if one is not None and one.name.endswith("forward"))
        return next(forwards, None) or self.functions.find_method(self.trace.modules[module].kind, "forward")

    @cached_property
    def functions(self) -> ProgramFunctions:
        """The functions in the recorded text."""
        return ProgramFunctions(self.trace.sources)

    def _find_regions(self, call: int, until: LineRow | None) -> list[Region]:
        """Return the lines that may run between a call and a line; none if it is unclear how one leads to the other."""
        starts = [self.lines[one] for one in iter_enclosing_calls(self.trace, call) if one in self.lines]
        if until is None:
            return self._find_rest(call, starts[0]) if call in self.lines else []
        inner = self.functions.find_around(until.source, until.line)
        for position, start in enumerate(starts):
            if start.source == until.source and self.functions.find_around(start.source, start.line) == inner:
                passed = [self._rest_of(one) for one in starts[:position]]
                tree = parse_row(self.trace.sources[start.source])
                return [*passed, (start.source, find_lines(tree, start.line, until.line))]
        return self._find_regions_by_name(starts[0], until, inner) if starts else []

    def _find_rest(self, call: int, start: LineRow) -> list[Region]:
        """Return the lines to the end of the function that calls, and from there to the end of the forward."""
        rest, parent = [self._rest_of(start)], self.trace.calls[call].parent
        function = self.functions.find_around(start.source, start.line)
        forward = None if parent is None else self.find_forward(self.trace.calls[parent].module)
        if function is None or forward is None or function == forward:
            return rest
        calls = self.functions.list_calls(*forward.region, function)
        return [*rest, (forward.source, Lines(calls[0], forward.lines.last))] if calls else rest

    def _find_regions_by_name(self, start: LineRow, until: LineRow, inner: Function | None) -> list[Region]:
        """Return the lines between two lines if the function around one of them calls that around the other."""
        rest = self._rest_of(start)
        entries = [] if inner is None else self.functions.list_calls(*rest, inner)
        if inner is not None and entries:
            before = Lines(inner.lines.first, until.line)
            return [(start.source, Lines(start.line, entries[0])), (until.source, before)]
        outer = self.functions.find_around(start.source, start.line)
        before = Lines(1 if inner is None else inner.lines.first, until.line)
        exits = [] if outer is None else self.functions.list_calls(until.source, before, outer)
        return [rest, (until.source, Lines(exits[-1], until.line))] if exits else []

    def _rest_of(self, start: LineRow) -> Region:
        """Return the lines from one to the end of its function."""
        return start.source, find_lines(parse_row(self.trace.sources[start.source]), start.line, None)

    def read(self, regions: list[Region]) -> Reading:
        """Read some lines, and the functions of the program that they call."""
        code: dict[CuttingCode, None] = {}
        others = list[str]()
        for index, lines in self._walk_regions(regions, others):
            pieces = list_cutting_code(self.trace.sources[index], lines)
            code |= dict.fromkeys(one for one in pieces if not self._recorded.rules_out(index, one))
        return Reading(list(code), next(iter(others), ""))

    def follow(self, regions: list[Region]) -> list[Region]:
        """Return some lines, and those of the functions of the program that they call."""
        return list(self._walk_regions(regions, []))

    def list_around_pass(self) -> list[Region]:
        """Return the lines of the function that began the last pass, of those that call it, and of those they call."""
        line = self.pass_line
        if line is None:
            return []
        function = self.functions.find_around(line.source, line.line)
        if function is None:
            source = self.trace.sources[line.source]
            return [(line.source, Lines(source.line, source.line + source.text.count("\n")))]
        return self.follow([one.region for one in self.functions.list_callers(function)])

    def _walk_regions(self, regions: list[Region], others: list[str]) -> Iterator[Region]:
        """Yield some lines, then those of the functions that they call; ``others`` gets the functions without text."""
        waiting, met = list(regions), set(regions)
        while waiting:
            index, lines = waiting.pop(0)
            yield index, lines
            tree, modules = parse_row(self.trace.sources[index]), self._recorded.modules.get(index, {})
            for name in list_other_calls(tree, lines, modules, self.functions.names):
                function = self.functions.find(name)
                if function is None:
                    others.append(name)
                elif not any(_is_in(one, function) for one in met):
                    met.add(function.region)
                    waiting.append(function.region)

    def _list_in_hooks(self, path: Iterable[int]) -> list[CuttingCode]:
        """List the code that can cut in forward hooks of some calls, and of those around them."""
        calls = {outer for call in path for outer in iter_enclosing_calls(self.trace, call)}
        rows = [self.trace.rows[step] for step in self.trace.lookup.steps_of_kinds("forward_hook")]
        near = [row for row in rows if row.call in calls]
        hooks = dict.fromkeys(row.hook for row in near if row.hook is not None)
        return list(dict.fromkeys(code for hook in hooks for code in self.read_hook(hook)))

    def read_hook(self, index: int) -> list[CuttingCode]:
        """Read the code of a hook."""
        hook = self.trace.hook_rows[index]
        source = SourceRow(hook.file, hook.line or 1, hook.text or "", whole=False)
        return find_cutting_code(source, source.line, None)


def may_use(code: CallCode, forward: Function, attribute: str) -> bool:
    """Return whether the recorded text uses an attribute of anything, or a forward perhaps without naming it.

    To assign it is no use.
    """
    trees = [parse_row(source) for source in code.trace.sources]
    if any(uses_attribute(tree, attribute) for tree in trees):
        return True
    return any(reaches_unnamed(trees[index], lines) for index, lines in code.follow([forward.region]))


def _is_in(region: Region, function: Function) -> bool:
    """Return whether lines belong to those of a function."""
    source, lines = region
    return source == function.source and all(map(function.lines.contain, lines))


def describe_code(reading: Reading) -> str:
    """Name the code that can cut the graph, all of it or the first of several, and a function that may cut as well."""
    named = join_first([f"{one.text} ({one.place.where})" for one in reading.code])
    text = _("Code there that can cut the graph: {code}.").format(code=named)
    more = [_("What {other}() does was not looked into.").format(other=reading.other)] if reading.other else []
    return join_sentences([text, *more])
