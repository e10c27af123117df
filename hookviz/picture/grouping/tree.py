"""What is inside what in one pass: calls around the nodes that they made, and folds around what is too much at once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf

from hookviz.picture import element_ids as ids
from hookviz.trace import TraceData
from hookviz.trace.traversal import (
    assign_nodes_to_calls,
    iter_enclosing_calls,
    leads_outside,
    list_pass_calls,
    list_pictured_nodes,
)

MANY = 40
"""About as many boxes as a person can take in at once: a level that has more is folded."""


@dataclass(eq=False)
class Group:
    """A box that holds others."""

    id: str
    """``m3`` for a call, ``g5`` for what was folded; empty for the whole pass."""
    kind: str
    """``pass``, ``call``, ``run`` (of the same op, one after the other), ``fan`` (beside each other), or ``part``."""
    inside: "list[Member]"
    """What one sees on entering it, in the order in which backward comes by."""
    parent: "Group | None" = None
    call: int = -1
    """The module call that it is, or -1."""
    first: int = 0
    """The place of a part's first member in what was parted at once, counted from 0."""

    @cached_property
    def nodes(self) -> list[int]:
        """All nodes in it, however deep, in the order of ``inside``."""
        return [member for member in self._all() if isinstance(member, int)]

    @cached_property
    def calls(self) -> list[int]:
        """All calls in it, and the one that it is."""
        return [member.call for member in self._all() if not isinstance(member, int) and member.call >= 0]

    def _all(self) -> "Iterator[Member]":
        waiting: list[Member] = [self]
        while waiting:  # without recursion: models may be nested deep
            member = waiting.pop()
            yield member
            if not isinstance(member, int):
                waiting.extend(reversed(member.inside))

    def chain(self) -> "Iterator[Group]":
        """It, and what is around it, the innermost first."""
        at: Group | None = self
        while at is not None:
            yield at
            at = at.parent

    @property
    def counted(self) -> "list[Member]":
        """Its members, those of its parts in the place of the parts."""
        found: list[Member] = []
        for member in self.inside:
            found += member.counted if isinstance(member, Group) and member.kind == "part" else [member]
        return found

    @property
    def place(self) -> int:
        """The place of a part's first member among all that were parted, counted from 0."""
        return self.first + self.parent.place if self.kind == "part" and self.parent is not None else 0


Member = int | Group
"""A node by its number, or a box that holds several."""


class Tree:
    """One pass of a trace, as a tree of boxes."""

    def __init__(self, trace: TraceData, pass_id: int = 0) -> None:
        self.trace, self.pass_id = trace, pass_id
        self.below = list_pictured_nodes(trace, pass_id)
        self.made = assign_nodes_to_calls(trace, self.below)
        ways = trace.lookup.out_edges(self.below)
        self.following = trace.lookup.next_nodes
        """Node → (its input, the node there) for each way that its gradients take in this picture."""
        if leads_outside(ways, self.below):
            self.following = {node: [] for node in self.below}
            for start, slot, end in ways:
                if end in self.following:
                    self.following[start].append((slot, end))
        self.before: dict[int, list[tuple[int, int]]] = {}
        """Node → (a node of this pass, its input) for each way that leads to it."""
        for start, slot, end in ways:
            self.before.setdefault(end, []).append((start, slot))
        self.root = Group("", "pass", [])
        self.calls: dict[int, Group] = {}
        self.around: dict[int, Group] = {}
        """Node → the innermost box around it."""
        self._grow()
        self.folds = [self.root, *self.calls.values()]

    def _grow(self) -> None:
        """Put each node in the call that made it, and each call in the one that made it."""
        when = self._reached()
        held = list_pass_calls(self.trace, self.pass_id)
        needed = {outer for call in {*self.made.values(), *held} for outer in iter_enclosing_calls(self.trace, call)}
        for call in sorted(needed):
            outer = self.trace.calls[call].parent
            self.calls[call] = Group(
                ids.call(call), "call", [], self.root if outer is None else self.calls[outer], call
            )
        for node in self.below:
            (self.calls[self.made[node]] if node in self.made else self.root).inside.append(node)
        first: dict[str, float] = {}
        for fold in (*reversed(self.calls.values()), self.root):  # what is inside comes before what is around it
            fold.inside.sort(key=lambda member: when[member] if isinstance(member, int) else first[member.id])
            first[fold.id] = min((_when(member, when, first) for member in fold.inside), default=inf)
            if fold.parent is not None:
                fold.parent.inside.append(fold)

    def _reached(self) -> dict[int, int]:
        """Node → when backward came by; those that it did not reach come after, as they lie below the roots."""
        rows = self.trace.rows
        when = {node: len(rows) + place for place, node in enumerate(self.below)}
        for index in reversed(self.trace.lookup.steps(self.pass_id)):
            row = rows[index]
            if row.kind in ("seed", "arrive"):
                when[row.node] = index
        return when

    def settle(self) -> None:
        """Know what is around what, once all is folded."""
        for fold in self.folds:
            for member in fold.inside:
                if isinstance(member, int):
                    self.around[member] = fold
                else:
                    member.parent = fold


def _when(member: Member, when: dict[int, int], first: dict[str, float]) -> float:
    return when[member] if isinstance(member, int) else first[member.id]


def nodes_of(members: Iterable[Member]) -> Iterator[tuple[int, int]]:
    """(place of a member, each node in it)."""
    for place, member in enumerate(members):
        for node in (member,) if isinstance(member, int) else member.nodes:
            yield place, node


def label_of(trace: TraceData, member: Member) -> str:
    """What must be the same for two members to be of one kind: a node's op, a module's class."""
    while not isinstance(member, int) and member.call < 0:
        member = member.inside[0]
    return trace.ops[member] if isinstance(member, int) else trace.modules[trace.calls[member.call].module].kind
