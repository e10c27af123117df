"""Find what a hook keeps of its arguments after it has run."""

import ast
from collections.abc import Iterator

from hookviz.static_checks.hook_syntax import HookSyntax
from hookviz.static_checks.static_finding import StaticFinding, make_finding
from hookviz.support.columns import truncate
from hookviz.support.messages import _, join_sentences
from hookviz.support.printable import make_printable

_ADDING = ("append", "appendleft", "add", "insert", "put")
"""Methods that add their last argument to a container."""
_SAME_MEMORY = ("detach", "cpu", "data", "to")
"""Methods and attributes that return a tensor which may use the memory of the tensor itself."""
MAX_SHOWN_CODE = 60
"""Letters of an expression that a sentence shows."""


def find_stored_values(hook: HookSyntax, label: str) -> Iterator[StaticFinding]:
    """Find arguments that outlive the hook: in a container, an attribute or a global variable."""
    found: set[str] = set()
    outer = {name for node in hook.own_nodes() if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    local = {
        node.id
        for node in hook.own_nodes()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in outer
    }
    for node in hook.own_nodes():
        for container, value, grows in _stores_of(node, outer):
            kind = _kind_of_value(hook, value)
            if kind is None or kind in found or _root_name(container) in {*local, *hook.roles}:
                continue
            found.add(kind)
            sentence_of_growth = (
                _("{container} grows with every call: empty it between passes.").format(container=_shown(container))
                if grows
                else ""
            )
            finding = make_finding(kind, "remark", label, code=_shown(value))
            sentence = join_sentences([finding.sentence, sentence_of_growth])
            yield StaticFinding(finding.on, finding.severity, finding.kind, sentence)


def _stores_of(node: ast.AST, outer: set[str]) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Yield (container, value, whether the container grows) of each value that a statement or a call stores."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr in _ADDING:
            yield node.func.value, node.args[-1], True
        elif node.func.attr in ("__setitem__", "setdefault") and len(node.args) == 2:
            yield node.func.value, node.args[-1], False
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript | ast.Attribute) or (
                isinstance(target, ast.Name) and target.id in outer
            ):
                yield target, node.value, False


def _kind_of_value(hook: HookSyntax, value: ast.expr) -> str | None:
    """Which rule a stored expression meets: the argument itself, or another tensor on its memory; None if neither."""
    known = hook.role_of(value)
    if known is not None:
        return "keeps_graph" if known[1] in ("input", "output") else "keeps_gradient"
    through: set[str] = set()
    while isinstance(value, ast.Call | ast.Attribute):
        if isinstance(value, ast.Attribute):
            through.add(value.attr)
            value = value.value
        else:
            value = value.func
    if not through or not through <= set(_SAME_MEMORY) or hook.role_of(value) is None:
        return None
    return "keeps_memory" if through & {"detach", "data"} else None


def _root_name(expression: ast.expr) -> str:
    while isinstance(expression, ast.Subscript | ast.Attribute | ast.Call):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression.id if isinstance(expression, ast.Name) else ""


def _shown(node: ast.AST) -> str:
    return truncate(make_printable(ast.unparse(node)), MAX_SHOWN_CODE)
