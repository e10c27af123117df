"""Arrows of tensors that flow from one module call to a later one without a graph: no gradient will flow back."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from hookviz.analysis.findings.parameters.cut_names import MODES_THAT_CUT, CutNames
from hookviz.picture import element_ids as ids
from hookviz.picture.grouping import View
from hookviz.picture.primitives import Arrow
from hookviz.trace import TraceData
from hookviz.trace.traversal import iter_enclosing_calls


class CallArrows(NamedTuple):
    """The arrows between module calls, at most one from a box to another."""

    arrows: dict[str, Arrow]
    """Id of an arrow → the arrow."""
    takers: dict[str, int]
    """Id of an arrow → the first call that takes a tensor that flows along it."""


class _Frame(NamedTuple):
    """The frame of a call, or a closed box in which it is drawn."""

    id: str
    has_nodes: bool
    """Whether nodes are in it, at any depth: then arrows of gradients lead to it and from it."""


FindPath = Callable[[int], Sequence[_Frame]]
"""Returns the boxes around a call, the outermost first, and its own frame if it has one."""


def connect_frames(trace: TraceData, calls: Collection[int], calls_of_nodes: Mapping[int, int]) -> CallArrows:
    """Connect the frames of ``calls``; ``calls_of_nodes``: node → the call in whose frame it is drawn."""
    with_nodes = {outer for call in set(calls_of_nodes.values()) for outer in iter_enclosing_calls(trace, call)}

    def find_path(call: int) -> Sequence[_Frame]:
        outwards = (outer for outer in iter_enclosing_calls(trace, call) if outer in calls)
        return [_Frame(ids.call_id(outer), outer in with_nodes) for outer in outwards][::-1]

    return _connect(trace, calls, find_path)


def connect_groups(view: View) -> CallArrows:
    """Connect the frames and the closed boxes of a view."""
    visible, groups = {*view.opened_calls, *view.closed_groups}, view.tree.calls

    def find_path(call: int) -> Sequence[_Frame]:
        outwards = groups[call].chain_outwards() if call in groups else ()
        return [_Frame(outer.id, bool(outer.nodes)) for outer in outwards if outer in visible][::-1]

    return _connect(view.tree.trace, groups, find_path)


def _connect(trace: TraceData, calls: Iterable[int], find_path: FindPath) -> CallArrows:
    found, names = CallArrows({}, {}), CutNames(trace)
    for call in sorted(calls):
        for source, is_cut in _list_sources(trace, call):
            ends = _find_siblings(find_path(source), find_path(call))
            if ends is None or (not is_cut and all(end.has_nodes for end in ends)):
                continue
            start, end = ends
            arrow_id = ids.bundle_id(start.id, end.id)
            if arrow_id not in found.arrows:
                cut = _name_cut(trace, source, call, names) if is_cut else ""
                found.arrows[arrow_id] = Arrow(arrow_id, start.id, end.id, is_forward=True, cut=cut)
                found.takers[arrow_id] = call
    return found


def _list_sources(trace: TraceData, call: int) -> Iterator[tuple[int, bool]]:
    """Yield each call that returned a tensor that ``call`` takes without a graph, and whether the graph was cut."""
    row = trace.calls[call]
    yield from ((source, True) for source in row.cut_from)
    for source in row.fed_by:
        yield source, row.mode == "grad" and trace.calls[source].mode in MODES_THAT_CUT


def _name_cut(trace: TraceData, source: int, call: int, names: CutNames) -> str:
    if trace.calls[source].mode in MODES_THAT_CUT:
        return names.name_mode(source)
    return names.name_between(source, call)


def _find_siblings(source: Sequence[_Frame], target: Sequence[_Frame]) -> tuple[_Frame, _Frame] | None:
    """Return the outermost boxes in which two calls are not together; None if one of them has no such box."""
    start, end = next((pair for pair in zip_longest(source, target) if pair[0] != pair[1]), (None, None))
    return None if start is None or end is None else (start, end)
