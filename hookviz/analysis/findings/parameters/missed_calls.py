"""Reads in a forward why it did not call a part or use a parameter: it does not name it, or a branch led past."""

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from hookviz.analysis.findings.parameters.call_code import CallCode, Region
from hookviz.analysis.findings.parameters.cutting_code import parse_source
from hookviz.support.messages import _, join_sentences
from hookviz.support.source_code import CodePlace

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class MissedCall(NamedTuple):
    """What the code of a forward says about a part that it did not call, or a parameter that it did not use."""

    sentence: str
    code: CodePlace


class _Branch(NamedTuple):
    """An ``if`` that can lead past a piece of code."""

    line: int
    text: str


_IsUse = Callable[[ast.expr], bool]
"""Tells whether an expression is a use of what is looked for."""


def find_missed_use(code: CallCode, module: int, attribute: str) -> MissedCall | None:
    """Say because of which ``if`` the forward of a module did not use its parameter; None if the text does not show it.

    That is so if each use in the text of the forward stands behind the same ``if``.
    """
    region = code.find_forward(module)
    function = None if region is None else _find_function(code, region)
    if region is None or function is None:
        return None
    source = code.trace.sources[region[0]]
    found = list(_find_uses(function.body, partial(_is_attribute, attribute), ()))
    branches = {branches[-1] for _ignored, branches in found if branches}
    if len(branches) != 1 or not all(branches for _ignored, branches in found):
        return None
    branch = branches.pop()
    place = CodePlace(source.file, branch.line + source.line - 1)
    text = _("In the forward of {class}, if {condition} ({where}) decides whether they are used.")
    names = {"class": code.trace.modules[module].kind, "condition": branch.text}
    return MissedCall(text.format(where=place.where, **names), place)


def _is_attribute(attribute: str, part: ast.expr) -> bool:
    is_own = isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
    return is_own and isinstance(part, ast.Attribute) and part.attr == attribute


def find_missed_call(code: CallCode, caller: int, attribute: str) -> MissedCall | None:
    """Say why the forward of a module did not call its part ``attribute``; None if its text does not show that."""
    region = code.find_forward(caller)
    function = None if region is None else _find_function(code, region)
    if region is None or function is None:
        return None
    source, lines = code.trace.sources[region[0]], region[1]
    shift = source.line - 1
    if _is_unnamed(code, function, attribute):
        start = CodePlace(source.file, lines.first)
        text = _("Its forward ({where}) does not name {name}.").format(where=start.where, name=attribute)
        return MissedCall(text, start)
    found = list(_find_uses(function.body, partial(_calls_part, attribute), ()))
    if len(found) != 1:
        return None
    line, branches = found[0]
    place = CodePlace(source.file, line + shift)
    sentence = _("Its forward calls it at {where}, which did not run.").format(where=place.where)
    if len(branches) != 1:
        return MissedCall(sentence, place)
    place = CodePlace(source.file, branches[0].line + shift)
    more = _("What decides is if {condition} ({where}).").format(condition=branches[0].text, where=place.where)
    return MissedCall(join_sentences([sentence, more]), place)


def _is_unnamed(code: CallCode, function: ast.AST, attribute: str) -> bool:
    """Whether a forward does not name a part, and calls no function of the program that might."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.Attribute) and node.attr == attribute for node in nodes):
        return False
    return all(ast.unparse(node.func) not in code.function_names for node in nodes if isinstance(node, ast.Call))


def _find_function(code: CallCode, region: Region) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the function of some lines."""
    source = code.trace.sources[region[0]]
    tree, lines = parse_source(source.text), region[1].shift(1 - source.line)
    if tree is None:
        return None
    nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return next((node for node in nodes if node.end_lineno == lines.last and node.lineno >= lines.first), None)


def _find_uses(
    statements: Sequence[ast.stmt], is_use: _IsUse, around: tuple[_Branch, ...]
) -> Iterator[tuple[int, tuple[_Branch, ...]]]:
    """Yield the line of each use, with the conditions that can lead past it."""
    passed = around
    for statement in statements:
        blocks = [block for block in _list_blocks(statement) if block]
        inner = passed
        if isinstance(statement, ast.If):
            inner = (*passed, _Branch(statement.lineno, ast.unparse(statement.test)))
        for block in blocks:
            yield from _find_uses(block, is_use, inner)
        own = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
        for expression in own:
            yield from _find_in_expression(expression, is_use, passed)
        if isinstance(statement, ast.If) and any(isinstance(block[-1], _ENDS) for block in blocks):
            passed = inner


def _list_blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    return [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]


def _find_in_expression(
    expression: ast.expr, is_use: _IsUse, around: tuple[_Branch, ...]
) -> Iterator[tuple[int, tuple[_Branch, ...]]]:
    """Yield the uses in an expression; ``a if condition else b`` is a branch, too."""
    if is_use(expression):
        yield expression.lineno, around
    for child in ast.iter_child_nodes(expression):
        if isinstance(child, ast.expr):
            is_branch = isinstance(expression, ast.IfExp) and child is not expression.test
            test = expression.test if isinstance(expression, ast.IfExp) else None
            more = (_Branch(expression.lineno, ast.unparse(test)),) if is_branch and test is not None else ()
            yield from _find_in_expression(child, is_use, (*around, *more))


def _calls_part(attribute: str, expression: ast.expr) -> bool:
    return isinstance(expression, ast.Call) and _names_part(expression.func, attribute)


def _names_part(function: ast.expr, attribute: str) -> bool:
    """Whether code that is called is ``self.attribute``: of an item of it, the index may be another one."""
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.attr == attribute
