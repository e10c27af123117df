"""Find inputs and outputs of a module that a hook keeps, and with them the graph of the pass."""

import ast
from collections.abc import Iterator

from hookviz.static_checks.hook_syntax import HookSyntax, show_code
from hookviz.static_checks.static_finding import StaticFinding, make_finding

_ADDING = ("append", "appendleft", "add", "insert", "put")
"""Methods that add their last argument to a container."""


def find_kept_tensors(hook: HookSyntax, label: str) -> Iterator[StaticFinding]:
    """Find the first argument that outlives the hook: in a container, an attribute or a global variable."""
    outer = {name for node in hook.own_nodes() if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    local = {
        node.id
        for node in hook.own_nodes()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in outer
    }
    for container, value in (stored for node in hook.own_nodes() for stored in _stores_of(node, outer)):
        known = None if isinstance(value, ast.Attribute) else hook.role_of(value)
        if known is None or known[1] not in ("input", "output") or _root_name(container) in {*local, *hook.roles}:
            continue
        yield make_finding("keeps_graph", "remark", label, code=show_code(value))
        return


def _stores_of(node: ast.AST, outer: set[str]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield (container, value) of each value that a statement or a call stores."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr in (*_ADDING, "__setitem__", "setdefault"):
            yield node.func.value, node.args[-1]
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript | ast.Attribute) or (
                isinstance(target, ast.Name) and target.id in outer
            ):
                yield target, node.value


def _root_name(expression: ast.expr) -> str:
    while isinstance(expression, ast.Subscript | ast.Attribute | ast.Call):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression.id if isinstance(expression, ast.Name) else ""
