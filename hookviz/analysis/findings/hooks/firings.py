"""The firings of hooks, grouped by their functions."""

from collections.abc import Iterable

from hookviz.trace import Hook, StepKind, TraceData


def group_firings(trace: TraceData, kinds: Iterable[StepKind], *more: str) -> dict[int, list[int]]:
    """Group the steps of hooks of some kinds by their function: the first hook → the steps of all of them.

    A function may be on several owners, and a loop registers it anew in each round. ``more`` names columns of the rows
    of hooks that are to be equal as well.
    """
    groups: dict[tuple[object, ...], tuple[int, list[int]]] = {}
    for step in trace.lookup.steps_of_kinds(*kinds):
        index = trace.rows[step].hook
        if index is not None:
            row = trace.hook_rows[index]
            key = row.kind, row.file, row.line, row.name, *(getattr(row, column) for column in more)
            groups.setdefault(key, (index, []))[1].append(step)
    return dict(groups.values())


def list_fired(trace: TraceData, steps: Iterable[int]) -> tuple[Hook, ...]:
    """List the hooks that fired at some steps, one for each owner."""
    found: dict[str, Hook] = {}
    for index in dict.fromkeys(trace.rows[step].hook for step in steps):
        if index is not None:
            hook = trace.hook(index)
            found.setdefault(hook.on, hook)
    return tuple(found.values())
