"""The closed boxes of groups: their names, what is in them, the bars of stacks, and what steps write on them."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from math import ceil, isfinite, log10

from hookviz.picture import element_ids as ids
from hookviz.picture.boxes import name_first_call
from hookviz.picture.grouping import BoxTree, Group, Member, kind_label
from hookviz.picture.grouping.activity import (
    Arrival,
    BoxActivity,
    NormRange,
    PassActivity,
    list_norm_ranges,
    merge_consecutive,
)
from hookviz.picture.primitives import MAX_NAME, fit_name, fit_on_line, strip_module
from hookviz.picture.repeated_calls import find_first_of_several
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.values import format_number

MAX_BARS = 24
"""The maximum number of bars of a stack; in a larger stack, a bar stands for several calls."""

MAX_KINDS = 36
"""Characters of a list of kinds: a longer one makes its box so wide that little beside it fits a screen."""


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

    ``scale`` has the logarithms of all norms, or of the least and the largest of them. The largest is as high as it can
    be, and the smallest a tenth of that; or higher if it is less than ten times smaller, so that nearly equal norms
    look so.
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
    call: int | None = None
    """The number of the module call, if it is the box of one."""

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
        texts = {ids.part_id("gradient", group.id): write_norm_ranges(inside.arrivals)}
        if inside.hooks:
            texts[ids.part_id("fired_count", group.id)] = _count_fired(inside, self._activity.first)
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
            group.call,
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


def name_group(trace: TraceData, group: Group, module: str = "", max_chars: int = MAX_NAME) -> str:
    """Return the name of a group; names of modules are relative to ``module``, and each is cut to ``max_chars``."""
    if group.named_call is not None:
        return _name_call(trace, group, module, max_chars)
    if group.kind == "stack":
        return f"{_name_equal_calls(trace, group, module, max_chars)} × {len(group.stacked_calls):,}"
    members = group.unsplit_members
    if group.kind == "rest":
        return _("{count} more").format(count=f"{len(members):,}")
    ends = [_name_call(trace, member, module, max_chars) for member in (members[0], members[-1])]
    return f"{ends[0]} … {ends[1]}" if all(ends) else f"{group.offset + 1:,} – {group.offset + len(members):,}"


def describe_group(trace: TraceData, group: Group) -> str:
    """Describe what is in a group: the kinds of its members; and of other nodes, how many they are."""
    nodes = _count_nodes(len(group.nodes))
    if group.kind == "rest":
        return nodes
    members = group.unsplit_members if group.call is None else [group]
    described = ", ".join(sorted({kind_label(trace, member) for member in members}))
    if is_recomputed(trace, group):
        return _("{kind} · recomputed").format(kind=described)
    if group.call is not None or group.kind == "stack":
        return described
    return f"{fit_on_line(described, MAX_KINDS)} · {nodes}"


def is_recomputed(trace: TraceData, group: Group) -> bool:
    """Whether a group is a call that checkpointing made during a backward pass, or a stack of such calls."""
    calls = [member.call for member in group.stacked_calls if member.call is not None]
    return bool(calls) and all(trace.calls[call].recomputed for call in calls)


def _name_call(trace: TraceData, member: Member, module: str, max_chars: int) -> str:
    """Return the relative name of a call, or an empty text for a node, since the ops of most nodes are alike."""
    call = None if isinstance(member, int) else member.named_call
    return "" if call is None else fit_name(strip_module(trace.call(call), module), max_chars)


def _name_equal_calls(trace: TraceData, stack: Group, module: str, max_chars: int) -> str:
    """Return what the paths of equal calls have in common, with their first and their last number."""
    calls = [call for group in stack.stacked_calls if (call := group.named_call) is not None]
    paths = {trace.call_path(call) for call in calls}
    if len(paths) > 1:
        return _name_range([strip_module(path, module) for path in paths], max_chars)
    name = fit_name(strip_module(min(paths), module), max_chars)
    if stack.parent is None or stack.parent.kind != "stack":
        return name
    counts = sorted(trace.calls[call].nth or trace.calls[call].number for call in calls)
    return _("{module} (calls {first} – {last})").format(module=name, first=counts[0], last=counts[-1])


def _name_range(names: list[str], max_chars: int) -> str:
    """Return the name of calls whose names differ in a number only.

    >>> _name_range(["layers.9", "layers.10"], 28), _name_range(["block_0", "block_1"], 28)
    ('layers 9 – 10', 'block 0 – 1')
    """
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    before = "".join(character for character, _same in equal).rstrip("0123456789")
    rests = [name.removeprefix(before) for name in names]
    afters = [rest.lstrip("0123456789") for rest in rests]
    numbers = sorted(int(rest.removesuffix(after)) for rest, after in zip(rests, afters, strict=True))
    shown = (fit_name(before.rstrip("._"), max_chars), f"{numbers[0]} – {numbers[-1]}", afters[0].lstrip("."))
    return " ".join(filter(None, shown))


def _count_nodes(count: int) -> str:
    return _("1 node") if count == 1 else _("{count} nodes").format(count=f"{count:,}")
