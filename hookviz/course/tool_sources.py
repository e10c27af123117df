"""The text of a tool with what it needs, and its place in a file of tools."""

import ast
import symtable
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from types import FunctionType, ModuleType
from typing import Any

from hookviz.support.messages import _

NAME = "my_hooks"
"""The module that holds the tools."""
DEFINITION = ast.FunctionDef | ast.ClassDef
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class ToolSource:
    """A function or class, as it stands in a cell or a file."""

    name: str
    """Its name."""
    file_text: str
    """The text of the whole cell or file."""
    node: DEFINITION
    """Its definition in that text."""
    variables: dict[str, Any]
    """The global variables of the program."""
    read: Callable[[Any], "ToolSource"]
    """Finds the source of another function or class of the program."""

    @property
    def text(self) -> str:
        """Its own text, with its decorators."""
        first, last = _line_span(self.node)
        return "\n".join(self.file_text.splitlines()[first - 1 : last])

    def list_needs(self) -> Iterator["ToolSource | str"]:
        """List what it needs of the program: other definitions, and lines such as ``import torch``.

        Raises:
            ValueError: it uses something that cannot be written down, such as a network.
        """
        for name in sorted(_global_names(self.text)):
            if name != self.name and name in self.variables:
                need = self._describe_need(name, self.variables[name])
                if need is not None:
                    yield need

    def _describe_need(self, name: str, value: Any) -> "ToolSource | str | None":
        if isinstance(value, ModuleType):
            return _import_line(value.__name__, name)
        if isinstance(value, _PLAIN):
            return f"{name} = {value!r}"
        module, original = (getattr(value, attribute, "") for attribute in ("__module__", "__name__"))
        if module == NAME:
            return None  # it stands in the same file
        if module in ("", "__main__", self.variables.get("__name__")):
            if isinstance(value, FunctionType | type) and original == name:
                return self.read(value)
        elif getattr(sys.modules.get(module), original, None) is value:
            return f"from {module} import {original}" + ("" if original == name else f" as {name}")
        raise ValueError(
            _(
                "{tool} uses {name}, a variable of this program that it will not have elsewhere. Make it a parameter."
            ).format(tool=self.name, name=name)
        )


def _import_line(module: str, name: str) -> str:
    """The line that imports a module under a name.

    >>> _import_line("torch", "torch"), _import_line("torch.nn", "nn"), _import_line("torch.nn.functional", "F")
    ('import torch', 'from torch import nn', 'import torch.nn.functional as F')
    """
    package, _dot, last = module.rpartition(".")
    if package and last == name:
        return f"from {package} import {name}"
    return f"import {module}" if module == name else f"import {module} as {name}"


def _line_span(node: ast.stmt) -> tuple[int, int]:
    """The first and the last line of a statement, with its decorators."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return first, node.end_lineno or node.lineno


def _global_names(text: str) -> set[str]:
    """The names of global variables that a definition uses, in its body and in its first line."""
    names = set()
    tables = [symtable.symtable(text, "tool", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
                names.add(symbol.get_name())
    return names


def merge_definition(text: str, source: ToolSource) -> str:
    """Put a definition, with what it needs, into the text of a file; one of the same name is replaced.

    Raises:
        ValueError: it uses something that cannot be written down.
        SyntaxError: ``text`` is no Python.
    """
    for need in source.list_needs():
        text = _add_line(text, need) if isinstance(need, str) else merge_definition(text, need)
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, DEFINITION) and node.name == source.name:
            first, last = _line_span(node)
            lines[first - 1 : last] = source.text.splitlines()
            return "\n".join(lines) + "\n"
    return f"{text.rstrip()}\n\n\n{source.text}\n".lstrip()


def _add_line(text: str, line: str) -> str:
    """Add an import or a constant in front of the first definition, unless the file has it."""
    lines = text.splitlines()
    if line in lines:
        return text
    before_definitions = list(takewhile(lambda node: not isinstance(node, DEFINITION), ast.parse(text).body))
    at = (before_definitions[-1].end_lineno or 0) if before_definitions else 0
    gap = [] if before_definitions or not lines else ["", ""]
    lines[at:at] = [line, *gap]
    return "\n".join(lines) + "\n"
