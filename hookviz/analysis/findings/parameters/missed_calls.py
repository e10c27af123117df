"""Reads in a forward why it did not call a part or use a parameter: it does not name it, or a branch led past."""

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.parameters.cutting_code import UNSEEN
from hookviz.support.messages import _, join_sentences
from hookviz.support.source_code import CodePlace

_ENDS = (ast.Return, ast.Continue, ast.Break)
"""The ends of a block that lead past what comes after it; after ``raise``, a forward does not return at all."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class MissedCall(NamedTuple):
    """What the code of a forward says about a part that it did not call, or a parameter that it did not use."""

    sentence: str
    code: CodePlace
    is_likely: bool = False
    """Whether the forward also calls what was not followed, which may cut the graph."""


class _Branch(NamedTuple):
    """Something that can lead past a piece of code: most often a side of an ``if``."""

    line: int
    text: str = ""
    """The condition of the ``if``; empty for a loop, or a ``return`` somewhere in what comes before."""
    side: int = 0
    """0 if the code runs where the condition holds, 1 if it runs otherwise."""
    in_line: bool = False
    """Whether the line may have run all the same, as that of a comprehension over nothing."""


_IsUse = Callable[[ast.expr], bool]
"""Tells whether an expression is a use of what is looked for."""
_Use = tuple[int, tuple[_Branch, ...]]
"""The line of a use, and what can lead past it."""


def find_missed_use(code: CallCode, module: int, attribute: str) -> MissedCall | None:
    """Say because of which ``if`` the forward of a module did not use its parameter; None if the text does not show it.

    That is so if each use in the text of the forward stands on the same side of the same ``if`` and of no other, and
    no code of the forward can cut the graph of what a use gives.
    """
    forward = code.find_forward(module)
    if forward is None:
        return None
    reading = code.read([forward.region])
    ways = {branches for _line, branches in _list_uses(forward.node, partial(_is_attribute, attribute))}
    way = ways.pop() if len(ways) == 1 else ()
    if len(way) != 1 or not way[0].text or reading.code or _computes_choices(forward.node):
        return None
    [branch] = way
    place = CodePlace(forward.file, branch.line)
    text = _("In the forward of {class}, if {condition} ({where}) decides whether they are used.")
    names = {"class": code.trace.modules[module].kind, "condition": branch.text}
    return MissedCall(text.format(where=place.where, **names), place, bool(reading.other))


def _computes_choices(function: ast.AST) -> bool:
    """Return whether a function compares elsewhere than in a condition: what ``gate > 0`` gives has no graph."""
    nodes = list(ast.walk(function))
    tests = [node.test for node in nodes if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert))]
    conditions = {id(part) for test in tests for part in ast.walk(test)}
    return any(isinstance(node, ast.Compare) and id(node) not in conditions for node in nodes)


def _is_attribute(attribute: str, part: ast.expr) -> bool:
    return isinstance(part, ast.Attribute) and part.attr == attribute and ast.unparse(part.value) == "self"


def find_missed_call(code: CallCode, caller: int, attribute: str) -> MissedCall | None:
    """Say why the forward of a module did not call its part ``attribute``; None if its text does not show that."""
    forward = code.find_forward(caller)
    if forward is None:
        return None
    if _is_unnamed(code, forward.node, attribute):
        text = _("Its forward ({where}) does not name {name}.").format(where=forward.place.where, name=attribute)
        return MissedCall(text, forward.place)
    found = _list_uses(forward.node, partial(_calls_part, attribute))
    if len(found) != 1 or any(branch.in_line for branch in found[0][1]):
        return None
    line, branches = found[0]
    place = CodePlace(forward.file, line)
    sentence = _("Its forward calls it at {where}, which did not run.").format(where=place.where)
    if len(branches) != 1 or not branches[0].text:
        return MissedCall(sentence, place)
    place = CodePlace(forward.file, branches[0].line)
    more = _("What decides is if {condition} ({where}).").format(condition=branches[0].text, where=place.where)
    return MissedCall(join_sentences([sentence, more]), place)


def _is_unnamed(code: CallCode, function: ast.AST, attribute: str) -> bool:
    """Whether a forward does not name a part, and calls no function of the program that might."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.Attribute) and node.attr == attribute for node in nodes):
        return False
    return all(ast.unparse(node.func) not in code.functions.names for node in nodes if isinstance(node, ast.Call))


def _list_uses(function: ast.FunctionDef | ast.AsyncFunctionDef, is_use: _IsUse) -> list[_Use]:
    """List the uses in a function; none if some of them stand where it is not followed what leads past them."""
    found = list(_find_uses(function.body, is_use, ()))
    total = sum(isinstance(node, ast.expr) and is_use(node) for node in ast.walk(function))
    return found if len(found) == total else []


def _find_uses(statements: Sequence[ast.stmt], is_use: _IsUse, around: tuple[_Branch, ...]) -> Iterator[_Use]:
    """Yield the line of each use, with the conditions that can lead past it."""
    passed = around
    for statement in statements:
        blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        for side, block in enumerate(blocks):
            yield from _find_uses(block, is_use, (*passed, *_list_branches(statement, side)))
        for part in ast.iter_child_nodes(statement):
            if not isinstance(part, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                yield from _find_in_expression(part, is_use, passed)
        passed += _list_ends(
            statement, [side for side, block in enumerate(blocks) if block and isinstance(block[-1], _ENDS)]
        )


def _list_branches(statement: ast.stmt, side: int) -> tuple[_Branch, ...]:
    """List what can lead past a block of a statement, which is its first or second one."""
    if isinstance(statement, ast.If):
        return (_Branch(statement.lineno, ast.unparse(statement.test), side),)
    return (_Branch(statement.lineno),) if isinstance(statement, _LOOPS) else ()


def _list_ends(statement: ast.stmt, ended: Sequence[int]) -> tuple[_Branch, ...]:
    """List what in a statement, some of whose blocks end the forward or the round, can lead past what comes after."""
    is_if = isinstance(statement, ast.If)
    direct = _list_branches(statement, 1 - ended[0]) if is_if and ended else ()
    returns = sum(isinstance(node, ast.Return) for node in ast.walk(statement))
    return (*direct, _Branch(statement.lineno)) if returns > (len(ended) if is_if else 0) else direct


def _find_in_expression(part: ast.AST, is_use: _IsUse, around: tuple[_Branch, ...]) -> Iterator[_Use]:
    """Yield the uses in an expression; ``a if condition else b`` is a branch, too."""
    if isinstance(part, ast.expr) and is_use(part):
        yield part.lineno, around
    inner = (*around, _Branch(part.lineno, in_line=True)) if isinstance(part, UNSEEN) else around
    for child in ast.iter_child_nodes(part):
        more = inner
        if isinstance(part, ast.IfExp) and child is not part.test:
            more = (*inner, _Branch(part.lineno, ast.unparse(part.test), int(child is part.orelse)))
        yield from _find_in_expression(child, is_use, more)


def _calls_part(attribute: str, expression: ast.expr) -> bool:
    """Whether code calls ``self.attribute``: of an item of it, the index may be another one."""
    function = expression.func if isinstance(expression, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == attribute and isinstance(function.value, ast.Name)
