"""Walk the autograd graph, and put marks on its nodes."""

import heapq
from collections.abc import Iterable
from itertools import count
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

import torch
from torch.autograd.graph import GradientEdge, Node

from hookviz.autograd.tensor_types import runs_user_code
from hookviz.support.messages import _

MAX_DEPTH = 20_000
"""Deeper graphs run unobserved: freeing a longer chain of nodes that were held can overflow the C stack."""


class TooDeep(Exception):
    """The graph has more than ``MAX_DEPTH`` nodes in a row."""

    @property
    def advice(self) -> str:
        """What is wrong and what to do, for a function that was given a tensor of the graph."""
        return _(
            "This graph has more than {deepest} nodes in a row, too many to hold safely. Take a tensor nearer to the "
            "leaves."
        ).format(deepest=f"{MAX_DEPTH:,}")


def edge_of(root: torch.Tensor | GradientEdge) -> tuple[Node | None, int]:
    """The node that receives the gradient of ``root``, and at which output; (None, 0) if there is none."""
    if isinstance(root, GradientEdge):
        return root.node, root.output_nr
    if not root.requires_grad:
        return None, 0
    try:
        node = root.grad_fn
        if node is not None:
            return node, root.output_nr
        if runs_user_code(root):  # torch makes a view of a leaf, to find its node
            return None, 0
        edge = torch.autograd.graph.get_gradient_edge(root)  # a leaf: its AccumulateGrad
    except (RuntimeError, AttributeError):
        # Torch does not give out the history of a stale view (backward raises for it), nor the AccumulateGrad of a
        # leaf that belongs to an inner level of torch.func.
        return None, 0
    return edge.node, edge.output_nr


def reachable_nodes(roots: Iterable[Node]) -> list[Node]:
    """List all nodes reachable from ``roots``, in the order in which the engine would most likely run them.

    As the engine does, this takes the node with the highest sequence number among those that are ready. It does not
    recurse.

    Raises:
        TooDeep: there are more than ``MAX_DEPTH`` nodes in a row.
    """
    order = count()
    heap = [(-node._sequence_nr(), next(order), 1, node) for node in roots]
    heapq.heapify(heap)
    visited: dict[int, Node] = {}
    while heap:
        _number, _place, depth, node = heapq.heappop(heap)
        if id(node) in visited:
            continue
        visited[id(node)] = node
        if depth > MAX_DEPTH:
            release(list(visited.values()))
            raise TooDeep
        for following, _input in node.next_functions:
            if following is not None and id(following) not in visited:
                heapq.heappush(heap, (-following._sequence_nr(), next(order), depth + 1, following))
    return list(visited.values())


def release(nodes: list[Node]) -> None:
    """Empty the list ``nodes``, root first: freeing a long chain from the leaves recurses."""
    nodes.reverse()
    nodes.clear()


LEAF_OP, LEAF_SEQUENCE = "AccumulateGrad", 2**64 - 1
"""The op and the sequence number of AccumulateGrad nodes, which write to leaves."""


def leaf_of(node: Node) -> torch.Tensor | None:
    """The leaf that an AccumulateGrad node writes to; None for any other node."""
    if type(node).__name__ != LEAF_OP:
        return None
    variable: torch.Tensor = node.variable  # type: ignore[attr-defined]
    return variable


def op_of(node: Node) -> str:
    """The node's op as torch prints it: ``MulBackward0``, ``AccumulateGrad``."""
    return type(node).__name__


Mark = TypeVar("Mark")

MARKS_KEY = "hookviz"
"""The key of all marks of a node in its ``metadata``, a dict that users may read and write, too."""


class NodeMarks(Generic[Mark]):
    """Gives marks to nodes.

    A node has no weak references, and torch may make a new Python object each time it is accessed; its ``metadata``
    stays the same and is freed with it. A mark is freed with its node, or when it is cleared.
    """

    def __init__(self) -> None:
        self._owner: _Owner | None = None

    def __bool__(self) -> bool:
        return self._owner is not None

    def get(self, node: Node) -> Mark | None:
        """The mark of ``node``; None if it has none."""
        if self._owner is None:
            return None
        marks = _metadata(node).get(MARKS_KEY)
        return None if marks is None else marks.get(self._owner)

    def put(self, node: Node, mark: Mark) -> None:
        """Give ``node`` a mark, replacing the one that it has."""
        if self._owner is None:
            self._owner = _Owner()
        metadata = _metadata(node)
        if MARKS_KEY not in metadata:
            metadata[MARKS_KEY] = WeakKeyDictionary()
        metadata[MARKS_KEY][self._owner] = mark

    def clear(self) -> None:
        """Remove all marks."""
        self._owner = None


class _Owner:
    """Whose marks they are: when it is freed, so are they."""


def _metadata(node: Node) -> dict[str, Any]:
    """The dict that a node carries for users' notes; torch's stubs declare it as a method."""
    metadata: Any = node.metadata
    return cast("dict[str, Any]", metadata)
