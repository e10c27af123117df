"""Reads in the forward of a module why it did not call one of its parts: it does not name it, or a branch led past."""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.parameters.cutting_code import Lines, parse_source
from hookviz.support.messages import _, join_sentences
from hookviz.support.source_code import describe_place

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class MissedCall(NamedTuple):
    """What the code of a forward says about a part that it did not call."""

    sentence: str
    file: str | None
    line: int


class _Branch(NamedTuple):
    """An ``if`` that can lead past a piece of code."""

    line: int
    text: str


def find_missed_call(code: CallCode, caller: int, attribute: str) -> MissedCall | None:
    """Say why the forward of a module did not call its part ``attribute``; None if its text does not show that."""
    region = code.find_forward(caller)
    if region is None:
        return None
    source, lines = code.trace.sources[region[0]], region[1]
    tree, shift = parse_source(source.text), source.line - 1
    function = None if tree is None else _find_function(tree, lines.shift(-shift))
    if function is None:
        return None
    if _is_unnamed(code, function, attribute):
        where = describe_place(source.file, lines.first)
        text = _("Its forward ({where}) does not name {name}.").format(where=where, name=attribute)
        return MissedCall(text, source.file, lines.first)
    found = list(_find_calls(function.body, attribute, ()))
    if len(found) != 1:
        return None
    line, branches = found[0]
    where = describe_place(source.file, line + shift)
    sentence = _("Its forward calls it at {where}, which did not run.").format(where=where)
    if len(branches) != 1:
        return MissedCall(sentence, source.file, line + shift)
    branch = branches[0]
    where = describe_place(source.file, branch.line + shift)
    more = _("What decides is if {condition} ({where}).").format(condition=branch.text, where=where)
    return MissedCall(join_sentences([sentence, more]), source.file, branch.line + shift)


def _is_unnamed(code: CallCode, function: ast.AST, attribute: str) -> bool:
    """Whether a forward does not name a part, and calls no function of the program that might."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.Attribute) and node.attr == attribute for node in nodes):
        return False
    return all(ast.unparse(node.func) not in code.function_names for node in nodes if isinstance(node, ast.Call))


def _find_function(tree: ast.AST, lines: Lines) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return next((node for node in nodes if node.end_lineno == lines.last and node.lineno >= lines.first), None)


def _find_calls(
    statements: Sequence[ast.stmt], attribute: str, around: tuple[_Branch, ...]
) -> Iterator[tuple[int, tuple[_Branch, ...]]]:
    """Yield the line of each call of a part, with the conditions that can lead past it."""
    passed = around
    for statement in statements:
        blocks = [block for block in _list_blocks(statement) if block]
        inner = passed
        if isinstance(statement, ast.If):
            inner = (*passed, _Branch(statement.lineno, ast.unparse(statement.test)))
        for block in blocks:
            yield from _find_calls(block, attribute, inner)
        own = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
        for expression in own:
            yield from _find_in_expression(expression, attribute, passed)
        if isinstance(statement, ast.If) and any(isinstance(block[-1], _ENDS) for block in blocks):
            passed = inner


def _list_blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    return [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]


def _find_in_expression(
    expression: ast.expr, attribute: str, around: tuple[_Branch, ...]
) -> Iterator[tuple[int, tuple[_Branch, ...]]]:
    """Yield the calls in an expression; ``a if condition else b`` is a branch, too."""
    if isinstance(expression, ast.Call) and _names_part(expression.func, attribute):
        yield expression.lineno, around
    for child in ast.iter_child_nodes(expression):
        if isinstance(child, ast.expr):
            is_branch = isinstance(expression, ast.IfExp) and child is not expression.test
            test = expression.test if isinstance(expression, ast.IfExp) else None
            more = (_Branch(expression.lineno, ast.unparse(test)),) if is_branch and test is not None else ()
            yield from _find_in_expression(child, attribute, (*around, *more))


def _names_part(function: ast.expr, attribute: str) -> bool:
    """Whether code that is called is ``self.attribute``: of an item of it, the index may be another one."""
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.attr == attribute
