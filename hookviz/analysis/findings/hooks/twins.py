"""Finds what ran in the place of a module that was not called: one like it, or a container that called its parts."""

from hookviz.analysis.findings.hooks.timeline import Timeline
from hookviz.analysis.findings.parameters.places import Place
from hookviz.support.messages import _, join_list
from hookviz.trace import MODULE_HOOK_KINDS, UnfiredRow

TWIN = "twin"
"""The place of the call of a module that resembles one that was not called."""
MAX_TWINS = 4
"""A sentence names at most so many modules that resemble one."""


def find_twin(timeline: Timeline, hook: UnfiredRow) -> Place | None:
    """Return the calls of modules of the same class: at the same place in other models, or else anywhere."""
    found = _list_at_same_place(timeline, hook) or _list_of_class(timeline, hook.owner)
    if not found:
        return None
    name, step = next(iter(found.items()))
    more = join_list(list(found)[1:MAX_TWINS])
    names = {"other": name, "class": hook.owner, "step": f"{step + 1:,}", "more": more}
    text = _("{other}, another {class}, was called (step {step}).")
    if more:
        text = _("{other}, another {class}, was called (step {step}), as {more} was.")
    return Place(TWIN, text.format(**names), step)


def _list_at_same_place(timeline: Timeline, hook: UnfiredRow) -> dict[str, int]:
    """Return name → first step of the called modules of a class that have the same name in what holds them."""
    owner = hook.on if hook.kind in MODULE_HOOK_KINDS else hook.on.rpartition(".")[0]
    path = owner.rpartition(".")[2] if "." in owner else None
    found: dict[str, int] = {}
    for step in timeline.first_calls:
        row = timeline.module_at(step)
        other = row.name.rpartition(".")[2] if timeline.call_at(step).parent is not None else None
        if row.kind == hook.owner and path == other:
            found.setdefault(row.name, step)
    return found


def _list_of_class(timeline: Timeline, kind: str) -> dict[str, int]:
    """Return name → first step of the called modules of a class, if they hold others: most nets have Linears."""
    names = [row.name for row in timeline.trace.modules]
    found: dict[str, int] = {}
    for step in timeline.first_calls:
        row = timeline.module_at(step)
        if row.kind == kind and any(name.startswith(f"{row.name}.") for name in names):
            found.setdefault(row.name, step)
    return found


def find_other_home(timeline: Timeline, hook: UnfiredRow) -> Place | None:
    """Return the call of a module that called a part of that of a hook, and is neither it nor around it."""
    trace = timeline.trace
    steps = [step for step in timeline.first_calls if timeline.module_at(step).name == hook.inner]
    parent = next((parent for step in steps if (parent := timeline.call_at(step).parent) is not None), None)
    row = None if parent is None else trace.modules[trace.calls[parent].module]
    if row is None or hook.on == row.name or hook.on.startswith(f"{row.name}."):
        return None
    step = timeline.first_call_of(row.name)
    text = _("{inner} was called by {other}, a {class} (step {step}).")
    names = {"inner": hook.inner, "other": row.name, "class": row.kind, "step": f"{(step or 0) + 1:,}"}
    return Place(TWIN, text.format(**names), step)
