"""Find what is public: the names that hookviz exports, the types that these return, and the members of these types."""

import ast
import inspect
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import hookviz
import hookviz.course
import hookviz.testing

MODULES: tuple[ModuleType, ...] = (hookviz, hookviz.testing, hookviz.course)
"""The modules whose ``__all__`` is public."""
INTERNAL: Mapping[str, frozenset[str]] = {
    "Displayable": frozenset({"content"}),
    "Hook": frozenset({"source_"}),
    "Player": frozenset({"answer", "answered", "content", "flipped", "of", "show", "showing", "twin"}),
    "RecordBlock": frozenset({"exit_requested", "write_exception"}),
    "Rendered": frozenset({"finish"}),
    "Step": frozenset({"row", "scales", "trace"}),
    "TraceData": frozenset({"verify_formula"}),
    "UnfiredHook": frozenset({"index"}),
    "Value": frozenset({"row"}),
    "WhatIf": frozenset({"before"}),
}
"""Class → its attributes that other parts of hookviz use, and nobody else should."""
TABLES = "TraceTables"
PUBLIC_OF_TABLES = frozenset(
    {"dropped", "lacks_passes", "notes", "pass_number", "pass_numbers", "rank", "ranks", "statistics"}
)
"""The attributes of a trace's tables that are public; all others are rows as they are saved."""
OPERATORS = {"__enter__": "with … as", "__getitem__": "an index", "__sub__": "-"}
"""Special methods whose result a user works with, and how a user calls them."""


@dataclass
class PublicName:
    """A public function or type."""

    address: str
    """Where Sphinx imports it from: the module that exports it or, if none does, the one that defines it."""
    what: Any
    sources: list[str] = field(default_factory=list)
    """The public functions and members that return this type, such as ``hookviz.Trace.firings``."""

    @property
    def name(self) -> str:
        """Its own name, such as ``record``."""
        return self.address.rpartition(".")[2]

    @property
    def is_type(self) -> bool:
        """Whether it is a class, not a function."""
        return inspect.isclass(self.what)

    @property
    def members(self) -> list[str]:
        """The public members of a type, in the order in which its classes define them, its own class first."""
        return list(find_members(self.what)) if self.is_type else []


def find_public_names() -> dict[str, PublicName]:
    """Find all public functions and types: address → name, those that ``__all__`` has first."""
    exported = {f"{module.__name__}.{name}": getattr(module, name) for module in MODULES for name in module.__all__}
    names = {address: PublicName(address, what) for address, what in exported.items()}
    addresses = {id(public.what): address for address, public in names.items()}
    waiting = list(names.values())
    while waiting:
        public = waiting.pop(0)
        for source, kind in _find_returned_types(public):
            address = addresses.setdefault(id(kind), f"{kind.__module__}.{kind.__qualname__}")
            if address not in names:
                names[address] = PublicName(address, kind)
                waiting.append(names[address])
            if source not in names[address].sources:
                names[address].sources.append(source)
    return names


def find_members(kind: type) -> Iterator[str]:
    """Yield the public members of a type that hookviz itself defines."""
    seen: set[str] = set()
    for base in _own_bases(kind):
        defined = [*vars(base).get("__annotations__", {}), *vars(base), *_find_instance_attributes(base)]
        for name in dict.fromkeys(defined):
            if name not in seen and _is_public(kind, name):
                yield name
            seen.add(name)


def _own_bases(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "hookviz"]


def _is_public(kind: type, name: str) -> bool:
    """Whether a member of a type is public: no class of it hides the name."""
    hides_rows = any(
        base.__name__ == TABLES and (name in vars(base) or _has_field(base, name)) for base in kind.__mro__
    )
    is_hidden = any(name in INTERNAL.get(base.__name__, ()) for base in kind.__mro__)
    return not name.startswith("_") and not is_hidden and (not hides_rows or name in PUBLIC_OF_TABLES)


def _has_field(base: type, name: str) -> bool:
    return name in vars(base).get("__annotations__", {})


def _find_instance_attributes(base: type) -> Iterator[str]:
    """Yield the attributes that ``__init__`` of a class gives to ``self``."""
    method = vars(base).get("__init__")
    if not isinstance(method, FunctionType) or not method.__code__.co_filename.endswith(".py"):
        return  # a dataclass has its annotations
    for node in ast.walk(ast.parse(dedent(inspect.getsource(method)))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def _find_returned_types(public: PublicName) -> Iterator[tuple[str, type]]:
    """Yield (the function or member that returns it, the type) for each type of hookviz that a public name leads to."""
    if not public.is_type:
        for kind in _find_types(read_hints(public.what).get("return")):
            yield public.address, kind
        return
    for rows in (row for base in getattr(public.what, "__orig_bases__", ()) for row in typing.get_args(base)):
        yield from ((f"{public.address}.__getitem__", kind) for kind in _find_types(rows))
    for base in _own_bases(public.what):
        own_fields = SimpleNamespace(__module__=base.__module__, __annotations__=vars(base).get("__annotations__", {}))
        methods = {
            name: method for name, method in _find_methods(base) if name in OPERATORS or _is_public(public.what, name)
        }
        hints = read_hints(own_fields) | {name: read_hints(method).get("return") for name, method in methods.items()}
        for name, hint in hints.items():
            if name in methods or _is_public(public.what, name):
                source = f"{public.address}.{name}"
                yield from ((source, kind) for kind in _find_types(hint) if kind not in public.what.__mro__)


def _find_methods(base: type) -> Iterator[tuple[str, FunctionType]]:
    """Yield the functions of the methods and properties that a class defines, by their names."""
    for name, member in vars(base).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if isinstance(function, FunctionType):
            yield name, function


def read_hints(thing: Any) -> dict[str, Any]:
    """Read the annotations of a function or class, also those whose names are imported for a type checker only."""
    module = sys.modules[thing.__module__]
    names = dict(vars(module))
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), str(module.__file__), "exec"), names)
    return typing.get_type_hints(thing, names)


def _find_types(hint: Any) -> Iterator[type]:
    """Yield the types of hookviz in an annotation."""
    for part in (hint, typing.get_origin(hint)):
        if inspect.isclass(part) and part.__module__.partition(".")[0] == "hookviz":
            yield part
    for argument in typing.get_args(hint):
        yield from _find_types(argument)
