"""Where a hook's function was written: its name, file, line and text, as a reader would find them."""

import ast
import functools
import inspect
import linecache
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple


class Source(NamedTuple):
    """How a function presents itself."""

    name: str
    """``c_hook``; for a lambda its text; for a callable object its class."""
    file: str | None
    """A path relative to the working directory or to the library it belongs to, or ``In [4]``."""
    line: int | None
    """The line in ``file`` on which the function begins, counted from 1."""
    text: str | None
    """The source text, or None where Python has none (a built-in, a lambda typed into a REPL)."""
    mark: int | None
    """The line of its only ``return``, if it has just one."""

    @property
    def label(self) -> str:
        """The name for a narrow place: a lambda as ``λ`` and its body."""
        if not self.name.startswith("lambda"):
            return self.name
        _, _, body = self.name.partition(":")
        return f"λ {body.strip()}" if body else "λ"


def describe(function: Callable[..., Any]) -> Source:
    """How ``function`` presents itself; never raises, whatever it is.

    >>> describe(print)
    Source(name='print', file=None, line=None, text=None, mark=None)
    >>> describe(functools.partial(print, 1)).name
    'partial(print)'
    """
    try:
        return _describe(function)
    except Exception:  # an object whose attributes raise, a wrapper of itself
        return Source(type(function).__name__, None, None, None, None)


def _describe(function: Callable[..., Any]) -> Source:
    inner = inspect.unwrap(function)
    if isinstance(inner, functools.partial):
        source = describe(inner.func)
        return source._replace(name=f"partial({source.name})")
    code = _code(inner)
    if code is None:
        return Source(_name(inner), None, None, None, None)
    source = _read(code, code.co_filename)._replace(file=where(code.co_filename))
    if source.name.startswith("lambda"):
        return source
    return source._replace(name=_name(inner))


def _name(function: object) -> str:
    if inspect.ismethod(function):
        return f"{type(function.__self__).__name__}.{function.__name__}"
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _code(function: object) -> CodeType | None:
    """The code of a function, of a method, or of a callable object's ``__call__``."""
    for holder in (function, getattr(type(function), "__call__", None)):  # noqa: B004
        code = getattr(holder, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


@lru_cache(maxsize=1024)
def _read(code: CodeType, filename: str) -> Source:
    """All but the file, which is named anew each time: a notebook cell that runs again has another number.

    ``filename`` belongs to the key, since code objects of two files can be equal.
    """
    lines = linecache.getlines(filename)
    node = _find(tuple(lines), code)
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


def _find(lines: tuple[str, ...], code: CodeType) -> ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The definition that compiled to ``code``: by its lines, and of several lambdas by their columns."""
    best = None
    for node in _definitions(lines):
        if isinstance(node, ast.Lambda) != (code.co_name == "<lambda>"):
            continue
        decorated = [d.lineno for d in getattr(node, "decorator_list", [])]
        if code.co_firstlineno in (node.lineno, *decorated) and _holds(node, code):
            best = node
    return best


_TRIES = 3


@lru_cache(maxsize=64)
def _definitions(lines: tuple[str, ...]) -> tuple[ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    tree = _parsed("".join(lines))
    if tree is None:
        return ()
    return tuple(n for n in ast.walk(tree) if isinstance(n, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef))


def _parsed(text: str) -> ast.Module | None:
    """``text`` as a tree; None where that is no Python, such as a notebook's magics or a file that has changed."""
    for _ in range(_TRIES):
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):
            return None
        except SystemError:
            # CPython 3.11 raises it if something else is parsed meanwhile, as for the traceback of a finalizer's error.
            continue
    return None


def _holds(node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, code: CodeType) -> bool:
    """Whether the instructions of ``code`` stand inside ``node``."""
    spots = [(line, column) for line, _, column, _ in code.co_positions() if line and column is not None and column]
    body = node.body if isinstance(node, ast.Lambda) else node
    start, end = (body.lineno, body.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return not spots or start <= max(spots) <= end


def where(filename: str) -> str | None:
    """``filename`` as a reader would name it: a notebook cell, or a path that holds nothing of the machine.

    >>> where("<stdin>") is None
    True
    >>> where(os.path.join(os.path.abspath(os.sep), "nowhere", "a.py"))
    'a.py'
    """
    cell = _cell(filename)
    if cell is not None:
        return cell
    if filename.startswith("<"):
        return None
    longest = sorted(filter(None, sys.path), key=len, reverse=True)
    libraries = [folder for folder in longest if folder.endswith("-packages")]  # one may lie in the working directory
    for folder in (*libraries, os.getcwd(), *longest):
        root = os.path.join(os.path.realpath(folder), "")
        if os.path.realpath(filename).startswith(root):
            return os.path.realpath(filename).removeprefix(root).replace(os.sep, "/")
    return os.path.basename(filename)


def _cell(filename: str) -> str | None:
    """``In [4]`` when IPython compiled ``filename`` from the fourth cell."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_ipython() if get_ipython else None
    cells: dict[str, int] = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"In [{cells[filename]}]" if filename in cells else None
