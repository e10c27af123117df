"""The numbers by which a trace knows the nodes of its graphs."""

import weakref
from array import array
from collections.abc import Mapping, Sequence

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.trace import TraceData


class NodeNumbers:
    """Gives each node an integer, the same in every pass over the same graph, without holding the node.

    Nodes cannot be referred to weakly, and a recording that held them would keep graphs alive. A leaf's
    AccumulateGrad, which torch makes anew when nobody holds it, is known by its leaf; any other node by its sequence
    number, which torch counts up in each thread, and by what the trace says of its op and of what follows it.
    """

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._sequence = array("Q")
        """The sequence number of each node."""
        self._newest = -1
        """The largest of them, but for those of leaves' nodes: a node with a larger one was not there before."""
        self._leaves: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._index: dict[int, list[int]] = {}
        """Sequence number → nodes, for the first ``_indexed`` of them: most recordings never meet a node again."""
        self._indexed = 0

    def number(self, nodes: Sequence[Node]) -> dict[int, int]:
        """``id(node)`` → number, for all ``nodes`` (roots first) of one graph."""
        numbers: dict[int, int] = {}
        inner: list[Node] = []
        for node in reversed(nodes):  # leaves first, then from below: mostly what follows a node comes before it
            leaf = graph.leaf_of(node)
            if leaf is None:
                inner.append(node)
            else:
                numbers[id(node)] = self._leaf_number(leaf)
        count, before = len(self._sequence), self._newest
        made = [node._sequence_nr() for node in inner]
        self._newest = max([before, *made])
        if min(made, default=graph.LAST) > before:
            numbers.update(zip(map(id, inner), range(count, count + len(inner)), strict=True))
            self._sequence.extend(made)
            return numbers
        taken = set(numbers.values())
        for node, sequence in zip(inner, made, strict=True):
            number = self._find(node, sequence, numbers, taken)
            if number is None:
                number = len(self._sequence)
                self._sequence.append(sequence)
            taken.add(number)
            numbers[id(node)] = number
        return numbers

    def forget(self, leaf: torch.Tensor) -> None:
        """Its node gets another number from now on."""
        self._leaves.pop(id(leaf), None)

    def renumber(self, kept: Mapping[int, int]) -> None:
        """Nodes got new numbers (old → new, in the same order); those that are not in ``kept`` are forgotten."""
        self._leaves = {key: (leaf, kept[n]) for key, (leaf, n) in self._leaves.items() if n in kept}
        self._sequence = array("Q", (self._sequence[old] for old in sorted(kept)))
        self._index.clear()
        self._indexed = 0

    def _find(self, node: Node, sequence: int, numbers: Mapping[int, int], taken: set[int]) -> int | None:
        """The number that ``node`` has from an earlier look; in this one so many have ``numbers``, which are taken."""
        for number in range(self._indexed, len(self._sequence)):
            self._index.setdefault(self._sequence[number], []).append(number)
        self._indexed = len(self._sequence)
        for number in self._index.get(sequence, ()):
            if number not in taken and self._is(node, number, numbers):
                return number
        return None

    def _is(self, node: Node, number: int, numbers: Mapping[int, int]) -> bool:
        """Whether the trace says of the node called ``number`` what is true of ``node``."""
        if number >= len(self.trace.ops) or self.trace.ops[number] != graph.op_of(node):
            return False
        if number in self.trace.outside:
            return True
        for slot, (following, output) in enumerate(node.next_functions):
            known, place = numbers.get(id(following)), self.trace.edges.get((number, slot))
            if following is None and place is not None:
                return False
            # A view that was written to in place has a younger node than what uses it, with no number yet.
            if known is not None and place != (known, output):
                return False
        return True

    def _leaf_number(self, leaf: torch.Tensor) -> int:
        reference, number = self._leaves.get(id(leaf), (None, 0))
        if reference is None or reference() is not leaf:
            number = len(self._sequence)
            self._sequence.append(graph.LAST)
            self._leaves[id(leaf)] = (weakref.ref(leaf), number)
        return number
