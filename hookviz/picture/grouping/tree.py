"""One pass as a tree: module calls contain the nodes that they created, and groups contain what is too much at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, sqrt

from hookviz.picture import element_ids as ids
from hookviz.picture.repeated_calls import find_first_runs
from hookviz.picture.visible_graph import VisibleGraph
from hookviz.trace import TraceData
from hookviz.trace.traversal import iter_enclosing_calls

MAX_VISIBLE_BOXES = 40
"""The maximum number of boxes that a person can take in at once; a level with more of them is grouped."""


@dataclass(eq=False)
class Group:
    """A box that contains others."""

    id: str
    """``m3`` for a call, ``g5`` for other groups; empty for the root."""
    kind: str
    """``pass``, ``call``, ``part`` (of a level with too many boxes, one of equal length), ``round`` (of a loop: nodes
    and the call after them), ``stack`` (equal calls, or rounds), or ``rest`` (the boxes of a level that are far from
    the opened one)."""
    members: "list[Member]"
    """The nodes and groups directly in it, in the order in which backward reaches them."""
    parent: "Group | None" = None
    call: int | None = None
    """The number of the module call, for a group of that kind."""
    start: int = 0
    """The index of a part's first member in the list that was split, counted from 0."""

    @cached_property
    def nodes(self) -> list[int]:
        """All nodes in it at any depth, in the order of ``members``."""
        return [member for member in self._walk_members() if isinstance(member, int)]

    @cached_property
    def calls(self) -> list[int]:
        """All calls in it at any depth, and its own call."""
        return [
            member.call for member in self._walk_members() if not isinstance(member, int) and member.call is not None
        ]

    def _walk_members(self) -> "Iterator[Member]":
        pending: list[Member] = [self]
        while pending:  # no recursion: models may be nested deeper than Python's stack
            member = pending.pop()
            yield member
            if not isinstance(member, int):
                pending.extend(reversed(member.members))

    def chain_outwards(self) -> "Iterator[Group]":
        """Yield this group and the groups around it, the innermost first."""
        group: Group | None = self
        while group is not None:
            yield group
            group = group.parent

    @property
    def named_call(self) -> int | None:
        """The call after which it is named: its own, or that of a round."""
        last = self.members[-1] if self.kind == "round" else self
        return last.call if isinstance(last, Group) else None

    @property
    def unsplit_members(self) -> "list[Member]":
        """Its members, with parts replaced by their own members."""
        members: list[Member] = []
        for member in self.members:
            members += member.unsplit_members if isinstance(member, Group) and member.kind == "part" else [member]
        return members

    @property
    def stacked_calls(self) -> "list[Group]":
        """The calls of a stack, which may be made of smaller stacks; of another group, the group itself."""
        if self.kind != "stack":
            return [self]
        return [call for member in self.members if isinstance(member, Group) for call in member.stacked_calls]

    @property
    def offset(self) -> int:
        """The index of a part's first member among the members of the whole that was split, counted from 0."""
        return self.start + self.parent.offset if self.kind == "part" and self.parent is not None else 0


Member = int | Group
"""The number of a node, or a group."""


class BoxTree:
    """The graph of a pass as a tree of groups and nodes."""

    def __init__(self, graph: VisibleGraph) -> None:
        self.graph, self.trace, self.pass_id = graph, graph.trace, graph.pass_id
        self.nodes = self.graph.nodes
        self.calls_of_nodes = {node: self.graph.calls[node] for node in self.nodes if node in self.graph.calls}
        self.edges_out: dict[int, list[tuple[int, int]]] = {node: [] for node in self.nodes}
        """Node → (its input, the node there) for each arrow that starts at it."""
        for start, slot, end in self.graph.edges:
            self.edges_out[start].append((slot, end))
        self.root = Group("", "pass", [])
        self.calls: dict[int, Group] = {}
        self.innermost_groups: dict[int, Group] = {}
        """Node → the innermost group around it."""
        self._nest_calls()
        self.groups = [self.root, *self.calls.values()]
        self.group_count = 0
        """How many groups were made that are not calls; their ids are counted."""

    def make_group(self, kind: str, members: "list[Member]") -> Group:
        """Make a group of a kind (``part``, ``round``, ``stack``) with the given members."""
        group = Group(ids.box_id("group", self.group_count), kind, members)
        self.group_count += 1
        self.groups.append(group)
        return group

    def _nest_calls(self) -> None:
        """Put each node into the call that created it, and each call into the call in which it was made."""
        first_runs = find_first_runs(self.trace, self.pass_id, self.graph.frames)
        for call in sorted(self.graph.frames):
            around = iter_enclosing_calls(self.trace, self.trace.calls[first_runs.get(call, call)].parent)
            parent = next((self.calls[outer] for outer in around if outer in self.calls), self.root)
            self.calls[call] = Group(ids.box_id("call", call), "call", [], parent, call)
        for node in self.nodes:
            (self.calls[self.calls_of_nodes[node]] if node in self.calls_of_nodes else self.root).members.append(node)
        arrivals = self._order_by_arrival()
        for group in (*reversed(self.calls.values()), self.root):  # inner calls first: outer ones need their order
            group.members.sort(key=arrivals.__getitem__)
            arrivals[group] = min(map(arrivals.__getitem__, group.members), default=inf)
            if group.parent is not None:
                group.parent.members.append(group)

    def _order_by_arrival(self) -> "dict[Member, float]":
        """Return node → the first step at which a gradient arrives there.

        Nodes that backward does not reach come last, in the order in which they lie below the roots.
        """
        rows = self.trace.rows
        order: dict[Member, float] = {node: len(rows) + place for place, node in enumerate(self.nodes)}
        for index in reversed(self.trace.lookup.steps(self.pass_id)):
            row = rows[index]
            if row.kind in ("seed", "arrive"):
                order[row.own_node] = index
        return order

    def split_levels(self) -> None:
        """Split each level into parts until none has more than ``MAX_VISIBLE_BOXES`` boxes, and link all parents."""
        for group in list(self.groups):
            if group.kind != "stack":
                group.members = self._split_into_parts(group.members)
        self._link_parents()

    def _split_into_parts(self, members: "list[Member]") -> "list[Member]":
        """Split ``members`` into parts of equal length, and these again, until no level has too many boxes."""
        if len(members) <= MAX_VISIBLE_BOXES:
            return members
        size = part_size(len(members))
        parts: list[Member] = []
        for start in range(0, len(members), size):
            part = self.make_group("part", self._split_into_parts(members[start : start + size]))
            part.start = start
            parts.append(part)
        return parts

    def _link_parents(self) -> None:
        """Set the parents of all groups and the innermost groups of all nodes, once all levels are grouped."""
        for group in self.groups:
            for member in group.members:
                if isinstance(member, int):
                    self.innermost_groups[member] = group
                else:
                    member.parent = group

    @cached_property
    def edges_leaving(self) -> dict[Group, list[tuple[int, int, int]]]:
        """Group → (node, input, node) for each edge that starts in it and ends outside, once parents are linked."""
        leaving: dict[Group, list[tuple[int, int, int]]] = {group: [] for group in self.groups}
        for start in self.nodes:
            inner = self.innermost_groups[start]
            for slot, end in self.edges_out.get(start, ()):
                if self.innermost_groups[end] is inner:
                    continue
                around_end = set(self.innermost_groups[end].chain_outwards())
                for group in inner.chain_outwards():
                    if group in around_end:
                        break
                    leaving[group].append((start, slot, end))
        return leaving

    def find_parent(self, member: "Member") -> Group | None:
        """Return the group directly around a node or a group."""
        return self.innermost_groups[member] if isinstance(member, int) else member.parent

    def find_call_around(self, member: "Member") -> Group | None:
        """Return the innermost module call around a node or a group, or None."""
        group = self.find_parent(member)
        while group is not None and group.call is None:
            group = group.parent
        return group


def part_size(count: int) -> int:
    """Return the size of the parts of ``count`` members: a round number near the square root, for few levels.

    >>> part_size(48), part_size(1000), part_size(10_000)
    (10, 40, 250)
    """
    round_numbers = (int(digit * 10**power) for power in range(1, 20) for digit in (1, 2, 2.5, 4, 5))
    return next(size for size in round_numbers if size >= sqrt(count) and ceil(count / size) <= MAX_VISIBLE_BOXES)


def has_many_passes(trace: TraceData) -> bool:
    """Return whether a trace has so many passes that their pictures are sent one by one, and share layouts."""
    return len(trace.lookup.passes) > MAX_VISIBLE_BOXES


def kind_label(trace: TraceData, member: Member) -> str:
    """Return the label that members of one kind share: a node's op, or a module's class."""
    if isinstance(member, int):
        return trace.ops[member]
    if member.named_call is None:
        return kind_label(trace, member.members[0])
    return trace.modules[trace.calls[member.named_call].module].kind
