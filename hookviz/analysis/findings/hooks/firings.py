"""The firings of hooks: one by one, and grouped by their functions."""

from collections.abc import Iterable, Iterator, Sequence

from hookviz.support.messages import join_first
from hookviz.trace import FORWARD_HOOK_KINDS, Hook, HookRow, StepKind, TraceData, UnfiredRow
from hookviz.trace.traversal import iter_enclosing_calls


def iter_firings(trace: TraceData, *kinds: StepKind) -> Iterator[tuple[int, int, HookRow]]:
    """Yield for each firing of a hook of some kinds its step, the index of the hook, and the row of the hook."""
    for step in trace.lookup.steps_of_kinds(*kinds):
        index = trace.rows[step].hook
        if index is not None:
            yield step, index, trace.hook_rows[index]


def function_of(hook: HookRow | UnfiredRow) -> tuple[object, ...]:
    """Return what identifies the function of a hook, which may be on several owners."""
    return hook.name, hook.file, hook.line


def group_firings(trace: TraceData, kinds: Iterable[StepKind], *more: str) -> dict[int, list[int]]:
    """Group the steps of hooks of some kinds by their function: the first hook → the steps of all of them.

    A function may be on several owners, and a loop registers it anew in each round. ``more`` names columns of the rows
    of hooks that are to be equal as well.
    """
    groups: dict[tuple[object, ...], tuple[int, list[int]]] = {}
    for step, index, row in iter_firings(trace, *kinds):
        key = row.kind, *function_of(row), *(getattr(row, column) for column in more)
        groups.setdefault(key, (index, []))[1].append(step)
    return dict(groups.values())


def identify_run(trace: TraceData, step: int) -> tuple[int, ...]:
    """Return what identifies the forward, or the pass, in which a hook fired at a step."""
    row = trace.rows[step]
    is_forward = row.kind in FORWARD_HOOK_KINDS and row.call is not None
    outermost = [*iter_enclosing_calls(trace, row.call)][-1:] if is_forward else []
    return (row.pass_id, *outermost)


def list_hooks_at(trace: TraceData, steps: Iterable[int]) -> list[int]:
    """List the indexes of the hooks that fired at some steps, each once."""
    indexes = (trace.rows[step].hook for step in steps)
    return list(dict.fromkeys(index for index in indexes if index is not None))


def list_fired(trace: TraceData, steps: Iterable[int]) -> tuple[Hook, ...]:
    """List the hooks that fired at some steps, one for each owner."""
    found: dict[str, Hook] = {}
    for hook in map(trace.hook, list_hooks_at(trace, steps)):
        found.setdefault(hook.on, hook)
    return tuple(found.values())


def name_fired(hooks: Sequence[Hook]) -> dict[str, str]:
    """Name the hooks of one function in a sentence: ``hook``, and ``on``, their owners."""
    return {"hook": hooks[0].label, "on": join_first([hook.on for hook in hooks])}
