"""Tells which code of a program ran, may have been left out, or ran only before the passes."""

import ast
import re
from functools import cached_property, lru_cache

from hookviz.analysis.findings.parameters.cutting_code import (
    KNOWN_CALLS,
    TENSOR_METHODS,
    covers,
    find_function,
    get_last_name,
    parse_row,
)
from hookviz.analysis.findings.parameters.program_functions import Function, ProgramFunctions, Site
from hookviz.support.definitions import LOOPS
from hookviz.support.source_code import CodePlace, read_place
from hookviz.trace import TraceData

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_CHOICES = (ast.IfExp, ast.BoolOp, ast.Match, ast.ExceptHandler)


def may_be_left_out(scope: ast.AST, node: ast.AST) -> bool:
    """Whether code in a function may not have run: a condition decides, or a statement before it may leave its loop.

    Conditions that only ask whether there is a gradient decide nothing, nor the one that begins a script.

    >>> scope = ast.parse('''
    ... def train(rows, dry):
    ...     for row in rows:
    ...         if row.grad is None:
    ...             continue
    ...         first(row)
    ...         if dry:
    ...             continue
    ...         second(row)
    ... ''').body[0]
    >>> calls = [node for node in ast.walk(scope) if isinstance(node, ast.Call)]
    >>> [may_be_left_out(scope, call) for call in calls]
    [False, True]
    """
    parents, leaving = _read_scope(scope)
    if _is_chosen(scope, node, parents):
        return True
    around = _list_around(node, parents)
    line = getattr(node, "lineno", 0)
    return any(one.lineno < line and _leaves(one, scope, around, parents) for one in leaving)


@lru_cache(maxsize=4)  # the scope of a script is all of its text, with many calls to ask about
def _read_scope(scope: ast.AST) -> tuple[dict[int, ast.AST], list[ast.stmt]]:
    """Return what is around each part of a function, by the id of the part, and what leaves a loop or the function."""
    parents, leaving = dict[int, ast.AST](), list[ast.stmt]()
    for outer in ast.walk(scope):
        parents.update((id(inner), outer) for inner in ast.iter_child_nodes(outer))
        if isinstance(outer, ast.Continue | ast.Break | ast.Return):
            leaving.append(outer)
    return parents, leaving


def _is_chosen(scope: ast.AST, node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """Whether a condition between a function and a part of it decides if that runs, or another function does."""
    inner = node
    while inner is not scope and id(inner) in parents:
        outer = parents[id(inner)]
        is_branch = isinstance(outer, ast.If) and inner is not outer.test and not _asks_for_gradient(outer)
        if is_branch or isinstance(outer, _CHOICES) or (outer is not scope and isinstance(outer, _FUNCTIONS)):
            return True
        inner = outer
    return False


def _asks_for_gradient(statement: ast.If) -> bool:
    text = ast.unparse(statement.test)
    return "grad" in text or "__name__" in text


def _list_around(node: ast.AST, parents: dict[int, ast.AST]) -> list[ast.AST]:
    """List what lies around a part of a text, from the inside out."""
    around = []
    while id(node) in parents:
        node = parents[id(node)]
        around.append(node)
    return around


def _leaves(statement: ast.stmt, scope: ast.AST, around: list[ast.AST], parents: dict[int, ast.AST]) -> bool:
    """Whether a statement skips what comes after it in one of the loops, or in the function, that are around a part."""
    outside = _list_around(statement, parents)
    inside = outside[: outside.index(scope)] if scope in outside else outside
    if any(isinstance(one, _FUNCTIONS) for one in inside):
        return False
    loop = next((one for one in outside if isinstance(one, _LOOPS)), None)
    is_own = isinstance(statement, ast.Return) or loop in around
    return is_own and not any(isinstance(one, ast.If) and _asks_for_gradient(one) for one in outside[:1])


class Execution:
    """What recorded lines and the text of a program say of which code ran, and when."""

    def __init__(self, trace: TraceData) -> None:
        self._trace, self._sources = trace, trace.sources
        self.functions = ProgramFunctions(trace.sources)

    def has_run(self, source: int, node: ast.expr | ast.stmt) -> bool:
        """Whether a part of a source ran for sure; after an exception it may not have."""
        function = self.functions.find_around(source, node.lineno)
        row = self._sources[source]
        has_begun = row.whole and "__name__" not in row.text if function is None else function in self._ran
        has_ended = not self._trace.lookup.steps_of_kinds("exception")
        return has_begun and has_ended and not self._may_be_left_out(source, node)

    def may_have_run(self, place: CodePlace) -> bool:
        """Whether a line may have run: not so in a function that the whole program names only where it defines it."""
        site = self._find_site(place)
        function = None if site is None else self.functions.find_around(*site)
        if function is None or function in self._ran or not all(row.whole for row in self._sources):
            return True
        name = function.name.rpartition(".")[2]
        name = function.owner if name.startswith("__") else name
        return name == "forward" or sum(len(re.findall(rf"\b{name}\b", row.text)) for row in self._sources) > 1

    @cached_property
    def _ran(self) -> set[Function]:
        """The functions that ran: a recorded line is in them, or one of these calls them in any case."""
        around = (self.functions.find_around(*site) for site in self._list_recorded())
        found = [function for function in dict.fromkeys(around) if function is not None]
        for function in found:  # grows meanwhile
            found += [called for called in self._list_called(function) if called not in found]
        return set(found)

    def _list_recorded(self) -> list[Site]:
        """List the recorded lines: they call modules, start passes, make optimizers or take their steps."""
        trace = self._trace
        texts = [row.taken_at for row in trace.updates] + [row.made_at for row in trace.groups]
        sites = (self._find_site(read_place(text)) for text in dict.fromkeys(texts))
        return [*((row.source, row.line) for row in trace.lines), *(site for site in sites if site is not None)]

    def _list_called(self, function: Function) -> list[Function]:
        """List the functions that a function calls in any case."""
        source, find_around = function.source, self.functions.find_around
        nodes = (node for node in ast.walk(parse_row(self._sources[source])) if isinstance(node, ast.Call))
        calls = (node for node in nodes if find_around(source, node.lineno) == function)
        own = (call for call in calls if not _may_be_of_torch(call) and not self._may_be_left_out(source, call))
        found = (self.functions.find_called(call) for call in own)
        return list(dict.fromkeys(called for called in found if called is not None))

    def _may_be_left_out(self, source: int, node: ast.expr | ast.stmt) -> bool:
        tree = parse_row(self._sources[source])
        return may_be_left_out(find_function(tree, node.lineno), node)

    def _find_site(self, place: CodePlace | None) -> Site | None:
        """Return the source and the line of a place; None if its text is not known."""
        found = (
            (index, place.line)
            for index, row in enumerate(self._sources)
            if place is not None and row.file == place.file and 0 <= place.line - row.line <= row.text.count("\n")
        )
        return next(found, None)

    # -- before the passes

    def comes_before_passes(self, site: Site, inner: tuple[Function, ...] = ()) -> bool:
        """Whether a line runs only before the first pass: it, or each call of its function, stands in front of that."""
        function = self.functions.find_around(*site)
        leads = [lead for lead in self._leads if self._is_in(lead, site[0], function)]
        if leads:
            is_making = bool(inner) and inner[-1].name == "self.__init__"  # as in ``Trainer(model).fit()``
            return site[1] < min(map(self._find_start, leads)) + is_making and not self._repeats(function)
        if function is None or function in inner:
            return True
        calls = self.functions.list_all_calls(function)
        return bool(calls) and all(self.comes_before_passes(call, (*inner, function)) for call in calls)

    @cached_property
    def _leads(self) -> set[Site]:
        """The lines that start passes, and those that call the functions around them, and so on."""
        starts = {(row.source, row.line) for row in self._trace.lines if row.pass_id is not None}
        around = {function for site in starts if (function := self.functions.find_around(*site)) is not None}
        return starts.union(*(self.functions.list_lines_of_calls(function) for function in around))

    def leads_to_pass(self, function: Function) -> bool:
        """Whether a function starts a pass, or calls one that does."""
        return any(self._is_in(lead, function.source, function) for lead in self._leads)

    def find_helper_call(self, place: CodePlace) -> CodePlace | None:
        """Return the only line that calls the function around a line; None if that leads to passes itself."""
        site = self._find_site(place)
        function = None if site is None else self.functions.find_around(*site)
        if function is None or self.leads_to_pass(function):
            return None
        calls = self.functions.list_all_calls(function)
        return CodePlace(self._sources[calls[0][0]].file, calls[0][1]) if len(calls) == 1 else None

    def _is_in(self, site: Site, source: int, function: Function | None) -> bool:
        is_same_file = self._sources[site[0]].file == self._sources[source].file
        return is_same_file and self.functions.find_around(*site) == function

    def _repeats(self, function: Function | None, inner: tuple[Function, ...] = ()) -> bool:
        """Whether a loop calls a function, or one that calls it."""
        if function is None or function in inner:
            return False
        calls = self.functions.list_all_calls(function)
        callers = (self.functions.find_around(*call) for call in calls)
        return any(map(self._list_loops, calls)) or any(self._repeats(one, (*inner, function)) for one in callers)

    def _find_start(self, site: Site) -> int:
        """Return the first line of the outermost loop around a line in its function; the line itself without one."""
        return min([site[1], *self._list_loops(site)])

    def _list_loops(self, site: Site) -> list[int]:
        """List the first lines of the loops around a line in its function."""
        tree, function = parse_row(self._sources[site[0]]), self.functions.find_around(*site)
        loops = (node for node in ast.walk(tree) if isinstance(node, LOOPS))
        start = 0 if function is None else function.lines.first
        return [loop.lineno for loop in loops if start <= loop.lineno and covers(loop, site[1])]


def _may_be_of_torch(call: ast.Call) -> bool:
    """Whether a call may be that of a method of torch, such as ``optimizer.step()``, and not of one of the program."""
    function = call.func
    is_foreign = isinstance(function, ast.Attribute) and ast.unparse(function.value) != "self"
    return is_foreign and get_last_name(function) in KNOWN_CALLS | TENSOR_METHODS
