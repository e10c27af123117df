"""Calls of one module in one pass: those that a checkpoint makes again, and the first of several."""

from collections.abc import Callable, Collection, Iterable, Set
from typing import Any, TypeVar

from hookviz.trace import TraceData
from hookviz.trace.traversal import find_calls_in_graphs

T = TypeVar("T")


def find_first_runs(trace: TraceData, pass_id: int, calls: Collection[int]) -> dict[int, int]:
    """Return call that checkpointing made, not inside another one → the call among ``calls`` that it recomputes.

    Of several calls of the module, it is the only one with equal inputs; if there is no such call, none is returned.
    """
    rows = trace.calls
    recomputed = [call for call in calls if rows[call].recomputed and not _is_recomputed(trace, rows[call].parent)]
    if not recomputed:
        return {}
    plain: dict[tuple[int, str], list[int]] = {}
    for call in calls:
        if not rows[call].recomputed:
            plain.setdefault((rows[call].module, rows[call].path), []).append(call)
    inputs = _list_inputs(trace, pass_id)
    found: dict[int, int] = {}
    for call in recomputed:
        first_runs = plain.get((rows[call].module, rows[call].path), [])
        if len(first_runs) > 1:
            first_runs = [first for first in first_runs if inputs.get(first) == inputs.get(call)]
        if len(first_runs) == 1:
            found[call] = first_runs[0]
    return found


def _is_recomputed(trace: TraceData, call: int | None) -> bool:
    return call is not None and trace.calls[call].recomputed


def find_first_of_several(trace: TraceData, pass_id: int) -> set[int]:
    """Return the calls of a pass that are the first of their modules, of those that are called again in it."""
    calls = dict.fromkeys(trace.rows[step].call for step in trace.lookup.steps(pass_id))
    counts: dict[tuple[int, str], list[int]] = {}
    for call in calls:
        if call is not None and not trace.calls[call].recomputed:
            counts.setdefault((trace.calls[call].module, trace.calls[call].path), []).append(call)
    firsts = (min(several) for several in counts.values() if len(several) > 1)
    return {call for call in firsts if (trace.calls[call].nth or trace.calls[call].number) == 1}


def leads_back(calls: Set[T], follow: Callable[[T], Iterable[T]]) -> bool:
    """Whether a path leads from one of ``calls`` out of them, and back to one of them; ``follow`` gives the next ones.

    >>> leads_back({1, 2}, {1: [2], 2: [3], 3: []}.__getitem__), leads_back({1, 3}, {1: [2], 2: [3], 3: []}.__getitem__)
    (False, True)
    """
    reached = {one for call in calls for one in follow(call)} - calls
    pending = [*reached]
    while pending:
        followers = set(follow(pending.pop())) - reached
        if followers & calls:
            return True
        reached |= followers
        pending += followers
    return False


def list_extra_runs(trace: TraceData, calls: Iterable[int]) -> set[int]:
    """Return those of ``calls`` that are one of the two runs of a checkpoint, while the other one made the graph."""
    runs = {call for call in calls if trace.calls[call].recomputed or trace.calls[call].mode == "checkpoint"}
    return runs - find_calls_in_graphs(trace) if runs else runs


def _list_inputs(trace: TraceData, pass_id: int) -> dict[int, list[tuple[Any, ...] | None]]:
    """Return call → the rows of the values that it was given in a pass."""
    rows = (trace.rows[step] for step in trace.lookup.steps(pass_id))
    inputs = ((row.own_call, row.after) for row in rows if row.kind == "call")
    return {
        call: [
            None if index is None else trace.values[index] for index in (after if isinstance(after, tuple) else [after])
        ]
        for call, after in inputs
    }
