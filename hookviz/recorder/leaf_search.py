"""Finds the leaves that a tensor was computed from."""

import weakref
from collections.abc import Iterable

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.node_marks import NodeMarks

MAX_NODES = 20_000
"""One search visits up to this many nodes."""
_MAX_MARKS = 10_000
LeafNumbers = frozenset[int]
"""Numbers of leaves."""


class LeafSearch:
    """Gives numbers to leaves, without holding them, and finds those below a tensor.

    A node at which a search began is marked with what was found: the next search that comes there ends.
    """

    def __init__(self) -> None:
        self.is_limited = False
        """Whether a graph was too large to be searched as a whole."""
        self._numbers: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._count = 0
        self._marks: NodeMarks[LeafNumbers] = NodeMarks()
        self._marked_sequences: set[int] = set()
        """The sequence numbers of the marked nodes: most nodes are not asked for their marks."""

    def number(self, leaf: torch.Tensor) -> int:
        """Return the number of ``leaf``, which gets one if it has none."""
        known = self.find_number(leaf)
        if known is not None:
            return known
        self._count += 1
        self._numbers[id(leaf)] = (weakref.ref(leaf), self._count)
        return self._count

    def find_number(self, leaf: torch.Tensor) -> int | None:
        """Return the number of ``leaf``; None if no search has found it."""
        reference, number = self._numbers.get(id(leaf), (None, None))
        return number if reference is not None and reference() is leaf else None

    def forget(self, leaf: torch.Tensor) -> None:
        """Forget ``leaf``, and the weak reference to it."""
        self._numbers.pop(id(leaf), None)

    def find(self, tensors: Iterable[torch.Tensor]) -> LeafNumbers:
        """Return the numbers of the leaves that the tensors were computed from, and of those that are leaves."""
        found: frozenset[int] = frozenset()
        for tensor in tensors:
            node, _ = graph.edge_of(tensor)
            if tensor.is_leaf:
                found |= {self.number(tensor)}
            elif node is not None:
                found |= self._find_below(node)
        return found

    def forget_nodes(self) -> None:
        """Forget the marks: the graphs of the last pass are mostly gone."""
        self._marks.clear()
        self._marked_sequences.clear()

    def _find_below(self, root: Node) -> LeafNumbers:
        known = self._known_below(root)
        if known is not None:
            return known
        found: set[int] = set()
        visited: dict[int, Node] = {id(root): root}
        queue = [root]
        while queue:
            node = queue.pop()
            known = self._known_below(node)
            leaf = graph.leaf_of(node)
            if known is not None or leaf is not None:
                found.update(known or ())
                found.update(() if leaf is None else (self.number(leaf),))
                continue
            for following, _ in node.next_functions:
                if following is not None and id(following) not in visited:
                    visited[id(following)] = following
                    queue.append(following)
            if len(visited) > MAX_NODES:
                self.is_limited = True
                break
        graph.release(list(visited.values()))
        return self._mark(root, frozenset(found))

    def _known_below(self, node: Node) -> LeafNumbers | None:
        return self._marks.get(node) if node._sequence_nr() in self._marked_sequences else None

    def _mark(self, node: Node, found: LeafNumbers) -> LeafNumbers:
        if len(self._marked_sequences) >= _MAX_MARKS:
            self.forget_nodes()
        self._marks.put(node, found)
        self._marked_sequences.add(node._sequence_nr())
        return found
