"""Marks on the nodes of a graph, kept in each node's own ``metadata``."""

from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from torch.autograd.graph import Node

Mark = TypeVar("Mark")

KEY = "hookviz"
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

    def __contains__(self, node: Node) -> bool:
        return self.get(node) is not None

    def get(self, node: Node) -> Mark | None:
        """The mark of ``node``; None if it has none."""
        if self._owner is None:
            return None
        marks = _metadata(node).get(KEY)
        return None if marks is None else marks.get(self._owner)

    def put(self, node: Node, mark: Mark) -> None:
        """Give ``node`` a mark, replacing the one that it has."""
        if self._owner is None:
            self._owner = _Owner()
        metadata = _metadata(node)
        if KEY not in metadata:
            metadata[KEY] = WeakKeyDictionary()
        metadata[KEY][self._owner] = mark

    def clear(self) -> None:
        """Remove all marks."""
        self._owner = None


class _Owner:
    """Whose marks they are: when it is freed, so are they."""


def _metadata(node: Node) -> dict[str, Any]:
    """The dict that a node carries for users' notes; torch's stubs declare it as a method."""
    metadata: Any = node.metadata
    return cast("dict[str, Any]", metadata)
