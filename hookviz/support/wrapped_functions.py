"""Find the user's function inside of what decorators and libraries put around it; no code of the user's runs."""

import functools
import os
import weakref
from types import CodeType, FunctionType, MethodType
from typing import Any

from hookviz.support.user_objects import own_attributes

_STANDARD_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
"""The folders in which packages are installed."""
_MAX_DEPTH = 100
"""Up to this many functions around one another are taken off; an object may wrap itself."""


def is_installed_file(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    return file.startswith((_STANDARD_LIBRARY, "<frozen ")) or any(folder in file for folder in _INSTALLED)


def unwrap_function(function: Any) -> Any:
    """Return the function that decorators wrap, or that a library holds in a function of its own.

    A ``functools.partial`` is returned as it is.

    >>> unwrap_function(functools.wraps(len)(lambda *arguments: 0)) is len
    True
    """
    first = function
    for _ignored in range(_MAX_DEPTH):
        inner = _find_wrapped(function)
        if inner is None:
            return function
        function = inner
    return first


def innermost_function(function: Any) -> Any:
    """Unwrap decorators, functions of libraries, and partials."""
    while isinstance(unwrapped := unwrap_function(function), functools.partial):
        function = unwrapped.func
    return unwrapped


def find_code(function: object) -> CodeType | None:
    """Return the code of a function, a method, or the ``__call__`` of an object; None if it is not Python code."""
    for holder in (function, getattr(type(function), "__call__", None)):  # noqa: B004
        code = read_of_callable(holder, "__code__")
        if isinstance(code, CodeType):
            return code
    return None


def read_of_callable(item: object, name: str) -> Any:
    """Return an attribute of something that can be called; None if only its ``__getattr__`` would find it."""
    return None if hasattr(type(item), "__getattr__") else getattr(item, name, None)


def _find_wrapped(function: Any) -> Any:
    """Return what is directly inside of a function, or None."""
    wrapped = own_attributes(function.__func__ if type(function) is MethodType else function).get("__wrapped__")
    if wrapped is not None:
        return wrapped
    if type(function) is not FunctionType or not is_installed_file(function.__code__.co_filename):
        return None
    held = [one for one in map(dereference, closure_variables(function).values()) if _is_of_user(one)]
    return held[0] if len(held) == 1 else None


def closure_variables(function: Any) -> dict[str, Any]:
    """Return name → value of a function's closure variables; a variable without a value is left out."""
    variables = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            variables[name] = cell.cell_contents
        except ValueError:
            continue
    return variables


def dereference(item: Any) -> Any:
    """Return what a weak reference refers to, and any other object as it is."""
    return item() if type(item) in (weakref.ref, weakref.WeakMethod) else item


def _is_of_user(item: Any) -> bool:
    """Whether an object is a function or method of the user's own code."""
    if type(item) is functools.partial:
        return _is_of_user(item.func)
    if type(item) not in (FunctionType, MethodType):
        return False
    code = find_code(item)
    return code is not None and not is_installed_file(code.co_filename)
