"""Finds functions and classes that code of the user's names and that other files or notebook cells define."""

import re
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from hookviz.autograd.variable_names import is_library_file
from hookviz.support.user_objects import is_of, own_attributes
from hookviz.support.wrapped_functions import is_installed_file, unwrap_function


class Definition(NamedTuple):
    """A function or a class of the user's."""

    code: CodeType
    """The code of the function, or of a method of the class."""
    class_name: str
    """Empty for a function."""
    variables: dict[str, Any]
    """The variables of its module."""


def list_definitions(text: str, variables: dict[str, Any]) -> Iterator[Definition]:
    """Yield the functions and classes that a text may use; no code of the user's runs.

    Args:
        text: code. Each word of it is taken for a name.
        variables: the variables of its module. Names are looked up there, and in the user's modules found so.
    """
    words = dict.fromkeys(re.findall(r"[^\W\d]\w*", text))
    modules = [variables]
    for names in modules:  # grows meanwhile
        values = [value for word in words if (value := dict.get(names, word)) is not None]
        inner = [vars(value) for value in values if type(value) is ModuleType]
        modules += [one for one in inner if _is_of_user(one.get("__file__")) and not any(one is met for met in modules)]
        for value in values:
            yield from _define(value)


def _define(value: Any) -> Iterator[Definition]:
    """Yield the definition of a function or class of the user's; nothing for another value."""
    is_class = is_of(value, type)
    candidates = own_attributes(value).values() if is_class else (value,)
    for candidate in candidates:
        function = unwrap_function(candidate) if type(candidate) is FunctionType else None
        if type(function) is FunctionType and _is_of_user(function.__code__.co_filename):
            name = type.__dict__["__name__"].__get__(value) if is_class else ""
            yield Definition(function.__code__, name, function.__globals__)
            return


def _is_of_user(file: object) -> bool:
    return type(file) is str and not is_library_file(file) and not is_installed_file(file)
