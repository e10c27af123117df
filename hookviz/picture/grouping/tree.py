"""What is inside what in one pass: calls around the nodes that they made, and folds around what is too much at once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf

from hookviz.picture import element_ids as ids
from hookviz.trace import TraceData
from hookviz.trace.traversal import called, chain, is_cut, makers, pictured

MAX_VISIBLE_BOXES = 40
"""About as many boxes as a person can take in at once: a level that has more is folded."""


@dataclass(eq=False)
class Group:
    """A box that holds others."""

    id: str
    """``m3`` for a call, ``g5`` for what was folded; empty for the whole pass."""
    kind: str
    """``pass``, ``call``, ``run`` (of the same op, one after the other), ``fan`` (beside each other), or ``part``."""
    members: "list[Member]"
    """What one sees on entering it, in the order in which backward comes by."""
    parent: "Group | None" = None
    call: int = -1
    """The module call that it is, or -1."""
    start: int = 0
    """The place of a part's first member in what was parted at once, counted from 0."""

    @cached_property
    def nodes(self) -> list[int]:
        """All nodes in it, however deep, in the order of ``inside``."""
        return [member for member in self._walk_members() if isinstance(member, int)]

    @cached_property
    def calls(self) -> list[int]:
        """All calls in it, and the one that it is."""
        return [member.call for member in self._walk_members() if not isinstance(member, int) and member.call >= 0]

    def _walk_members(self) -> "Iterator[Member]":
        waiting: list[Member] = [self]
        while waiting:  # without recursion: models may be nested deep
            member = waiting.pop()
            yield member
            if not isinstance(member, int):
                waiting.extend(reversed(member.members))

    def chain_outwards(self) -> "Iterator[Group]":
        """It, and what is around it, the innermost first."""
        group: Group | None = self
        while group is not None:
            yield group
            group = group.parent

    @property
    def unsplit_members(self) -> "list[Member]":
        """Its members, those of its parts in the place of the parts."""
        members: list[Member] = []
        for member in self.members:
            members += member.unsplit_members if isinstance(member, Group) and member.kind == "part" else [member]
        return members

    @property
    def offset(self) -> int:
        """The place of a part's first member among all that were parted, counted from 0."""
        return self.start + self.parent.offset if self.kind == "part" and self.parent is not None else 0


Member = int | Group
"""A node by its number, or a box that holds several."""


class Tree:
    """One pass of a trace, as a tree of boxes."""

    def __init__(self, trace: TraceData, pass_id: int = 0) -> None:
        self.trace, self.pass_id = trace, pass_id
        self.nodes = pictured(trace, pass_id)
        self.calls_of_nodes = makers(trace, self.nodes)
        edges = trace.lookup.ways(self.nodes)
        self.edges_out = trace.lookup.following
        """Node → (its input, the node there) for each way that its gradients take in this picture."""
        if is_cut(edges, self.nodes):
            self.edges_out = {node: [] for node in self.nodes}
            for start, slot, end in edges:
                if end in self.edges_out:
                    self.edges_out[start].append((slot, end))
        self.edges_in: dict[int, list[tuple[int, int]]] = {}
        """Node → (a node of this pass, its input) for each way that leads to it."""
        for start, slot, end in edges:
            self.edges_in.setdefault(end, []).append((start, slot))
        self.root = Group("", "pass", [])
        self.calls: dict[int, Group] = {}
        self.innermost_groups: dict[int, Group] = {}
        """Node → the innermost box around it."""
        self._nest_calls()
        self.groups = [self.root, *self.calls.values()]

    def _nest_calls(self) -> None:
        """Put each node in the call that made it, and each call in the one that made it."""
        arrival_order = self._order_by_arrival()
        calls_in_pass = called(self.trace, self.pass_id)
        call_numbers = {
            parent for call in {*self.calls_of_nodes.values(), *calls_in_pass} for parent in chain(self.trace, call)
        }
        for call in sorted(call_numbers):
            parent = self.trace.calls[call].parent
            self.calls[call] = Group(
                ids.call_id(call), "call", [], self.root if parent is None else self.calls[parent], call
            )
        for node in self.nodes:
            (self.calls[self.calls_of_nodes[node]] if node in self.calls_of_nodes else self.root).members.append(node)
        first: dict[str, float] = {}
        for group in (*reversed(self.calls.values()), self.root):  # what is inside comes before what is around it
            group.members.sort(
                key=lambda member: arrival_order[member] if isinstance(member, int) else first[member.id]
            )
            first[group.id] = min(
                (_first_arrival(member, arrival_order, first) for member in group.members), default=inf
            )
            if group.parent is not None:
                group.parent.members.append(group)

    def _order_by_arrival(self) -> dict[int, int]:
        """Node → when backward came by; those that it did not reach come after, as they lie below the roots."""
        rows = self.trace.rows
        order = {node: len(rows) + place for place, node in enumerate(self.nodes)}
        for index in reversed(self.trace.lookup.steps(self.pass_id)):
            row = rows[index]
            if row.kind in ("seed", "arrive"):
                order[row.node] = index
        return order

    def link_parents(self) -> None:
        """Know what is around what, once all is folded."""
        for group in self.groups:
            for member in group.members:
                if isinstance(member, int):
                    self.innermost_groups[member] = group
                else:
                    member.parent = group


def _first_arrival(member: Member, arrival_order: dict[int, int], group_order: dict[str, float]) -> float:
    return arrival_order[member] if isinstance(member, int) else group_order[member.id]


def index_nodes(members: Iterable[Member]) -> Iterator[tuple[int, int]]:
    """(place of a member, each node in it)."""
    for index, member in enumerate(members):
        for node in (member,) if isinstance(member, int) else member.nodes:
            yield index, node


def kind_label(trace: TraceData, member: Member) -> str:
    """What must be the same for two members to be of one kind: a node's op, a module's class."""
    while not isinstance(member, int) and member.call < 0:
        member = member.members[0]
    return trace.ops[member] if isinstance(member, int) else trace.modules[trace.calls[member.call].module].kind
