"""Rules about what a hook function does with its arguments, read from its source."""

import ast
import inspect
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from hookviz.analysis.findings.hooks.hook_contracts import describe_parameters
from hookviz.analysis.findings.hooks.kept_outputs import read_stores
from hookviz.static_checks.hook_syntax import COUNTS, TUPLES, HookSyntax, read_hook, shorten_code, show_code
from hookviz.static_checks.static_finding import StaticFinding, make_finding
from hookviz.support.definitions import find_edited, iter_own_nodes, list_returned
from hookviz.support.messages import join_sentences
from hookviz.support.source_code import describe_function
from hookviz.trace.hook_facts import HOOK_FACTS

_COUNTS_OF_LOADING = (7, 8)
"""Hooks on ``load_state_dict`` are called with as many arguments."""
_CUTS = ("detach", "data", "item", "numpy", "tolist")
"""Methods and attributes of a tensor behind which no gradient flows."""


def find_in_function(
    function: Callable[..., Any], kind: str | None = None, *, with_kwargs: bool = False
) -> Iterator[StaticFinding]:
    """Find mistakes in a hook function; ``kind`` and ``with_kwargs`` are how it is registered, if known."""
    label = describe_function(function).label
    yield from _check_parameters(function, label, kind, with_kwargs=with_kwargs)
    hook = read_hook(function, kind)
    if hook is not None:
        rules = (_find_edits_in_place, _find_replaced_output, find_kept_tensors)
        yield from chain.from_iterable(rule(hook, label) for rule in rules)


def _check_parameters(
    function: Callable[..., Any], label: str, kind: str | None, *, with_kwargs: bool
) -> Iterator[StaticFinding]:
    """Say if hooks of its kind, or of no kind at all, are called with as many arguments as the function takes."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    facts, contract = HOOK_FACTS.get(kind or ""), describe_parameters(kind or "", label)
    if facts is not None and contract is not None:
        if not _can_take(signature, len(facts.with_kwargs if with_kwargs else facts.parameters)):
            yield StaticFinding(label, "error", "parameters", join_sentences(contract))
    elif kind is None and not any(_can_take(signature, count) for count in (*COUNTS, *_COUNTS_OF_LOADING)):
        yield make_finding("parameters", "error", label, signature=shorten_code(str(signature)))


def _can_take(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _find_edits_in_place(hook: HookSyntax, label: str) -> Iterator[StaticFinding]:
    """``grad *= 2``, ``grad.mul_(2)``, ``grad[0] = 0`` and the like, once for each argument."""
    found: set[str] = set()
    for node in iter_own_nodes(hook.definition):
        edited = find_edited(node)
        known = None if edited is None else hook.role_of(edited)
        if edited is None or known is None or known[0] in found:
            continue
        name, role = known
        is_tuple, depth = role in TUPLES, _count_subscripts(edited)
        parts = {"name": name, "code": show_code(node)}
        if is_tuple and depth == 1 and not isinstance(node, ast.Call):
            yield make_finding("tuple_item", hook.worst, label, **parts)
        elif (not is_tuple or depth) and role != "grad_input":
            yield make_finding(f"edits.{role}", "warning", label, **parts)
        else:
            continue
        found.add(name)


def _count_subscripts(expression: ast.expr) -> int:
    count = 0
    while isinstance(expression, ast.Subscript | ast.Attribute):
        count += isinstance(expression, ast.Subscript)
        expression = expression.value
    return count


def _find_replaced_output(hook: HookSyntax, label: str) -> Iterator[StaticFinding]:
    """What a forward hook returns replaces the output; a tuple that a lambda returns probably should not."""
    for value in list_returned(hook.definition):
        if value is None:
            continue
        parts = {"code": show_code(value)}
        if isinstance(hook.definition, ast.Lambda) and isinstance(value, ast.Tuple | ast.List):
            if "gradient" in hook.roles.values():
                yield make_finding("returns_tuple", hook.worst, label, **parts)
            elif hook.is_forward:
                yield make_finding("replaces_output", "warning", label, **parts)
        elif hook.is_forward and _is_cut(value, hook):
            yield make_finding("cuts_graph", "warning", label, **parts)


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


def find_kept_tensors(hook: HookSyntax, label: str) -> Iterator[StaticFinding]:
    """Find the first argument that outlives the hook: in a container, an attribute or a global variable."""
    nodes = list(iter_own_nodes(hook.definition))
    outer = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own = {*hook.roles, *(stored - outer)}
    for store in (store for node in nodes for store in read_stores(node, outer)):
        known = None if isinstance(store.value, ast.Attribute) else hook.role_of(store.value)
        if known is None or known[1] not in ("input", "output") or _root_name(store.target) in own:
            continue
        yield make_finding("keeps_graph", "remark", label, code=show_code(store.value))
        return


def _root_name(expression: ast.expr) -> str:
    while isinstance(expression, ast.Subscript | ast.Attribute | ast.Call):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression.id if isinstance(expression, ast.Name) else ""
