"""The functions that the recorded text of a program defines, and the calls of them."""

import ast
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hookviz.analysis.findings.parameters.cutting_code import Lines, get_last_name, iter_nodes, parse_row
from hookviz.support.source_code import CodePlace
from hookviz.trace import SourceRow

Site = tuple[int, int]
"""The index of a source, and a line of it."""
Region = tuple[int, Lines]
"""The index of a source, and some lines of it."""


class Function(NamedTuple):
    """A function of the program."""

    file: str | None
    source: int
    """The index of the source that has its text."""
    name: str
    """As code calls it: ``f``, or ``self.f`` for a method."""
    owner: str
    """The name of its class; empty if it is no method."""
    lines: Lines
    """With its decorators."""
    node: ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def place(self) -> CodePlace:
        """Its first line."""
        return CodePlace(self.file, self.lines.first)

    @property
    def region(self) -> Region:
        """Its source and its lines."""
        return self.source, self.lines


class ProgramFunctions:
    """The functions in the recorded text of a program."""

    def __init__(self, sources: Sequence[SourceRow]) -> None:
        self._sources = sources
        found: dict[CodePlace, Function] = {}
        for index, source in enumerate(sources):
            for function in _list_functions(source, index):
                found.setdefault(function.place, function)
        self.every = list(found.values())
        """The functions, each once."""
        names = {function.name for function in self.every}
        imported = (one for source in sources for one in _list_renamed(parse_row(source)))
        self._renamed = {new: name for new, name in imported if name in names and new not in names}
        """The name that an import gives to a function → its own."""
        self.names = names | self._renamed.keys()
        """How code calls them."""

    def find(self, name: str) -> Function | None:
        """Return the function that code calls by a name, such as ``f``, ``self.f`` or ``other.f``; None if unclear."""
        name = self._renamed.get(name, name)
        last = name.rpartition(".")[2]
        found = [function for function in self.every if function.name in (last, f"self.{last}")]
        exact = [function for function in found if function.name == name]
        found = exact if exact else found
        return found[0] if len(found) == 1 else None

    def find_method(self, owner: str, name: str) -> Function | None:
        """Return the method of a class; None if there are several classes with that name, or none."""
        found = [one for one in self.every if one.owner == owner and one.name == f"self.{name}"]
        return found[0] if len(found) == 1 else None

    def find_called(self, call: ast.Call) -> Function | None:
        """Return the function that a call runs, of a class its ``__init__``; None if unclear."""
        return self.find(ast.unparse(call.func)) or self.find_method(get_last_name(call.func), "__init__")

    def find_at(self, place: CodePlace | None) -> Function | None:
        """Return the function that begins at a line."""
        return next((one for one in self.every if one.place == place), None)

    def find_around(self, source: int, line: int) -> Function | None:
        """Return the innermost function around a line of a source."""
        around = self._list_around(self._sources[source].file, line)
        return max(around, key=lambda function: function.lines.first, default=None)

    def _list_around(self, file: str | None, line: int) -> list[Function]:
        return [function for function in self.every if function.file == file and function.lines.contain(line)]

    def list_calls(self, source: int, lines: Lines, function: Function) -> list[int]:
        """Return which of some lines of a source call a function by its name; an ``__init__`` by that of its class."""
        name = function.owner if function.node.name == "__init__" else function.node.name
        nodes = iter_nodes(parse_row(self._sources[source]), lines)
        return sorted(node.lineno for node in nodes if isinstance(node, ast.Call) and get_last_name(node.func) == name)

    def list_all_calls(self, function: Function) -> list[Site]:
        """Return source and line of each call of a function by its name."""
        every = [(index, Lines(row.line, sys.maxsize)) for index, row in enumerate(self._sources)]
        return [(index, line) for index, lines in every for line in self.list_calls(index, lines, function)]

    def list_callers(self, function: Function) -> list[Function]:
        """Return a function, those that call it by its name, those that call these, and so on."""
        found = [function]
        for inner in found:  # grows meanwhile
            for index, line in self.list_all_calls(inner):
                found += [one for one in self._list_around(self._sources[index].file, line) if one not in found]
        return found

    def list_lines_of_calls(self, function: Function) -> list[Site]:
        """Return source and line of each call of a function, of those that call it, and so on."""
        return [site for inner in self.list_callers(function) for site in self.list_all_calls(inner)]

    def list_receivers(self, source: int, lines: Lines, expression: str) -> Iterator[tuple[Function, str]]:
        """Yield each function that some lines call with an expression, and its parameter that receives it."""
        for call in iter_nodes(parse_row(self._sources[source]), lines):
            function = self.find(ast.unparse(call.func)) if isinstance(call, ast.Call) else None
            if isinstance(call, ast.Call) and function is not None:
                yield from ((function, name) for name, value in _pair_arguments(function, call) if value == expression)

    def list_values_of(self, site: Site, expression: str) -> set[str]:
        """List what an expression may stand for: of a parameter, what calls of the function around a line give it."""
        function, found = self.find_around(*site), set[str]()
        if function is None or expression not in _list_parameter_names(function):
            return {expression}
        for row in self._sources:
            for call in ast.walk(parse_row(row)):
                if isinstance(call, ast.Call) and self.find_called(call) == function:
                    found.update(value for name, value in _pair_arguments(function, call) if name == expression)
        return found or {expression}


def _list_parameter_names(function: Function) -> list[str]:
    """List the parameters of a function, of a method without ``self``."""
    names = [one.arg for one in function.node.args.args]
    return names[1:] if function.owner else names


def _pair_arguments(function: Function, call: ast.Call) -> list[tuple[str, str]]:
    """List the parameters of a function that a call names or fills in order, each with the code of what it is given."""
    pairs = [
        *zip(_list_parameter_names(function), call.args, strict=False),
        *((one.arg, one.value) for one in call.keywords),
    ]
    return [(name, ast.unparse(value)) for name, value in pairs if name is not None]


def _list_renamed(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield new and own name of what is imported with ``from module import name as new``."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return ((one.asname, one.name) for node in imports for one in node.names if one.asname is not None)


def _list_functions(source: SourceRow, index: int) -> Iterator[Function]:
    tree = parse_row(source)
    methods = {
        id(node): owner.name for owner in ast.walk(tree) if isinstance(owner, ast.ClassDef) for node in owner.body
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            lines, owner = Lines(first, node.end_lineno or node.lineno), methods.get(id(node), "")
            yield Function(source.file, index, f"self.{node.name}" if owner else node.name, owner, lines, node)
