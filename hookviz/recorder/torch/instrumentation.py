"""Instruments a function of torch's: observes it in its own frame, on its own lines, without a frame of ours.

A replacement function would add a frame: a warning with a ``stacklevel`` would name a file of ours, the stack would be
deeper, and the function would be another object. Here the function stays the same object; only its code is exchanged
for torch's own statements, with calls of ours before and after them, which return before any of the user's code runs.
Two differences remain: the code object, and one local variable in the frame.
"""

import __future__

import ast
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any


class Watcher:
    """Is called at the begin and the end of each call of a function. It may raise nothing but an interrupt.

    ``enter`` of a subclass gets the arguments of the call; what it returns is the first argument of the other methods.
    """

    enter: Callable[..., Any]

    def returning(self, seen: Any, result: Any) -> Any:
        """Handle a ``return`` of the function: ``result`` must be returned unchanged."""
        return result

    def fail(self, seen: Any, error: BaseException) -> None:
        """Handle an exception that leaves the function."""

    def leave(self, seen: Any) -> None:
        """Handle the end of the call; after an interrupt this may be called twice."""


_WATCHER = "the watcher of hookviz"
"""A constant in the compiled code, which is then replaced by the watcher."""
# A kept traceback holds the frame and its variables, so the variable is cleared at the end.
_WATCHER_CALLS = f"""
_hookviz = {_WATCHER!r}.enter()
try:
    pass
except BaseException as error:
    {_WATCHER!r}.fail(_hookviz, error)
    raise
finally:
    try:
        {_WATCHER!r}.leave(_hookviz)
    except KeyboardInterrupt:
        {_WATCHER!r}.leave(_hookviz)
        raise
    _hookviz = None
"""

_FUTURE = __future__.annotations.compiler_flag


class Instrumented:
    """A function of torch's that is instrumented while a recording is open."""

    def __init__(self, function: Any, watcher: Watcher) -> None:
        self.function: FunctionType = function
        self.watcher = watcher
        self._original: CodeType | None = None
        self._instrumented: CodeType | None = None

    def install(self) -> None:
        """Exchange the code. Calls that are running go on with the old code."""
        if self.function.__code__ is not self._instrumented:
            original = self.function.__code__
            if self._instrumented is None or original is not self._original:
                self._original, self._instrumented = original, instrumented_code(self.function, self.watcher)
            self.function.__code__ = self._instrumented

    def restore(self) -> None:
        """Restore the old code. Calls that are running still reach the watcher."""
        if self._original is not None and self.function.__code__ is self._instrumented:
            self.function.__code__ = self._original


def instrumented_code(function: FunctionType, watcher: Watcher) -> CodeType:
    """Return the code of ``function`` with calls of ``watcher`` in it.

    Raises:
        OSError, SyntaxError, StopIteration: the source cannot be read, or does not belong to the code.
    """
    original = function.__code__
    lines, first = inspect.getsourcelines(original)
    code = _compile_with_watcher("".join(lines), first, original)
    constants = tuple(watcher if type(one) is str and one == _WATCHER else one for one in code.co_consts)
    return code.replace(co_consts=constants, co_qualname=original.co_qualname)


def _compile_with_watcher(source: str, first: int, original: CodeType) -> CodeType:
    """Compile the function in ``source``, which begins in line ``first`` of its file, with calls of a watcher."""
    indented = source[:1].isspace()
    tree = ast.parse(f"if True:\n{source}" if indented else source)
    ast.increment_lineno(tree, first - 1 - indented)
    (function,) = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == original.co_name
    )
    _insert_watcher_calls(function)
    module = ast.Module([function], [])
    code = compile(module, original.co_filename, "exec", original.co_flags & _FUTURE, dont_inherit=True)
    return next(const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == original.co_name)


def _insert_watcher_calls(function: ast.FunctionDef) -> None:
    """Insert calls of the watcher into ``function`` without adding lines."""
    arguments = [ast.Name(parameter.arg, ast.Load()) for parameter in _parameter_nodes(function.args)]
    assignment, try_statement = ast.parse(_WATCHER_CALLS).body
    assert (
        isinstance(assignment, ast.Assign)
        and isinstance(assignment.value, ast.Call)
        and isinstance(try_statement, ast.Try)
    )
    assignment.value.args = [*arguments]
    try_statement.body = [_ReturnTransformer().visit(statement) for statement in function.body]
    for inserted in (assignment, *try_statement.handlers, *try_statement.finalbody):
        for node in ast.walk(inserted):
            ast.copy_location(node, function)
    function.body = [assignment, ast.copy_location(try_statement, function)]
    ast.fix_missing_locations(function)


def _parameter_nodes(arguments: ast.arguments) -> list[ast.arg]:
    others = (arguments.vararg, *arguments.kwonlyargs, arguments.kwarg)
    return [*arguments.posonlyargs, *arguments.args, *filter(None, others)]


class _ReturnTransformer(ast.NodeTransformer):
    """Passes each returned value through the watcher."""

    def visit_Return(self, node: ast.Return) -> ast.Return:
        result = node.value or ast.Constant(None)
        method = ast.Attribute(ast.Constant(_WATCHER), "returning", ast.Load())
        call = ast.Call(method, [ast.Name("_hookviz", ast.Load()), result], [])
        return ast.copy_location(ast.Return(ast.copy_location(call, node)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node
