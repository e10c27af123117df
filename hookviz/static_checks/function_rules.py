"""Rules about what a hook function does with its arguments, read from its source."""

import ast
import inspect
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from hookviz.static_checks.hook_syntax import COUNTS, TUPLES, HookSyntax, read_hook
from hookviz.static_checks.static_finding import StaticFinding, make_finding
from hookviz.static_checks.stored_values import find_stored_values
from hookviz.support.columns import truncate
from hookviz.support.definitions import is_value
from hookviz.support.printable import make_printable
from hookviz.support.source_code import describe_function

_HARMLESS = ("requires_grad_", "rename_", "share_memory_")
"""Methods with a name as of an edit in place that leave the numbers as they are."""
_COUNTS_OF_LOADING = (7, 8)
"""Hooks on ``load_state_dict`` are called with as many arguments."""
_CUTS = ("detach", "data", "item", "numpy", "tolist")
"""Methods and attributes of a tensor behind which no gradient flows."""
MAX_SHOWN_CODE = 60
"""Letters of an expression that a sentence shows."""


def find_in_function(function: Callable[..., Any], kind: str | None = None) -> Iterator[StaticFinding]:
    """Find mistakes in a hook function; ``kind`` is how it is registered, if known."""
    label = describe_function(function).label
    if kind is None:
        yield from _check_parameters(function, label)
    hook = read_hook(function, kind)
    if hook is not None:
        rules = (_find_edits_in_place, _find_replaced_output, _find_mixed_returns)
        yield from chain.from_iterable(rule(hook, label) for rule in rules)
        yield from find_stored_values(hook, label)


def _check_parameters(function: Callable[..., Any], label: str) -> Iterator[StaticFinding]:
    """Say if no hook of a pass is called with as many arguments as the function takes."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    if not any(_can_take(signature, count) for count in (*COUNTS, *_COUNTS_OF_LOADING)):
        yield make_finding(
            "parameters", "error", label, signature=truncate(make_printable(str(signature)), MAX_SHOWN_CODE)
        )


def _can_take(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _find_edits_in_place(hook: HookSyntax, label: str) -> Iterator[StaticFinding]:
    """``grad *= 2``, ``grad.mul_(2)``, ``grad[0] = 0`` and the like, once for each argument."""
    found: set[str] = set()
    for node in hook.own_nodes():
        edited = _edited_expression(node)
        known = None if edited is None else hook.role_of(edited)
        if edited is None or known is None or known[0] in found:
            continue
        name, role = known
        is_tuple, depth = role in TUPLES, _count_subscripts(edited)
        parts = {"name": name, "code": _shown(node)}
        if is_tuple and depth == 1 and not isinstance(node, ast.Call):
            yield make_finding("tuple_item", hook.worst, label, **parts)
        elif (not is_tuple or depth) and role != "grad_input":
            yield make_finding(f"edits.{role}", "warning", label, **parts)
        else:
            continue
        found.add(name)


def _edited_expression(node: ast.AST) -> ast.expr | None:
    """The expression whose value a statement or a call edits in place; None if it edits none."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Assign):
        return next((target for target in node.targets if isinstance(target, ast.Subscript)), None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method.endswith("_") and not method.endswith("__") and method not in _HARMLESS:
            return node.func.value
    return None


def _count_subscripts(expression: ast.expr) -> int:
    count = 0
    while isinstance(expression, ast.Subscript | ast.Attribute):
        count += isinstance(expression, ast.Subscript)
        expression = expression.value
    return count


def _find_replaced_output(hook: HookSyntax, label: str) -> Iterator[StaticFinding]:
    """What a forward hook returns replaces the output; a tuple that a lambda returns probably should not."""
    for value in hook.returned():
        if value is None:
            continue
        parts = {"code": _shown(value)}
        if isinstance(hook.definition, ast.Lambda) and isinstance(value, ast.Tuple | ast.List):
            if "gradient" in hook.roles.values():
                yield make_finding("returns_tuple", hook.worst, label, **parts)
            elif hook.is_forward:
                yield make_finding("replaces_output", "warning", label, **parts)
        elif hook.is_forward and _is_method(value, "setdefault"):
            yield make_finding("replaces_output", "warning", label, **parts)
        elif hook.is_forward and _is_cut(value, hook):
            yield make_finding("cuts_graph", "warning", label, **parts)


def _is_method(expression: ast.expr, name: str) -> bool:
    return (
        isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute) and expression.func.attr == name
    )


def _is_cut(expression: ast.expr, hook: HookSyntax) -> bool:
    """Whether an expression is the output of the module behind a ``detach()`` or the like: ``o.detach().cpu()``."""
    cut = False
    while isinstance(expression, ast.Call | ast.Attribute):
        if isinstance(expression, ast.Attribute):
            cut = cut or expression.attr in _CUTS
            expression = expression.value
        else:
            expression = expression.func
    known = hook.role_of(expression)
    return cut and known is not None and known[1] == "output"


def _find_mixed_returns(hook: HookSyntax, label: str) -> Iterator[StaticFinding]:
    """A value in some branches, and nothing in others."""
    if isinstance(hook.definition, ast.Lambda):
        return
    are_values = [is_value(returned) for returned in hook.returned()]
    if any(are_values) and (not all(are_values) or _may_end_without_return(hook.definition.body)):
        yield make_finding("mixed_returns", "remark", label)


def _may_end_without_return(statements: list[ast.stmt]) -> bool:
    """Whether the end of these statements can be reached; in doubt, no."""
    last = statements[-1]
    if isinstance(last, ast.If):
        return not last.orelse or _may_end_without_return(last.body) or _may_end_without_return(last.orelse)
    if isinstance(last, ast.With):
        return _may_end_without_return(last.body)
    return isinstance(last, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For | ast.Pass | ast.Delete)


def _shown(node: ast.AST) -> str:
    return truncate(make_printable(ast.unparse(node)), MAX_SHOWN_CODE)
