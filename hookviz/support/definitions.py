"""Find the definition of a function in the syntax tree of its file."""

import ast
import linecache
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

from hookviz.support.wrapped_functions import find_code, innermost_function

Definition = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef


def find_definition(function: Callable[..., Any]) -> tuple[Definition | None, list[ast.AST]]:
    """Find the definition of ``function`` in the syntax tree of its file, and the nodes around it, outermost first.

    The definition is None if Python has no source, or if the file has changed since. It never raises.

    >>> find_definition(print)
    (None, [])
    >>> definition, around = find_definition(find_definition)
    >>> definition.name, [type(node).__name__ for node in around]
    ('find_definition', ['Module'])
    """
    try:
        code = find_code(innermost_function(function))
        return (None, []) if code is None else locate_code(code, code.co_filename)
    except Exception:  # as in describe_function
        return None, []


def locate_code(code: CodeType, filename: str) -> tuple[Definition | None, list[ast.AST]]:
    """Find the definition that was compiled to ``code`` in the syntax tree of its file, and the nodes around it."""
    lines = tuple(linecache.getlines(filename))
    definition, tree = find_code_definition(lines, code), _parse_lines(lines)
    return (None, []) if definition is None or tree is None else (definition, path_to(tree, definition))


def find_code_definition(lines: tuple[str, ...], code: CodeType) -> Definition | None:
    """Find the definition that was compiled to ``code``, by its first line; several lambdas differ by their columns."""
    best = None
    for node in _list_definitions(lines):
        if isinstance(node, ast.Lambda) != (code.co_name == "<lambda>"):
            continue
        decorated = [d.lineno for d in getattr(node, "decorator_list", [])]
        if code.co_firstlineno in (node.lineno, *decorated) and _contains_code(node, code):
            best = node
    return best


def path_to(tree: ast.AST, wanted: ast.AST) -> list[ast.AST]:
    """Return the nodes from ``tree`` down to the parent of ``wanted``."""
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    path: list[ast.AST] = []
    while id(wanted) in parents:
        wanted = parents[id(wanted)]
        path.append(wanted)
    return path[::-1]


def list_names(code: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> list[str]:
    """List the variables in some code, in the order of the syntax tree; ``context`` is what it does with them.

    >>> assignment = ast.parse("a = b + c")
    >>> list_names(assignment), list_names(assignment, ast.Store)
    (['a', 'b', 'c'], ['a'])
    """
    parts = (part for part in ast.walk(code) if isinstance(part, ast.Name))
    return [part.id for part in parts if isinstance(part.ctx, context)]


def iter_rebound(code: ast.AST) -> Iterator[ast.Name]:
    """Yield the variables where code gives them another value; ``+=`` and the like may edit in place, and do not count.

    >>> [name.id for name in iter_rebound(ast.parse("a = b; c += 1; del d"))]
    ['a', 'd']
    """
    edited = {id(node.target) for node in ast.walk(code) if isinstance(node, ast.AugAssign)}
    names = (node for node in ast.walk(code) if isinstance(node, ast.Name))
    return (name for name in names if isinstance(name.ctx, ast.Store | ast.Del) and id(name) not in edited)


_LOOPS = (ast.For, ast.AsyncFor)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (*_LOOPS, ast.While, *COMPREHENSIONS)
"""What runs some code several times."""


def list_loop_variables(definition: Definition, around: Sequence[ast.AST]) -> list[str]:
    """List the variables of the loops around a function, in the same scope, that its body reads and does not set.

    What a loop computes from its variables counts, too.

    >>> tree = ast.parse("for name in names: hooks += [lambda grad: print(name, grad)]")
    >>> function = next(node for node in ast.walk(tree) if isinstance(node, ast.Lambda))
    >>> list_loop_variables(function, path_to(tree, function))
    ['name']
    """
    targets: list[ast.AST] = []
    bodies: list[ast.stmt] = []
    for node in reversed(around):
        if isinstance(node, _LOOPS):
            targets.append(node.target)
            bodies += node.body
        elif isinstance(node, COMPREHENSIONS):
            targets += [generator.target for generator in node.generators]
        elif isinstance(node, SCOPES):
            break
    names = _add_computed([name for target in targets for name in list_names(target)], bodies)
    body = definition.body if isinstance(definition, ast.Lambda) else ast.Module(definition.body, [])
    own = {part.arg for part in ast.walk(definition) if isinstance(part, ast.arg)} | {*list_names(body, ast.Store)}
    read = {*list_names(body)} - own
    return [name for name in dict.fromkeys(names) if name in read]


def _add_computed(names: list[str], bodies: list[ast.stmt]) -> list[str]:
    """Add the variables that a statement of a loop computes from those in each turn."""
    for statement in bodies:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            is_computed = not {*list_names(statement.value)}.isdisjoint(names)
            names = [*names, statement.targets[0].id] if is_computed else names
    return names


def iter_own_nodes(definition: Definition) -> Iterator[ast.AST]:
    """Yield the nodes of the body of a function, without those of functions defined in it."""
    body = definition.body
    waiting: list[ast.AST] = list(reversed(body)) if isinstance(body, list) else [body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def list_returned(definition: Definition) -> list[ast.expr | None]:
    """List what the return statements of a function return; of a lambda its body.

    >>> function = ast.parse("def f(x): return x").body[0]
    >>> [ast.unparse(value) for value in list_returned(function)]
    ['x']
    """
    if isinstance(definition, ast.Lambda):
        return [definition.body]
    return [node.value for node in iter_own_nodes(definition) if isinstance(node, ast.Return)]


_HARMLESS = ("detach_", "requires_grad_", "rename_", "share_memory_")
"""Methods with a name as of an edit in place that leave the numbers as they are."""


def find_edited(node: ast.AST) -> ast.expr | None:
    """Return the expression whose value a statement or a call edits in place; None if it edits none.

    >>> [ast.unparse(find_edited(node)) for node in ast.parse("x += 1; x[0] = 1").body]
    ['x', 'x[0]']
    >>> ast.unparse(find_edited(ast.parse("x.mul_(2)", mode="eval").body))
    'x'
    """
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Assign):
        return next((target for target in node.targets if isinstance(target, ast.Subscript)), None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method.endswith("_") and not method.endswith("__") and method not in _HARMLESS:
            return node.func.value
    return None


def is_value(returned: ast.expr | None) -> bool:
    """Return whether what a return statement returns is a value, and not None."""
    return returned is not None and not (isinstance(returned, ast.Constant) and returned.value is None)


_PARSE_ATTEMPTS = 3


@lru_cache(maxsize=64)
def _parse_lines(lines: tuple[str, ...]) -> ast.Module | None:
    return _parse_python("".join(lines))


@lru_cache(maxsize=64)
def _list_definitions(lines: tuple[str, ...]) -> tuple[Definition, ...]:
    tree = _parse_lines(lines)
    if tree is None:
        return ()
    return tuple(n for n in ast.walk(tree) if isinstance(n, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef))


def _parse_python(text: str) -> ast.Module | None:
    """Parse ``text``; None if it is not valid Python, such as a cell with magics or a file that has changed."""
    for _attempt in range(_PARSE_ATTEMPTS):
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):
            return None
        except SystemError:
            # CPython 3.11 raises it if other code is parsed at the same time, e.g. to print an error of a finalizer.
            continue
    return None


def _contains_code(node: Definition, code: CodeType) -> bool:
    """Whether the instructions of ``code`` lie inside ``node``."""
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column is not None]
    positions = [(line, column) for line, column in places if column]
    if places and not positions and isinstance(node, ast.Lambda):
        return _returns_same_constant(node, code)
    body = node.body if isinstance(node, ast.Lambda) else node
    start, end = (body.lineno, body.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return not positions or start <= max(positions) <= end


def _returns_same_constant(node: ast.Lambda, code: CodeType) -> bool:
    """Whether ``node`` may be ``code``, which returns a constant: for such lambdas Python 3.12 notes no columns."""
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    if [a.arg for a in arguments] != [*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]:
        return False
    try:
        return bool(ast.literal_eval(node.body) == code.co_consts[-1])
    except ValueError:  # what is computed, perhaps from constants alone
        return not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node.body))
