"""What a function holds that tells it from others of its source: closed-over values, defaults, bound arguments.

Only what stays the same is read: all functions that a loop makes share its variable, and see its last value.
"""

import ast
import dis
import functools
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from types import CodeType, FunctionType, MethodType
from typing import Any

from hookviz.support.definitions import COMPREHENSIONS, SCOPES, Definition, locate_code
from hookviz.support.user_objects import own_attributes
from hookviz.support.wrapped_functions import closure_variables, dereference, find_code, unwrap_function

HeldValue = tuple[str, str]
"""Name of the variable, parameter or attribute → the value as text."""
MAX_VALUES = 8
"""A function may hold more; those are not read."""
MAX_LENGTH = 40
"""Longer texts name nothing."""

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
_REPEATS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_BUILDERS = ("__new__", "__init__", "__post_init__")
"""The methods that may set an attribute which stays the same afterwards."""


def list_held_values(function: Any) -> tuple[HeldValue, ...]:
    """List what a function holds that stays the same: texts, numbers, and functions by their names.

    It never raises, and runs no code of the user's.

    >>> list_held_values(functools.partial(print, "layer3", sep=", "))
    (('0', 'layer3'), ('sep', ', '))
    """
    found: dict[str, str] = {}
    try:
        for name, value in _iter_held(unwrap_function(function)):
            text = _write_value(value)
            if text is not None and name not in found and len(found) < MAX_VALUES:
                found[name] = text
    except Exception:  # as in describe_function
        return ()
    return tuple(found.items())


def _iter_held(function: Any) -> Iterator[tuple[str, Any]]:
    if type(function) is functools.partial:
        inner = unwrap_function(function.func)
        names = _list_parameter_names(inner)
        yield from ((names[i] if i < len(names) else str(i), value) for i, value in enumerate(function.args))
        yield from function.keywords.items()
        yield from _iter_held(inner)
    elif type(function) is MethodType:
        yield from _iter_attributes(function.__self__)
        yield from _iter_held(function.__func__)
    elif type(function) is FunctionType:
        yield from _iter_closed_over(function)
        parameters = _list_parameter_names(function)
        defaults = function.__defaults__ or ()
        yield from zip(parameters[len(parameters) - len(defaults) :], defaults, strict=False)
        yield from (function.__kwdefaults__ or {}).items()
    else:
        yield from _iter_attributes(function)


def _list_parameter_names(function: Any) -> tuple[str, ...]:
    """Return the names of the positional parameters of a function or a bound method."""
    code = find_code(function)
    if code is None:
        return ()
    names = code.co_varnames[: code.co_argcount]
    return names if type(function) is FunctionType else names[1:]


def _write_value(value: Any) -> str | None:
    """Write a value as a short text; None for one that names nothing."""
    kind, value = type(value), dereference(value)
    if kind is str:
        return value if 0 < len(value) <= MAX_LENGTH and value.isprintable() else None
    if kind in (int, float, bool, complex):
        text = repr(value)
        return text if len(text) <= MAX_LENGTH else None
    if type(value) is functools.partial:
        return _write_value(value.func)
    if type(value) in (FunctionType, MethodType):
        name = (value.__func__ if type(value) is MethodType else value).__name__
        return None if name == "<lambda>" else _write_value(name)
    return None


# -- closed-over variables


def _iter_closed_over(function: FunctionType) -> Iterator[tuple[str, Any]]:
    variables = closure_variables(function)
    if variables:
        steady = _find_steady_variables(function.__code__, function.__code__.co_filename)
        yield from ((name, value) for name, value in variables.items() if name in steady)


@lru_cache(maxsize=1024)
def _find_steady_variables(code: CodeType, filename: str) -> frozenset[str]:
    """Find the closed-over variables that get their value once, before or after the function was made.

    ``filename`` is a parameter because it must be part of the cache key: code objects of two files can be equal.
    """
    _definition, around = locate_code(code, filename)
    return frozenset(name for name in code.co_freevars if _is_steady(name, around))


def _is_steady(name: str, around: list[ast.AST]) -> bool:
    """Whether the innermost scope that binds a variable binds it once: as a parameter, or in one assignment."""
    for node in reversed(around):
        if isinstance(node, COMPREHENSIONS):
            if name in map(_bound_name, chain.from_iterable(ast.walk(one.target) for one in node.generators)):
                return False
        elif isinstance(node, Definition):
            bindings = list(_find_bindings(name, node))
            if bindings or name in _parameters_of(node):
                return bindings == ([] if name in _parameters_of(node) else [True])
    return False


def _parameters_of(scope: Definition) -> set[str]:
    one = scope.args
    every = [*one.posonlyargs, *one.args, *one.kwonlyargs, one.vararg, one.kwarg]
    return {parameter.arg for parameter in every if parameter is not None}


def _find_bindings(name: str, scope: Definition) -> Iterator[bool]:
    """Yield for each place in a function that binds a variable whether it is an assignment that runs once."""
    body: Iterable[ast.AST] = [scope.body] if isinstance(scope, ast.Lambda) else scope.body
    queue = [(node, False) for node in body]
    while queue:
        node, is_repeated = queue.pop()
        if isinstance(node, ast.Nonlocal) and name in node.names:  # also in a function inside
            yield False
        elif _bound_name(node) == name:
            yield isinstance(node, ast.Name) and not is_repeated
        is_repeated = is_repeated or isinstance(node, _REPEATS)
        queue += [(child, is_repeated) for child in _list_children(node)]


def _list_children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node; of a scope inside only what rebinds variables of the one around it."""
    if not isinstance(node, SCOPES):
        return ast.iter_child_nodes(node)
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Nonlocal))


def _bound_name(node: ast.AST) -> str | None:
    """Return the name that a node binds, or None."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, _NAMED):
        return node.name
    return (node.asname or node.name.partition(".")[0]) if isinstance(node, ast.alias) else None


# -- attributes of objects


def _iter_attributes(item: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that its methods do not change; none of a module, which has a name."""
    attributes = own_attributes(item)
    plain = {name: value for name, value in list(attributes.items()) if type(value) in (str, int, float)}
    if plain and not _is_module(type(item)):
        changed = _find_changed_attributes(type(item))
        yield from ((name, value) for name, value in plain.items() if name not in changed)


def _is_module(kind: type) -> bool:
    return any((base.__module__, base.__name__) == ("torch.nn.modules.module", "Module") for base in kind.__mro__)


def _find_changed_attributes(kind: type) -> set[str]:
    """Find the attributes that methods of a class set, other than those that build the object."""
    methods = [pair for base in kind.__mro__ for pair in list(base.__dict__.items())]
    codes = [one.__code__ for name, one in methods if type(one) is FunctionType and name not in _BUILDERS]
    return set(chain.from_iterable(map(_list_stored_attributes, codes)))


@lru_cache(maxsize=4096)
def _list_stored_attributes(code: CodeType) -> tuple[str, ...]:
    return tuple(one.argval for one in dis.get_instructions(code) if one.opname == "STORE_ATTR")
