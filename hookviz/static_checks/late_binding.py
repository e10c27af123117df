"""Find hooks that read a loop variable: all of them see its last value."""

from collections.abc import Iterator, Sequence
from typing import Any

from hookviz.static_checks.registered_hooks import NamedModel, RegisteredHook
from hookviz.static_checks.static_finding import StaticFinding, make_finding
from hookviz.support.columns import truncate
from hookviz.support.definitions import find_definition, list_loop_variables
from hookviz.support.printable import describe_type, make_printable

MAX_SHOWN_VALUE = 40
"""Letters of the loop variable's value that the finding shows."""


def find_late_binding(model: NamedModel) -> Iterator[StaticFinding]:
    """Find functions that a loop made several times, and that read the variable of this loop when they run."""
    made_from: dict[Any, list[RegisteredHook]] = {}
    for hook in model.hooks:
        code = getattr(hook.function, "__code__", None)
        if code is not None:
            made_from.setdefault(code, []).append(hook)
    for group in made_from.values():
        if len({id(hook.function) for hook in group}) > 1:
            yield from _find_in_copies(group)


def _find_in_copies(hooks: Sequence[RegisteredHook]) -> Iterator[StaticFinding]:
    """Find loop variables that several hooks, made of one piece of code, share."""
    definition, around = find_definition(hooks[0].function)
    for name in [] if definition is None else list_loop_variables(definition, around):
        sharing: dict[int, list[RegisteredHook]] = {}
        for hook in hooks:
            variable = _variable_of(hook.function, name)
            if variable is not None:
                sharing.setdefault(id(variable), []).append(hook)
        for group in sharing.values():
            if len({id(hook.function) for hook in group}) > 1:
                yield _describe_group(group, name)


def _variable_of(function: Any, name: str) -> Any:
    """Return what keeps the variable ``name`` that a function reads: a closure cell, or its globals; None if neither.

    A parameter of that name, such as in ``lambda grad, name=name: ...``, is the function's own.
    """
    code = function.__code__
    if name in code.co_varnames:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    if name in cells:
        return cells[name]
    return function.__globals__ if name in code.co_names and name in function.__globals__ else None


def _describe_group(hooks: Sequence[RegisteredHook], name: str) -> StaticFinding:
    variable = _variable_of(hooks[0].function, name)
    try:
        value = variable[name] if isinstance(variable, dict) else variable.cell_contents
    except (KeyError, ValueError):  # the variable was deleted
        value = None
    is_plain = type(value) in (str, int, float, bool, type(None))  # the repr of another object is the user's code
    shown = truncate(make_printable(repr(value) if is_plain else describe_type(value)), MAX_SHOWN_VALUE)
    parts = {"hook": hooks[0].label, "count": len(hooks), "name": name, "value": shown}
    return make_finding("late_binding", "warning", hooks[0].on, **parts)
