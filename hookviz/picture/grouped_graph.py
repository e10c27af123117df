"""The boxes of groups and what steps write on them, and the arrows of a view with such boxes."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, isfinite, log10

from hookviz.picture import element_ids as ids
from hookviz.picture.group_names import describe_group, is_recomputed, name_group
from hookviz.picture.grouping import BoxTree, Group, Member, View
from hookviz.picture.grouping.activity import (
    Arrival,
    BoxActivity,
    NormRange,
    PassActivity,
    list_norm_ranges,
    merge_consecutive,
)
from hookviz.picture.module_boxes import name_first_call
from hookviz.picture.primitives import Arrow
from hookviz.picture.repeated_calls import find_first_of_several
from hookviz.support.messages import _
from hookviz.trace.values import format_number

MAX_BARS = 24
"""The maximum number of bars of a stack; in a larger stack, a bar stands for several calls."""


@dataclass
class StackBar:
    """A bar of a stack: one call, or a few that follow one another."""

    count: int
    """How many calls it stands for."""
    group_id: str
    """The id of the first of them."""
    steps: list[int]
    """The steps about what is in them."""
    norms: list[tuple[int, float]]
    """(step, norm) of the gradient of each call's output; the norm may be NaN or infinite."""

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Its steps as (first, last) of each run of consecutive steps."""
        return merge_consecutive(self.steps)


def find_bar_height(norm: float, scale: list[float]) -> float:
    """Return the height of a bar from 0 to 1, or -1 if its norm is not finite.

    ``scale`` has the logarithms of all norms: the largest is as high as it can be, and the smallest a tenth of that; or
    higher if it is less than ten times smaller, so that nearly equal norms look so.
    """
    if not isfinite(norm):
        return -1
    if not norm:
        return 0
    highest = max(scale)
    decades = max(highest - min(scale), 1)
    return round(1 - 0.9 * (highest - log10(norm)) / decades, 3)


@dataclass
class GroupBox:
    """The closed box of a group."""

    id: str
    name: str
    """Its name, relative to the call around it, and cut."""
    full_name: str
    description: str
    """The kind of its members, and how many nodes it has."""
    texts: dict[str, dict[int, str]]
    """Id of a text on it → step → the text from that step on."""
    steps: list[int]
    """The steps about what is in it."""
    stack: list[StackBar] = field(default_factory=list)
    """The bars of a stack of equal calls, in the order of the calls; empty for other groups."""
    is_recomputed: bool = False
    """Whether checkpointing made its calls during a backward pass."""

    def longest_text(self, text_id: str) -> str:
        """Return the longest text that any step writes in one place; empty if none does."""
        return max(self.texts.get(text_id, {}).values(), key=len, default="")

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Its steps as (first, last) of each run of consecutive steps."""
        return merge_consecutive(self.steps)


class GroupBoxes:
    """The closed boxes of a pass; a group has the same box in all views."""

    def __init__(self, tree: BoxTree, activity: PassActivity) -> None:
        self._tree, self._activity = tree, activity
        self._boxes: dict[Group, GroupBox] = {}
        self.first_of_several = find_first_of_several(tree.trace, tree.pass_id)
        """The calls that are the first of several of their modules in the pass."""

    def find(self, group: Group) -> GroupBox:
        """Return the closed box of ``group``."""
        if group not in self._boxes:
            self._boxes[group] = self._make(group)
        return self._boxes[group]

    def _make(self, group: Group) -> GroupBox:
        trace = self._tree.trace
        frame = self._tree.find_call_around(group)
        module = "" if frame is None or frame.call is None else trace.call_path(frame.call)
        inside = self._activity.merge_group(group)
        texts = {ids.gradient_id(group.id): write_norm_ranges(inside.arrivals)}
        if inside.hooks:
            texts[ids.fired_count_id(group.id)] = _count_fired(inside, self._activity.first)
        name = name_group(trace, group, module)
        return GroupBox(
            group.id,
            name_first_call(name) if group.call in self.first_of_several else name,
            name_group(trace, group, max_chars=sys.maxsize),
            describe_group(trace, group),
            texts,
            inside.steps,
            [*self._make_bars(group.stacked_calls[::-1])] if group.kind == "stack" else [],
            is_recomputed(trace, group),
        )

    def _make_bars(self, calls: list[Group]) -> Iterator[StackBar]:
        """Make the bars of a stack of ``calls``; if they are many, each bar stands for a few."""
        size = ceil(len(calls) / MAX_BARS)
        for start in range(0, len(calls), size):
            activities = [self._activity.merge_group(call) for call in calls[start : start + size]]
            # The gradient of its output is the first that arrives in a call.
            norms = [(first.step, first.norm) for activity in activities for first in activity.arrivals[:1]]
            steps = sorted(step for activity in activities for step in activity.steps)
            yield StackBar(len(activities), calls[start].id, steps, sorted(norms))


def _count_fired(activity: BoxActivity, first_step: int) -> dict[int, str]:
    """Return step → how many hooks have fired by then, from ``first_step`` on."""
    first_firings = {hook: step for step, hook in reversed(activity.firings)}
    counts = enumerate(sorted(first_firings.values()), 1)
    total = len(activity.hooks)
    return {first_step: _format_fired(0, total), **{step: _format_fired(count, total) for count, step in counts}}


def _format_fired(fired: int, count: int) -> str:
    return (_("1 hook, {fired} fired") if count == 1 else _("{count} hooks, {fired} fired")).format(
        fired=fired, count=count
    )


def write_norm_ranges(arrivals: list[Arrival]) -> dict[int, str]:
    """Return step → the range of the norms of all gradients that have arrived by then."""
    return {norms.step: _format_range(norms) for norms in list_norm_ranges(arrivals)}


def _format_range(norms: NormRange) -> str:
    low, high = format_number(norms.low, 2), format_number(norms.high, 2)
    has_finite = norms.low <= norms.high
    text = (low if low == high else f"{low} … {high}") if has_finite else ""
    nonfinite = _("{count} with NaN or Inf").format(count=f"{norms.nonfinite_count:,}") if norms.nonfinite_count else ""
    return _("norm {norms}").format(norms=" · ".join(filter(None, (text, nonfinite))))


def box_id(member: Member) -> str:
    """Return the id of the box of a node or a group."""
    return ids.node_id(member) if isinstance(member, int) else member.id


@dataclass
class ViewArrows:
    """The arrows of a view: one for each edge between two nodes, one for all edges between two other boxes."""

    single: dict[tuple[int, int], Arrow]
    """(node, input) → the arrow of that edge."""
    bundles: dict[str, Arrow]
    """Id of an arrow that stands for several edges → the arrow."""
    starts: dict[str, set[int]]
    """Id of such an arrow → the nodes at which its edges start."""


def connect_view(view: View) -> ViewArrows:
    """Make the arrows between the boxes of ``view``."""
    arrows = ViewArrows({}, {}, {})
    for box in view.boxes:
        for start, slot, end in view.list_edges(box):
            end_box = view.find_box(end)
            if isinstance(box, int) and isinstance(end_box, int):
                arrows.single[start, slot] = Arrow(ids.edge_id(start, slot, end), box_id(box), box_id(end_box))
            elif end_box is not box:
                arrow = Arrow(ids.bundle_id(box_id(box), box_id(end_box)), box_id(box), box_id(end_box))
                arrows.bundles.setdefault(arrow.id, arrow)
                arrows.starts.setdefault(arrow.id, set()).add(start)
    return arrows
