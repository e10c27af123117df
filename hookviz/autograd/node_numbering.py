"""Numbers that identify the nodes of graphs in a trace."""

from array import array
from collections.abc import Mapping, Sequence

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.identity_map import IdentityMap
from hookviz.trace import TraceData


class NodeNumbers:
    """Gives each node an integer, the same in every pass over the same graph, without holding the node.

    Nodes have no weak references, and a recording that held them would keep graphs alive. An AccumulateGrad, which
    torch makes anew when nobody holds it, is identified by its leaf. Any other node is identified by its sequence
    number, which torch counts up per thread, and by the op and the edges that the trace has of it.
    """

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._sequence = array("Q")
        """The sequence number of each node."""
        self._highest_sequence = -1
        """The highest sequence number, except of AccumulateGrad nodes: a node with a higher one is new."""
        self._leaves: IdentityMap[int] = IdentityMap()
        self._index: dict[int, list[int]] = {}
        """Sequence number → numbers of nodes, for the first ``_indexed`` nodes: most recordings never need it."""
        self._indexed = 0

    def number(self, nodes: Sequence[Node]) -> dict[int, int]:
        """``id(node)`` → number, for all ``nodes`` (roots first) of one graph."""
        numbers: dict[int, int] = {}
        inner: list[Node] = []
        for node in reversed(nodes):  # leaves first, then upwards: a node mostly comes after its successors
            leaf = graph.leaf_of(node)
            if leaf is None:
                inner.append(node)
            else:
                numbers[id(node)] = self._leaf_number(leaf)
        count, highest_before = len(self._sequence), self._highest_sequence
        sequences = [node._sequence_nr() for node in inner]
        self._highest_sequence = max([highest_before, *sequences])
        if min(sequences, default=graph.LEAF_SEQUENCE) > highest_before:
            numbers.update(zip(map(id, inner), range(count, count + len(inner)), strict=True))
            self._sequence.extend(sequences)
            return numbers
        taken = set(numbers.values())
        for node, sequence in zip(inner, sequences, strict=True):
            number = self._find(node, sequence, numbers, taken)
            if number is None:
                number = len(self._sequence)
                self._sequence.append(sequence)
            taken.add(number)
            numbers[id(node)] = number
        return numbers

    def find(self, tensor: torch.Tensor) -> int | None:
        """Return the number of the node at which the gradient of ``tensor`` arrives; None if no pass had that node."""
        node = tensor.grad_fn
        if node is not None:
            return self._find(node, node._sequence_nr(), {}, set())
        return self._leaves.get(tensor)

    def forget(self, leaf: torch.Tensor) -> None:
        """Give the AccumulateGrad of ``leaf`` another number from now on."""
        self._leaves.forget(leaf)

    def renumber(self, kept: Mapping[int, int]) -> None:
        """Apply new numbers, ``kept`` (old → new, in the same order), and forget all other nodes."""
        self._leaves.renumber(kept)
        self._sequence = array("Q", (self._sequence[old] for old in sorted(kept)))
        self._index.clear()
        self._indexed = 0

    def _find(self, node: Node, sequence: int, numbers: Mapping[int, int], taken: set[int]) -> int | None:
        """The number that ``node`` has from an earlier graph, if any; ``taken`` has the numbers used in this graph."""
        for number in range(self._indexed, len(self._sequence)):
            self._index.setdefault(self._sequence[number], []).append(number)
        self._indexed = len(self._sequence)
        for number in self._index.get(sequence, ()):
            if number not in taken and self._matches(node, number, numbers):
                return number
        return None

    def _matches(self, node: Node, number: int, numbers: Mapping[int, int]) -> bool:
        """Whether the trace has the op and the edges of ``node`` for node ``number``."""
        if number >= len(self.trace.ops) or self.trace.ops[number] != graph.op_of(node):
            return False
        if number in self.trace.outside:
            return True
        for slot, (following, output) in enumerate(node.next_functions):
            number_after, place = numbers.get(id(following)), self.trace.edges.get((number, slot))
            if following is None and place is not None:
                return False
            # A view that was written to in place has a younger node than its users, which has no number yet.
            if number_after is not None and place != (number_after, output):
                return False
        return True

    def _leaf_number(self, leaf: torch.Tensor) -> int:
        number = self._leaves.get(leaf)
        if number is None:
            number = len(self._sequence)
            self._sequence.append(graph.LEAF_SEQUENCE)
            self._leaves.put(leaf, number)
        return number
