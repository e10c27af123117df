"""Which boxes of module calls belong together where no gradient flows: tensors without a graph, and second runs."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from hookviz.analysis.findings.parameters.cut_names import MODES_THAT_CUT, CutNames
from hookviz.picture import element_ids as ids
from hookviz.picture.grouping import View
from hookviz.picture.primitives import Arrow, ArrowKind
from hookviz.picture.repeated_calls import find_first_runs
from hookviz.trace import TraceData
from hookviz.trace.traversal import iter_enclosing_calls


class CallArrows(NamedTuple):
    """The arrows between module calls, at most one from a box to another, and the second runs of calls."""

    arrows: dict[str, Arrow]
    """Id of an arrow → the arrow."""
    takers: dict[str, int]
    """Id of an arrow → the first call that takes a tensor that flows along it."""
    second_runs: dict[str, str]
    """Id of a box → the id of the box of its recomputation, which stands below it; one with nodes has its own place."""


class _Frame(NamedTuple):
    """The frame of a call, or a closed box in which it is drawn."""

    id: str
    has_nodes: bool
    """Whether nodes are in it, at any depth: then arrows of gradients lead to it and from it."""


FindPath = Callable[[int], Sequence[_Frame]]
"""Returns the boxes around a call, the outermost first, and its own frame if it has one."""


def connect_frames(
    trace: TraceData, pass_id: int, calls: Collection[int], calls_of_nodes: Mapping[int, int]
) -> CallArrows:
    """Connect the frames of ``calls``; ``calls_of_nodes``: node → the call in whose frame it is drawn."""
    with_nodes = {outer for call in set(calls_of_nodes.values()) for outer in iter_enclosing_calls(trace, call)}
    first_runs = find_first_runs(trace, pass_id, calls)

    def find_path(call: int) -> Sequence[_Frame]:
        around = iter_enclosing_calls(trace, trace.calls[first_runs.get(call, call)].parent)
        outwards = (outer for outer in (call, *around) if outer in calls)
        return [_Frame(ids.box_id("call", outer), outer in with_nodes) for outer in outwards][::-1]

    return _connect(trace, calls, first_runs, find_path)


def connect_groups(view: View) -> CallArrows:
    """Connect the frames and the closed boxes of a view."""
    visible, groups = {*view.opened_calls, *view.closed_groups}, view.tree.calls

    def find_path(call: int) -> Sequence[_Frame]:
        outwards = groups[call].chain_outwards() if call in groups else ()
        return [_Frame(outer.id, bool(outer.nodes)) for outer in outwards if outer in visible][::-1]

    trace = view.tree.trace
    return _connect(trace, groups, find_first_runs(trace, view.tree.pass_id, groups), find_path)


def _connect(
    trace: TraceData, calls: Collection[int], first_runs: Mapping[int, int], find_path: FindPath
) -> CallArrows:
    found, cuts = CallArrows({}, {}, {}), CutNames(trace)
    takers = (call for call in sorted(calls) if trace.calls[call].fed_by or trace.calls[call].cut_from)
    for call in takers:
        for source, kind in _list_sources(trace, call):
            ends = _find_siblings(find_path(source), find_path(call))
            if ends is None or (kind == "tensor" and all(end.has_nodes for end in ends)):
                continue
            start, end = ends
            arrow_id = ids.bundle_id(start.id, end.id)
            if arrow_id not in found.arrows:
                words = cuts.name(source, call) if kind == "cut" else ""
                found.arrows[arrow_id] = Arrow(arrow_id, start.id, end.id, kind=kind, words=words)
                found.takers[arrow_id] = call
    for call, first_run in first_runs.items():
        ends = _find_siblings(find_path(first_run), find_path(call))
        if ends is not None and not ends[1].has_nodes and ends[1].id not in found.second_runs.values():
            found.second_runs.setdefault(ends[0].id, ends[1].id)
    return found


def _list_sources(trace: TraceData, call: int) -> Iterator[tuple[int, ArrowKind]]:
    """Yield each call that returned a tensor that ``call`` takes without a graph, with the kind of the arrow."""
    row = trace.calls[call]
    yield from ((source, "cut") for source in row.cut_from)
    for source in row.fed_by:
        yield source, "cut" if row.mode == "grad" and trace.calls[source].mode in MODES_THAT_CUT else "tensor"


def _find_siblings(source: Sequence[_Frame], target: Sequence[_Frame]) -> tuple[_Frame, _Frame] | None:
    """Return the outermost boxes in which two calls are not together; None if one of them has no such box."""
    start, end = next((pair for pair in zip_longest(source, target) if pair[0] != pair[1]), (None, None))
    return None if start is None or end is None else (start, end)
