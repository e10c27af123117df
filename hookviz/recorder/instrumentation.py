"""Observing a function of torch's from inside: in its own frame, on its own lines, with nothing of ours on the stack.

A function put in the place of torch's would be one more frame: a warning with a ``stacklevel`` would name a file of
ours, a stack would be deeper, and the function would be another. Here it stays the same object and is called as ever.
Only its code is exchanged: for torch's own statements with calls of ours before and behind them, which have returned
before anything of a person's runs. What still differs is the code object, and one local variable in its frame.
"""

import __future__

import ast
import inspect
from types import CodeType, FunctionType
from typing import Any, Protocol


class Watcher(Protocol):
    """Is called at the beginning and the end of each call of a function. It may raise nothing but an interrupt."""

    def enter(self, *given: Any) -> Any:
        """The function is called with these; what it returns is the first argument of the other three."""

    def answer(self, seen: Any, result: Any) -> Any:
        """It is about to return ``result``, which is handed back."""

    def fail(self, seen: Any, error: BaseException) -> None:
        """An exception leaves it."""

    def leave(self, seen: Any) -> None:
        """It is over; after an interrupt this may be called twice."""


_WATCHER, _ORIGINAL = "the watcher of hookviz", "the function as it was"
"""Constants in the code that is compiled, which then are replaced by what they stand for."""
# A traceback that somebody keeps holds the frame, and with it what is in its variables at the end.
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
    """A function of torch's that is observed from inside while something is recorded."""

    def __init__(self, function: Any, watcher: Watcher) -> None:
        self.function: FunctionType = function
        self.watcher = watcher
        self._theirs: CodeType | None = None
        self._ours: CodeType | None = None

    def put(self) -> None:
        """Exchange the code; calls that are running go on with the old one."""
        if self.function.__code__ is not self._ours:
            theirs = self.function.__code__
            if self._ours is None or theirs is not self._theirs:
                self._theirs, self._ours = theirs, instrumented_code(self.function, self.watcher)
            self.function.__code__ = self._ours

    def take_back(self) -> None:
        """Put the old code back; calls that are running still reach the watcher."""
        if self._theirs is not None and self.function.__code__ is self._ours:
            self.function.__code__ = self._theirs


def instrumented_code(function: FunctionType, watcher: Watcher) -> CodeType:
    """The code of ``function`` with calls of ``watcher`` in it.

    Where the source cannot be had (a frozen program), the old code runs in a second frame below the first.
    """
    theirs = function.__code__
    try:
        made = _compile_from_source(theirs)
    except _UNREADABLE:
        plain = FunctionType(theirs, function.__globals__, theirs.co_name, function.__defaults__, function.__closure__)
        plain.__kwdefaults__ = function.__kwdefaults__
        source = f"def {theirs.co_name}(*args, **kwargs):\n    return {_ORIGINAL!r}.__call__(*args, **kwargs)"
        made = _compile_with_watcher(source, theirs.co_firstlineno, theirs)
        made = _replace_constants(made, {_ORIGINAL: plain})
    return _replace_constants(made, {_WATCHER: watcher}).replace(co_qualname=theirs.co_qualname)


def has_readable_source(function: Any) -> bool:
    """Whether ``function`` can be instrumented in its own frame, rather than in a second one."""
    try:
        _compile_from_source(function.__code__)
    except _UNREADABLE:
        return False
    return True


_UNREADABLE = (OSError, SyntaxError, StopIteration)
"""What is raised where the source of a function cannot be had, or is not that of its code."""


def _compile_from_source(theirs: CodeType) -> CodeType:
    lines, first = inspect.getsourcelines(theirs)
    return _compile_with_watcher("".join(lines), first, theirs)


def _replace_constants(code: CodeType, things: dict[str, Any]) -> CodeType:
    """``code`` with these things in the place of the texts that stand for them."""
    return code.replace(co_consts=tuple(things.get(one, one) if type(one) is str else one for one in code.co_consts))


def _compile_with_watcher(source: str, first: int, theirs: CodeType) -> CodeType:
    """The function of ``source``, which begins in line ``first`` of its file, compiled with a watcher's calls."""
    indented = source[:1].isspace()
    tree = ast.parse(f"if True:\n{source}" if indented else source)
    ast.increment_lineno(tree, first - 1 - indented)
    (function,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == theirs.co_name)
    _insert_watcher_calls(function)
    module = ast.Module([function], [])
    code = compile(module, theirs.co_filename, "exec", theirs.co_flags & _FUTURE, dont_inherit=True)
    return next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == theirs.co_name)


def _insert_watcher_calls(function: ast.FunctionDef) -> None:
    """Put calls of the watcher into ``function``, on the lines that it has."""
    given = [ast.Name(one.arg, ast.Load()) for one in _parameter_nodes(function.args)]
    enter, around = ast.parse(_WATCHER_CALLS).body
    assert isinstance(enter, ast.Assign) and isinstance(enter.value, ast.Call) and isinstance(around, ast.Try)
    enter.value.args = [*given]
    around.body = [_ReturnTransformer().visit(statement) for statement in function.body]
    for own in (enter, *around.handlers, *around.finalbody):
        for node in ast.walk(own):
            ast.copy_location(node, function)
    function.body = [enter, ast.copy_location(around, function)]
    ast.fix_missing_locations(function)


def _parameter_nodes(arguments: ast.arguments) -> list[ast.arg]:
    more = (arguments.vararg, *arguments.kwonlyargs, arguments.kwarg)
    return [*arguments.posonlyargs, *arguments.args, *filter(None, more)]


class _ReturnTransformer(ast.NodeTransformer):
    """Hands what a function returns to the watcher, on its way."""

    def visit_Return(self, node: ast.Return) -> ast.Return:
        result = node.value or ast.Constant(None)
        answer = ast.Attribute(ast.Constant(_WATCHER), "answer", ast.Load())
        answered = ast.Call(answer, [ast.Name("_hookviz", ast.Load()), result], [])
        return ast.copy_location(ast.Return(ast.copy_location(answered, node)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node
