"""The activity inside a box: its steps, the norms of the gradients that arrived, and the hooks that ran."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hookviz.picture.grouping.tree import BoxTree, Group
from hookviz.picture.repeated_calls import list_extra_runs
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, TraceData
from hookviz.trace.values import get_norm_nan_inf


class Arrival(NamedTuple):
    """The arrival of a gradient at a node."""

    step: int
    norm: float
    """The gradient's 2-norm."""
    nonfinite_count: int
    """How many of its numbers are NaN or infinite."""

    @property
    def display_norm(self) -> float | str:
        """The norm with four digits, as in pictures and sentences; ``"nan"`` or ``"inf"`` if it is not finite."""
        return float(f"{self.norm:.4g}") if math.isfinite(self.norm) else str(self.norm)


def find_arrival(trace: TraceData, index: int) -> Arrival | None:
    """Return the arrival of a gradient at the step ``index``; None if none arrives there."""
    row = trace.rows[index]
    if row.kind not in ("seed", "arrive") or not isinstance(row.after, int):
        return None
    norm, nan, inf = get_norm_nan_inf(trace.values[row.after])
    return Arrival(index, norm, nan + inf)


@dataclass
class BoxActivity:
    """The activity of one node or call, or of several together."""

    steps: list[int] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    firings: list[tuple[int, int]] = field(default_factory=list)
    """(step, hook) of each hook that ran."""
    hooks: set[int] = field(default_factory=set)
    """The hooks that were registered, whether or not they fired."""

    def add_step(self, trace: TraceData, index: int) -> None:
        """Add the step ``index``, which is about this node or call."""
        row, arrival = trace.rows[index], find_arrival(trace, index)
        self.steps.append(index)
        if arrival is not None:
            self.arrivals.append(arrival)
        if row.hook is not None and row.kind in HOOK_KINDS:
            self.firings.append((index, row.hook))


class PassActivity:
    """The activity of one pass, by node and by module call."""

    def __init__(self, tree: BoxTree) -> None:
        trace, self._tree = tree.trace, tree
        self.nodes: dict[int, BoxActivity] = {}
        self.calls: dict[int, BoxActivity] = {}
        steps = trace.lookup.steps(tree.pass_id)
        self._merged: dict[Group, BoxActivity] = {}
        self.first, self.last = (steps[0], steps[-1]) if steps else (-1, -1)
        """The first and the last step of the pass."""
        for index in steps:
            row = trace.rows[index]
            box = self._find_box(row.node, row.call)
            if box is not None:
                box.add_step(trace, index)
        self._add_registered_hooks()

    def _find_box(self, node: int | None, call: int | None) -> BoxActivity | None:
        """Return the activity to which a step belongs: the call's, even if the step names a node as well."""
        if call is not None:
            return self.calls.setdefault(call, BoxActivity())
        return None if node is None else self.nodes.setdefault(node, BoxActivity())

    def _add_registered_hooks(self) -> None:
        trace = self._tree.trace
        hooks = trace.lookup.hooks(self._tree.pass_id)
        for node, registered in hooks.by_node.items():
            self.nodes.setdefault(node, BoxActivity()).hooks.update(registered)
        extra_runs = list_extra_runs(trace, self._tree.calls)
        for call in self._tree.calls if hooks.by_module else ():
            registered = hooks.by_module.get(trace.calls[call].module, ())
            if call in extra_runs:
                registered = [hook for hook in registered if trace.hook_rows[hook].kind in FORWARD_HOOK_KINDS]
            self.calls.setdefault(call, BoxActivity()).hooks.update(registered)

    def list_node_activity(self, node: int) -> Iterator[BoxActivity]:
        """Yield the activity of a node with a box, and of the nodes for which that box stands."""
        nodes = (node, *self._tree.graph.represented.get(node, ()))
        yield from (self.nodes[member] for member in nodes if member in self.nodes)

    def merge_group(self, group: Group) -> BoxActivity:
        """Merge the activity of all nodes and calls in ``group``, at any depth."""
        if group not in self._merged:
            self._merged[group] = merge_activities(self._list_group_activity(group))
        return self._merged[group]

    def _list_group_activity(self, group: Group) -> Iterator[BoxActivity]:
        if group.kind in ("rest", "stack"):  # the many groups that are joined around opened ones share their members
            for member in group.members:
                if isinstance(member, int):
                    yield from self.list_node_activity(member)
                else:
                    yield self.merge_group(member)
            return
        for node in group.nodes:
            yield from self.list_node_activity(node)
        yield from (self.calls[call] for call in group.calls if call in self.calls)


def merge_activities(activities: Iterable[BoxActivity]) -> BoxActivity:
    """Merge ``activities`` into one, with steps, arrivals and firings in order."""
    total = BoxActivity()
    for activity in activities:
        total.steps += activity.steps
        total.arrivals += activity.arrivals
        total.firings += activity.firings
        total.hooks |= activity.hooks | {hook for _, hook in activity.firings}
    for entries in (total.steps, total.arrivals, total.firings):
        entries.sort()
    return total


def merge_consecutive(steps: list[int]) -> list[tuple[int, int]]:
    """Merge sorted steps into spans (first, last) of consecutive steps.

    >>> merge_consecutive([2, 3, 4, 9])
    [(2, 4), (9, 9)]
    """
    spans: list[tuple[int, int]] = []
    for step in steps:
        if spans and step == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], step)
        else:
            spans.append((step, step))
    return spans


class NormRange(NamedTuple):
    """The range of the norms of all gradients that have arrived by a step."""

    step: int
    low: float
    high: float
    nonfinite_count: int
    """How many of the gradients contain a NaN or an infinite number."""


def list_norm_ranges(arrivals: list[Arrival]) -> Iterator[NormRange]:
    """Yield the range of norms each time that it has changed visibly."""
    low, high, nonfinite_count = math.inf, -math.inf, 0
    last: NormRange | None = None
    for step, norm, nonfinite in arrivals:
        if math.isfinite(norm):
            low, high = min(low, norm), max(high, norm)
        nonfinite_count += nonfinite > 0
        if (
            last is None
            or nonfinite_count != last.nonfinite_count
            or not (_is_about_equal(low, last.low) and _is_about_equal(high, last.high))
        ):
            last = NormRange(step, low, high, nonfinite_count)
            yield last


def _is_about_equal(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=0.02)
