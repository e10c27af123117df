"""Find hooks that keep what they were given, and of which something else is left: edited in place, or overwritten."""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.hooks.firings import group_firings, identify_run, list_fired, name_fired
from hookviz.analysis.findings.hooks.program_text import list_given, parse_hook
from hookviz.support.definitions import list_names
from hookviz.support.messages import _
from hookviz.support.source_code import place_of
from hookviz.trace import Hook, TraceData

_ADDING = ("append", "appendleft", "add", "insert", "put", "setdefault", "__setitem__")
"""Methods that add their last argument to a container."""
_KEEPING = (*_ADDING[:2], "insert", "setdefault", "__setitem__")
"""Those that keep it as it is; an object of one's own may have a method ``add`` that reads the numbers at once."""
_SAME_MEMORY = frozenset({"data", "detach", "requires_grad_", "squeeze", "unsqueeze", "view"})
"""Methods and attributes of a tensor that do not copy its numbers."""
_SAME_ON_CPU = _SAME_MEMORY | {"cpu", "numpy"}
"""Those of a tensor on the CPU."""


@dataclass(frozen=True)
class Store:
    """Code of a hook that keeps something in a container or attribute which outlives the call."""

    target: ast.expr
    value: ast.expr
    end: tuple[int, int]
    """Line and column behind it."""
    method: str = ""
    """The method that adds it; empty for an assignment."""


def list_kept_outputs(trace: TraceData) -> list[Finding]:
    """List the hooks that keep an output which is edited later, and those that keep only the last one of several."""
    editors = {value: index for index, call in reversed(list(enumerate(trace.calls))) for value in call.edits}
    found: list[Finding] = []
    for index, steps in group_firings(trace, ["forward_hook", "full_backward_hook"]).items():
        stores = list(_list_stores(trace.hook(index)))
        if stores:
            found += [*_find_edited(trace, steps, stores, editors), *_find_overwritten(trace, index, steps, stores)]
    return found


# -- edited in place


def _find_edited(
    trace: TraceData, steps: list[int], stores: list[Store], editors: Mapping[Any, int]
) -> Iterator[Finding]:
    """Find a hook that keeps an output which a later call edits in place; ``editors``: value → that call."""
    edited = [step for step in steps if trace.rows[step].effect == "kept" and trace.rows[step].after in editors]
    hooks = list_fired(trace, edited)
    value = trace.rows[edited[0]].after if hooks else None
    if not isinstance(value, int):
        return
    same = _SAME_ON_CPU if trace.values[value][2] == "cpu" else _SAME_MEMORY
    text = ast.unparse(parse_hook(hooks[0]) or ast.Module([], []))
    roots = ((one, one.target.value if isinstance(one.target, ast.Subscript) else one.target) for one in stores)
    once = (one for one, root in roots if text.count(ast.unparse(root)) == 1 and not _is_used_later(one, hooks[0]))
    once = (one for one in once if one.method in ("", *_KEEPING))
    kept = next((one for one in once if _shows(one.value, _name_output(hooks[0]), same)), None)
    if kept is None:
        return
    names = {**name_fired(hooks), "editor": trace.plain_call(editors[value]), "code": ast.unparse(kept.value)}
    finding = Finding(
        edited[0],
        "overwritten_output",
        _("{hook} keeps the output of {on}, and {editor} edits it in place afterwards.").format(**names),
        "warning",
        certainty="likely",
        cause=_("{code} has the same memory as the output: that of {editor} is left there.").format(**names),
        advice=_("Keep a copy with clone(), or let {editor} make a new tensor (inplace=False).").format(**names),
        hooks=hooks,
    )
    yield put_line(finding, place_of(kept.value, hooks[0]), "inside")


def _is_used_later(store: Store, hook: Hook) -> bool:
    """Whether a hook reads the object that keeps something again after that: it may copy or clear what it keeps."""
    names = _list_owners(store.target)
    loads = (part for part in ast.walk(parse_hook(hook) or ast.Module([], [])) if isinstance(part, ast.Name))
    return any(part.id in names and (part.lineno, part.col_offset) >= store.end for part in loads)


def _name_output(hook: Hook) -> str:
    """Return the parameter of a forward hook that gets the output; empty if it is not clear."""
    names = list_given(hook)
    return names[-1] if len(names) in (3, 4) and hook.kind == "forward_hook" else ""


def _shows(value: ast.expr, name: str, same: frozenset[str]) -> bool:
    """Return whether an expression is a tensor with the memory of a variable; ``same`` do not copy it."""
    while not isinstance(value, ast.Name):
        if isinstance(value, ast.Call) and not isinstance(value.func, ast.Attribute):
            return False
        value = value.func if isinstance(value, ast.Call) else value
        if not isinstance(value, ast.Attribute) or value.attr not in same:
            return False
        value = value.value
    return bool(name) and value.id == name


# -- overwritten by the next call


def _find_overwritten(trace: TraceData, first: int, steps: list[int], stores: list[Store]) -> Iterator[Finding]:
    """Find a hook that writes to one place several times in a forward or pass: the last one is left."""
    for store in stores:
        key = None if store.method else _find_key(store.target, first, trace)
        if key is None:
            continue
        places: dict[tuple[object, ...], list[int]] = {}
        for step in steps:
            place = _locate_store(trace, step, key)
            if place is not None:
                places.setdefault(place, []).append(step)
        several = next((found for found in places.values() if len(found) > 1), None)
        if several is not None:
            yield _make_overwritten(trace, several, store)
            return


def _find_key(target: ast.expr, first: int, trace: TraceData) -> str | None:
    """Return what tells the places apart at which a hook stores something: ``class``, ``hook``; None if unclear.

    It is ``class`` if the key is the name of the class of the module, and ``hook`` if nothing but the hook decides: a
    constant, its module, or what it holds and nobody changes.
    """
    hook, held = trace.hook(first), dict(trace.hook_rows[first].held)
    index, parameters = target.slice if isinstance(target, ast.Subscript) else ast.Constant(0), list_given(hook)
    module = parameters[0] if parameters else ""
    if ast.unparse(index) in (f"type({module}).__name__", f"{module}.__class__.__name__"):
        return "class"
    is_fixed = isinstance(index, ast.Constant) or (isinstance(index, ast.Name) and index.id in (module, *held))
    return "hook" if is_fixed else None


def _locate_store(trace: TraceData, step: int, key: str) -> tuple[object, ...] | None:
    """Return the forward or pass in which a hook fired, and where it stores something; None for a recomputation."""
    row = trace.rows[step]
    hook = None if row.hook is None else trace.hook_rows[row.hook]
    if hook is None or hook.module is None or (row.call is not None and trace.calls[row.call].recomputed):
        return None
    own = trace.modules[hook.module].kind if key == "class" else (hook.key, hook.module, hook.held)
    return (*identify_run(trace, step), own)


def _make_overwritten(trace: TraceData, steps: list[int], store: Store) -> Finding:
    hooks = list_fired(trace, steps)
    names = {**name_fired(hooks), "code": ast.unparse(store.target), "count": f"{len(steps):,}"}
    finding = Finding(
        steps[1],
        "kept_last",
        _(
            "{hook} fired {count} times in one pass, on {on}, and wrote to {code} each time: the last one is left."
        ).format(**names),
        "remark",
        advice=_("Append to a list, or give each its own key."),
        hooks=hooks,
    )
    return put_line(finding, place_of(store.target, hooks[0]), "inside")


# -- reading the function


def _list_stores(hook: Hook) -> Iterator[Store]:
    """Yield what a hook keeps of what it was given, each time, in something that it does not make itself.

    What stands behind a condition, and arguments that the function gives another value, are left out.
    """
    function = parse_hook(hook)
    if function is None or hook.line is None:
        return
    local = {*list_names(function, ast.Store)}
    given = set(list_given(hook)[1:]) - local
    lines = [ast.Expr(function.body)] if isinstance(function, ast.Lambda) else function.body
    plain = (line for line in lines if isinstance(line, (ast.Expr, ast.Assign)))
    for store in (found for line in plain for node in ast.walk(line) for found in read_stores(node)):
        used = {*list_names(store.value)}
        is_computed_from = not used.isdisjoint(_list_owners(store.target))
        if used & given and local.isdisjoint(list_names(store.target)) and not is_computed_from:
            yield store


def _list_owners(target: ast.expr) -> list[str]:
    """List the variable from which code reaches a container or an attribute."""
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return list_names(target)


def read_stores(node: ast.AST, outer: Collection[str] = ()) -> Iterator[Store]:
    """Yield what a call or an assignment keeps: in a container, an attribute, or a variable of ``outer`` scopes."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args and node.func.attr in _ADDING:
        yield Store(node.func.value, node.args[-1], _find_end(node), node.func.attr)
    for target in node.targets if isinstance(node, ast.Assign) else ():
        is_outer = isinstance(target, ast.Name) and target.id in outer
        if is_outer or isinstance(target, (ast.Subscript, ast.Attribute)):
            yield Store(target, node.value, _find_end(node))  # type: ignore[attr-defined, arg-type]


def _find_end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0
