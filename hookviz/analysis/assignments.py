"""Find the line of a program that assigned a variable, if its text leaves no doubt which line that was."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import dedent
from typing import NamedTuple, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_STATEMENTS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match)
_EXPRESSIONS = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CONDITIONS = (*_STATEMENTS, *_EXPRESSIONS)
"""What may skip the statements or expressions inside it."""
_KEEPS_DATA = frozenset({"requires_grad_", "retain_grad_"})
"""Methods that end in an underscore and leave the data of the tensor as it is."""


class Binding(NamedTuple):
    """A place that gives a name a value, or takes it away."""

    line: int
    assigns: bool
    """Whether it is an assignment: not a loop, an import, a definition, ``+=``, ``del`` or a parameter."""
    conditional: bool
    """Whether the program may skip it."""


@dataclass
class _Scope:
    """The names that a function binds, or those of the module level."""

    parent: "_Scope | None" = None
    first: int = 0
    last: int = 0
    is_class: bool = False
    bindings: dict[str, list[Binding]] = field(default_factory=dict)


class Program:
    """The scopes of one program text, whose lines are counted from 1."""

    def __init__(self, tree: ast.Module) -> None:
        self._module = _Scope()
        self._scopes: list[_Scope] = []
        self._changed: set[str] = set()
        """The names of variables whose tensor is changed in place."""
        self._assigned = {part for target in _list_targets(tree) for part in _list_stores(target)}
        self._hidden = {part for target in _list_hidden_targets(tree) for part in _list_stores(target)}
        self._read_all(tree.body, self._module, conditional=False)

    def module_names(self) -> Mapping[str, bool]:
        """Return the names that are bound outside of functions → whether that may be skipped."""
        return {name: all(one.conditional for one in found) for name, found in self._module.bindings.items()}

    def module_assignment(self, name: str, before: int | None = None) -> int | None:
        """Return the only line outside of functions that assigns ``name``; None if it is not ``before`` that line."""
        return self._only_line(name, self._module, before)

    def is_in_function(self, line: int) -> bool:
        """Whether ``line`` belongs to a function."""
        return any(scope.first <= line <= scope.last for scope in self._scopes)

    def local_scope(self, line: int, name: str) -> _Scope | None:
        """Return the scope of the function around ``line`` that binds ``name``; None for the module level."""
        around = [scope for scope in self._scopes if scope.first <= line <= scope.last]
        scope: _Scope | None = max(around, key=lambda one: one.first, default=None)
        while scope is not None and name not in scope.bindings:
            scope = scope.parent
        return None if scope is self._module else scope

    def local_assignment(self, name: str, line: int, scope: _Scope, *, known_outside: bool) -> int | None:
        """Return the only line of the function ``scope`` that assigns ``name``, before ``line`` runs in it.

        An assignment that may be skipped proves nothing if the name is ``known_outside`` of the function, too.
        """
        known_outside = known_outside or name in self._module.bindings
        if known_outside and any(binding.conditional for binding in scope.bindings[name]):
            return None
        return self._only_line(name, scope, line)

    def _only_line(self, name: str, scope: _Scope, before: int | None) -> int | None:
        found = scope.bindings.get(name, [])
        if len(found) != 1 or not found[0].assigns or name in self._changed:
            return None
        return None if before is not None and found[0].line > before else found[0].line

    # -- reading the tree

    def _read_all(self, nodes: Iterable[ast.AST], scope: _Scope, *, conditional: bool) -> None:
        for node in nodes:
            self._read(node, scope, conditional)

    def _read(self, node: ast.AST, scope: _Scope, conditional: bool) -> None:
        if isinstance(node, Function):
            self._read_function(node, scope, conditional)
            return
        if isinstance(node, ast.ClassDef):
            self._bind(node.name, node.lineno, scope, conditional)
            inner = _Scope(scope, node.lineno, node.end_lineno or node.lineno, is_class=True)
            self._read_all([*node.decorator_list, *node.bases], scope, conditional=conditional)
            self._read_all(node.body, inner, conditional=conditional)
            return
        self._note_bindings(node, scope, conditional)
        self._note_changes(node)
        conditional = conditional or isinstance(node, _CONDITIONS)
        self._read_all(ast.iter_child_nodes(node), scope, conditional=conditional)

    def _read_function(self, node: Function, scope: _Scope, conditional: bool) -> None:
        if not isinstance(node, ast.Lambda):
            self._bind(node.name, node.lineno, scope, conditional)
            self._read_all(node.decorator_list, scope, conditional=conditional)
        parent: _Scope | None = scope
        while parent is not None and parent.is_class:  # a method does not see the names of its class
            parent = parent.parent
        inner = _Scope(parent, node.lineno, node.end_lineno or node.lineno)
        self._scopes.append(inner)
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                self._bind(argument.arg, node.lineno, inner, False)
        defaults = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
        self._read_all(defaults, scope, conditional=conditional)
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        self._read_all(body, inner, conditional=False)

    def _note_bindings(self, node: ast.AST, scope: _Scope, conditional: bool) -> None:
        """Note the names that ``node`` itself binds."""
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in self._hidden:
            self._bind(node.id, line, scope, conditional, assigns=node in self._assigned)
        for name in _otherwise_bound_names(node):
            self._bind(name, line, scope, conditional)
        if isinstance(node, ast.Global | ast.Nonlocal):
            # Whoever looks for one of these names must not rely on the text: count two bindings.
            outside = self._module if isinstance(node, ast.Global) else scope.parent
            for name in node.names:
                for place in (scope, outside or scope):
                    self._bind(name, line, place, True)

    def _bind(self, name: str, line: int, scope: _Scope, conditional: bool, *, assigns: bool = False) -> None:
        scope.bindings.setdefault(name, []).append(Binding(line, assigns, conditional))

    def _note_changes(self, node: ast.AST) -> None:
        """Note a variable whose tensor ``node`` changes: ``c.mul_(2)``, ``c[0] = 1``, ``c.data = x``, ``out=c``."""
        changed: ast.AST | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method.endswith("_") and not method.endswith("__") and method not in _KEEPS_DATA:
                changed = node.func.value
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            changed = node.value if isinstance(node, ast.Subscript) or node.attr == "data" else None
        elif isinstance(node, ast.keyword):
            changed = node.value if node.arg == "out" else None
        while isinstance(changed, ast.Subscript | ast.Attribute):
            changed = changed.value
        if isinstance(changed, ast.Name):
            self._changed.add(changed.id)


def _list_targets(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the targets of assignments that give a value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from node.targets
        elif isinstance(node, ast.NamedExpr) or (isinstance(node, ast.AnnAssign) and node.value is not None):
            yield node.target


def _list_hidden_targets(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the targets that bind nothing around them: those of comprehensions, and of ``x: int``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension) or (isinstance(node, ast.AnnAssign) and node.value is None):
            yield node.target


def _list_stores(target: ast.expr) -> Iterator[ast.Name]:
    """Yield the names in a target such as ``a, (b, *c)``; ``d.x`` and ``d[0]`` bind no name."""
    return (part for part in ast.walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))


def _otherwise_bound_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name is not None:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest


@lru_cache(maxsize=64)
def read_program(text: str) -> Program | None:
    """Read the scopes of a program, or of a method; None if ``text`` is not valid Python, as if it was cut."""
    try:
        return Program(ast.parse(dedent(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None
