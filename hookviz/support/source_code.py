"""Find the name, file, line and source text of a function, as its author knows them."""

import ast
import functools
import inspect
import linecache
import os
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple, Protocol

from hookviz.support.definitions import find_code_definition
from hookviz.support.held_values import HeldValue, list_held_values
from hookviz.support.messages import _
from hookviz.support.wrapped_functions import find_code, read_of_callable, unwrap_function

_PARTIAL = "partial("
_SAYS_LITTLE = re.compile(r"[\w.]*|\(\)|\[\]|\{\}")
"""The body of a lambda that alone does not read as what a function does, such as ``None``."""

_LAMBDA = re.compile(r"lambda\b")
"""The keyword, with which no name of a function begins: ``lambda_loss`` is one word."""

_REPR_OF_FUNCTION = re.compile(r"<function (?:[\w.<>]*\.)?(<lambda>|\w+) at 0x[0-9a-fA-F]+>")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Source(NamedTuple):
    """The name and source location of a function."""

    name: str
    """``c_hook``; the text of a lambda; the class of a callable object."""
    file: str | None
    """A path relative to the working directory or to its library, or ``In [4]`` for a notebook cell."""
    line: int | None
    """The first line of the function in ``file``, counted from 1."""
    text: str | None
    """The source text; None if Python has none (a built-in, a lambda typed into a REPL)."""
    return_line: int | None
    """The line of its ``return``, if it has exactly one."""
    held: tuple[HeldValue, ...] = ()
    """What it holds that may tell it from other functions made of the same text: (variable, value)."""

    @property
    def is_lambda(self) -> bool:
        """Whether it is a lambda; its name is its text then."""
        return _is_lambda(self.name)

    @property
    def where(self) -> str:
        """File and line as text; empty if unknown."""
        return describe_place(self.file, self.line)

    @property
    def label(self) -> str:
        """The short name: a lambda is shown as ``λ`` and its body, after its parameters if the body alone says little.

        A partial has the name of its function.
        """
        name = self.name
        while name.startswith(_PARTIAL) and name.endswith(")"):
            name = name[len(_PARTIAL) : -1]
        if not _is_lambda(name):
            return name
        parameters, _colon, body = name.removeprefix("lambda").partition(":")
        if not body:
            return "λ"
        return f"λ{parameters}: {body.strip()}" if _SAYS_LITTLE.fullmatch(body.strip()) else f"λ {body.strip()}"


def _is_lambda(name: str) -> bool:
    """Whether the name of a ``Source`` is the text of a lambda, or the word alone if its text is unknown."""
    return _LAMBDA.match(name) is not None


def describe_place(file: str | None, line: int | None) -> str:
    """Name a line of a file; empty if either is unknown.

    >>> describe_place("train.py", 12), describe_place(None, 12)
    ('train.py, line 12', '')
    """
    return _("{file}, line {line}").format(file=file, line=line) if file and line is not None else ""


def split_place(place: str | None) -> tuple[str | None, int | None]:
    """Split a place into its file and its line; a text that is no place has neither.

    >>> split_place("train.py:12"), split_place(None)
    (('train.py', 12), (None, None))
    """
    file, _ignored, line = (place or "").rpartition(":")
    return (file, int(line)) if line.isdecimal() else (None, None)


class CodePlace(NamedTuple):
    """A line of the program."""

    file: str | None
    line: int

    @property
    def where(self) -> str:
        """The line as text, such as ``train.py, line 12``."""
        return describe_place(self.file, self.line)


def read_place(place: str | None) -> CodePlace | None:
    """Read a place that a row notes, such as ``train.py:12``."""
    file, line = split_place(place)
    return None if line is None else CodePlace(file or None, line)


class Located(Protocol):
    """A text of the program whose place is known, such as a function or a file."""

    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...


def place_of(node: ast.stmt | ast.expr, text: Located) -> CodePlace:
    """Return the line of a part of the syntax tree of a text; it counts from 1 if the place of the text is not known.

    >>> place_of(ast.parse("a = 1").body[0], CodePlace("train.py", 12))
    CodePlace(file='train.py', line=12)
    """
    return CodePlace(text.file, (text.line or 1) + node.lineno - 1)


def describe_function(function: Callable[..., Any]) -> Source:
    """Find the source of ``function``. It never raises, not even for objects that raise when they are inspected.

    >>> describe_function(print)
    Source(name='print', file=None, line=None, text=None, return_line=None, held=())
    >>> describe_function(functools.partial(print, 1)).name
    'partial(print)'
    """
    try:
        return _describe_unwrapped(function)._replace(held=list_held_values(function))
    except Exception:  # for example an object whose attributes raise, or that wraps itself
        return Source(type(function).__name__, None, None, None, None)


def _describe_unwrapped(function: Callable[..., Any]) -> Source:
    inner = unwrap_function(function)
    if isinstance(inner, functools.partial):
        source = describe_function(inner.func)
        return source._replace(name=f"partial({source.name})")
    code = find_code(inner)
    if code is None:
        return Source(_get_function_name(inner), None, None, None, None)
    source = _read_source(code, code.co_filename)._replace(file=shorten_filename(code.co_filename))
    if source.is_lambda:
        return source
    return source._replace(name=_get_function_name(inner))


def _get_function_name(function: object) -> str:
    if inspect.ismethod(function):
        return f"{type(function.__self__).__name__}.{function.__name__}"
    name = read_of_callable(function, "__name__")
    return _strip_address(name) if isinstance(name, str) else type(function).__name__


def _strip_address(name: str) -> str:
    """Return the name of a function, without the addresses in it if a library named a wrapper by what it wraps.

    >>> _strip_address("<function make.<locals>.scale at 0x7f>"), _strip_address("partial(<function scale at 0x7f>)")
    ('scale', 'partial(scale)')
    """
    if " at 0x" not in name:
        return name
    return _ADDRESS.sub("", _REPR_OF_FUNCTION.sub(r"\1", name)).replace("<lambda>", "lambda")


@lru_cache(maxsize=1024)
def _read_source(code: CodeType, filename: str) -> Source:
    """Find the source of ``code``, without ``Source.file``: a notebook cell gets a new number when it runs again.

    ``filename`` is a parameter because it must be part of the cache key: code objects of two files can be equal.
    """
    lines = linecache.getlines(filename)
    node = find_code_definition(tuple(lines), code)
    name = "lambda" if code.co_name == "<lambda>" else code.co_name
    if node is None:
        return Source(name, None, None if filename.startswith("<") else code.co_firstlineno, None, None)
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    text = "".join(lines[first - 1 : node.end_lineno])
    if isinstance(node, ast.Lambda):
        name = " ".join((ast.get_source_segment("".join(lines), node) or name).split())
        return Source(name, None, first, inspect.cleandoc(text), node.body.lineno)
    returns = [n.lineno for n in ast.walk(node) if isinstance(n, ast.Return)]
    return Source(name, None, first, _dedent(text), returns[0] if len(returns) == 1 else None)


def _dedent(text: str) -> str:
    indent = len(text) - len(text.lstrip(" \t"))
    return "".join(line[indent:] if line[:indent].isspace() else line for line in text.splitlines(True)).rstrip()


def shorten_filename(filename: str) -> str | None:
    """Shorten ``filename`` to a notebook cell, or to a path that reveals nothing about the machine; None for a REPL.

    >>> shorten_filename("<stdin>") is None
    True
    >>> shorten_filename(os.path.join(os.path.abspath(os.sep), "nowhere", "a.py"))
    'a.py'
    """
    cell = _name_notebook_cell(filename)
    if cell is not None:
        return cell
    if filename.startswith("<"):
        return None
    return _shorten_path(filename, os.getcwd(), tuple(filter(None, sys.path)))


@lru_cache(maxsize=1024)
def _shorten_path(filename: str, working_directory: str, folders: tuple[str, ...]) -> str:
    """Shorten a path, relative to one of these folders; looking for links in all of them takes long."""
    longest = sorted(folders, key=len, reverse=True)
    libraries = [
        folder for folder in longest if folder.endswith("-packages")
    ]  # before the working directory, which may contain them
    for folder in (*libraries, working_directory, *longest):
        root = os.path.join(os.path.realpath(folder), "")
        if os.path.realpath(filename).startswith(root):
            return os.path.realpath(filename).removeprefix(root).replace(os.sep, "/")
    return os.path.basename(filename)


def _name_notebook_cell(filename: str) -> str | None:
    """Return ``In [4]`` if IPython compiled ``filename`` from the fourth cell, else None."""
    cells: dict[str, int] = getattr(getattr(_get_shell(), "compile", None), "_filename_map", {})
    return f"In [{cells[filename]}]" if filename in cells else None


def list_notebook_cells() -> list[tuple[str, bool]]:
    """Return (filename, whether it failed) of each notebook cell that has run, in the order of their last runs."""
    shell = _get_shell()
    cells: dict[str, int] = getattr(getattr(shell, "compile", None), "_filename_map", {})
    failed = getattr(getattr(shell, "history_manager", None), "exceptions", {})
    return [(filename, cells[filename] in failed) for filename in sorted(cells, key=cells.__getitem__)]


def _get_shell() -> Any:
    """Return IPython's shell; None outside of a notebook."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if get_ipython else None
