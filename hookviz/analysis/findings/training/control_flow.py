"""Tells from the text of a function whether a part of it may have been left out while the function ran."""

import ast
from functools import lru_cache

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_CHOICES = (ast.IfExp, ast.BoolOp, ast.Match, ast.ExceptHandler)


def may_be_left_out(scope: ast.AST, node: ast.AST) -> bool:
    """Whether code in a function may not have run: a condition decides, or a statement before it may leave its loop.

    Conditions that only ask whether there is a gradient decide nothing, nor the one that begins a script.

    >>> scope = ast.parse('''
    ... def train(rows, dry):
    ...     for row in rows:
    ...         if row.grad is None:
    ...             continue
    ...         first(row)
    ...         if dry:
    ...             continue
    ...         second(row)
    ... ''').body[0]
    >>> calls = [node for node in ast.walk(scope) if isinstance(node, ast.Call)]
    >>> [may_be_left_out(scope, call) for call in calls]
    [False, True]
    """
    parents, leaving = _read_scope(scope)
    if _is_chosen(scope, node, parents):
        return True
    around = _list_around(node, parents)
    line = getattr(node, "lineno", 0)
    return any(one.lineno < line and _leaves(one, scope, around, parents) for one in leaving)


@lru_cache(maxsize=4)  # the scope of a script is all of its text, with many calls to ask about
def _read_scope(scope: ast.AST) -> tuple[dict[int, ast.AST], list[ast.stmt]]:
    """Return what is around each part of a function, by the id of the part, and what leaves a loop or the function."""
    parents, leaving = dict[int, ast.AST](), list[ast.stmt]()
    for outer in ast.walk(scope):
        parents.update((id(inner), outer) for inner in ast.iter_child_nodes(outer))
        if isinstance(outer, ast.Continue | ast.Break | ast.Return):
            leaving.append(outer)
    return parents, leaving


def _is_chosen(scope: ast.AST, node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """Whether a condition between a function and a part of it decides if that runs, or another function does."""
    inner = node
    while inner is not scope and id(inner) in parents:
        outer = parents[id(inner)]
        is_branch = isinstance(outer, ast.If) and inner is not outer.test and not _asks_for_gradient(outer)
        if is_branch or isinstance(outer, _CHOICES) or (outer is not scope and isinstance(outer, _FUNCTIONS)):
            return True
        inner = outer
    return False


def _asks_for_gradient(statement: ast.If) -> bool:
    text = ast.unparse(statement.test)
    return "grad" in text or "__name__" in text


def _list_around(node: ast.AST, parents: dict[int, ast.AST]) -> list[ast.AST]:
    """List what lies around a part of a text, from the inside out."""
    around = []
    while id(node) in parents:
        node = parents[id(node)]
        around.append(node)
    return around


def _leaves(statement: ast.stmt, scope: ast.AST, around: list[ast.AST], parents: dict[int, ast.AST]) -> bool:
    """Whether a statement skips what comes after it in one of the loops, or in the function, that are around a part."""
    outside = _list_around(statement, parents)
    inside = outside[: outside.index(scope)] if scope in outside else outside
    if any(isinstance(one, _FUNCTIONS) for one in inside):
        return False
    loop = next((one for one in outside if isinstance(one, _LOOPS)), None)
    is_own = isinstance(statement, ast.Return) or loop in around
    return is_own and not any(isinstance(one, ast.If) and _asks_for_gradient(one) for one in outside[:1])
