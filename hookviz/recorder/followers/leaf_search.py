"""Finds the leaves that a tensor was computed from."""

import weakref
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.graph import NodeMarks
from hookviz.autograd.identity_map import IdentityMap

MAX_NODES = 20_000
"""One search visits up to this many nodes."""
_MAX_MARKS = 10_000


class Leaves(NamedTuple):
    """The numbers of the leaves below a tensor."""

    parameters: frozenset[int]
    others: frozenset[int]
    """Those that are not parameters: a loop may make new ones each time."""

    def __or__(self, other: "Leaves") -> "Leaves":
        return Leaves(self.parameters | other.parameters, self.others | other.others)


NO_LEAVES = Leaves(frozenset(), frozenset())


class LeafSearch:
    """Gives numbers to leaves, without holding them, and finds those below a tensor.

    A node at which a search began is marked with what was found: the next search that comes there ends.
    """

    def __init__(self) -> None:
        self.is_limited = False
        """Whether a graph was too large to be searched as a whole."""
        self._numbers: IdentityMap[int] = IdentityMap()
        self._count = 0
        self._parameters: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        """``id`` of the reference to a parameter → it and the number, also after the parameter is freed."""
        self._marks: NodeMarks[Leaves] = NodeMarks()
        self._marked_sequences: set[int] = set()
        """The sequence numbers of the marked nodes: most nodes are not asked for their marks."""

    def number(self, leaf: torch.Tensor) -> int:
        """Return the number of ``leaf``, which gets one if it has none."""
        number = self._numbers.get(leaf)
        if number is None:
            number = self._count = self._count + 1
            self._numbers.put(leaf, number)
            if isinstance(leaf, torch.nn.Parameter):
                reference: weakref.ref[torch.Tensor] = weakref.ref(leaf)
                self._parameters[id(reference)] = reference, number
        return number

    def find_number(self, leaf: torch.Tensor) -> int | None:
        """Return the number of ``leaf``; None if no search has found it."""
        return self._numbers.get(leaf)

    def find_number_of(self, reference: "weakref.ref[torch.Tensor]") -> int | None:
        """Return the number of a leaf, of a parameter also after it was freed: Python makes one reference to each."""
        leaf = reference()
        return self._parameters.get(id(reference), (None, None))[1] if leaf is None else self.find_number(leaf)

    def forget(self, leaf: torch.Tensor) -> None:
        """Forget ``leaf``, and the weak references to it."""
        self._numbers.forget(leaf)
        self._parameters = {key: entry for key, entry in self._parameters.items() if entry[0]() is not leaf}

    def find(self, tensors: Iterable[torch.Tensor]) -> Leaves:
        """Return the numbers of the leaves that the tensors were computed from, and of those that are leaves."""
        found = NO_LEAVES
        for tensor in tensors:
            if tensor.is_leaf:
                found |= self._leaves_of(tensor)
                continue
            node, _ = graph.edge_of(tensor)
            if node is not None:
                found |= self._find_below(node)
        return found

    def _leaves_of(self, leaf: torch.Tensor) -> Leaves:
        numbers = frozenset((self.number(leaf),))
        is_parameter = isinstance(leaf, torch.nn.Parameter)
        return Leaves(numbers, frozenset()) if is_parameter else Leaves(frozenset(), numbers)

    def forget_nodes(self) -> None:
        """Forget the marks: the graphs of the last pass are mostly gone."""
        self._marks.clear()
        self._marked_sequences.clear()

    def _find_below(self, root: Node) -> Leaves:
        known = self._known_below(root)
        if known is not None:
            return known
        found = NO_LEAVES
        visited: dict[int, Node] = {id(root): root}
        queue = [root]
        while queue:
            node = queue.pop()
            known = self._known_below(node)
            leaf = graph.leaf_of(node)
            if known is not None or leaf is not None:
                found |= known or NO_LEAVES
                found |= NO_LEAVES if leaf is None else self._leaves_of(leaf)
                continue
            for following, _ in node.next_functions:
                if following is not None and id(following) not in visited:
                    visited[id(following)] = following
                    queue.append(following)
            if len(visited) > MAX_NODES:
                self.is_limited = True
                break
        graph.release(list(visited.values()))
        return self._mark(root, found)

    def _known_below(self, node: Node) -> Leaves | None:
        return self._marks.get(node) if node._sequence_nr() in self._marked_sequences else None

    def _mark(self, node: Node, found: Leaves) -> Leaves:
        if len(self._marked_sequences) >= _MAX_MARKS:
            self.forget_nodes()
        self._marks.put(node, found)
        self._marked_sequences.add(node._sequence_nr())
        return found
