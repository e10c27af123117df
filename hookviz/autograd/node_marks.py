"""A mapping from nodes of a graph to marks that holds no node and writes nothing on one."""

import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

from torch.autograd.graph import Node

Mark = TypeVar("Mark")

_FIRST_SWEEP = 32
"""With more marks than this, marks of dead nodes are removed; again whenever there are twice as many as remained."""
_QUICK_SWEEP = 256
"""Up to this number of marks, checking all of them takes a few microseconds."""


class NodeMarks(Generic[Mark]):
    """Gives marks to nodes.

    Nodes have no weak references, and torch may make a new Python object each time a node is accessed. As long as the
    node lives, its ``metadata`` stays the same: a dict that others may write to, and that only serves as identity here.
    Holding that dict does not hold the node, but it holds what others stored in it. So the dicts of dead nodes are
    removed at the next ``sweep``; with more than ``_QUICK_SWEEP`` marks, once there are twice as many as remained.
    """

    def __init__(self) -> None:
        self._marks: dict[int, tuple[dict[str, Any], Mark]] = {}
        self._limit = _FIRST_SWEEP
        with _lock:
            _instances.append(weakref.ref(self))

    def __bool__(self) -> bool:
        return bool(self._marks)

    def __contains__(self, node: Node) -> bool:
        return bool(self._marks) and id(_metadata(node)) in self._marks

    def get(self, node: Node) -> Mark | None:
        """The mark of ``node``; None if it has none."""
        if not self._marks:
            return None
        _, mark = self._marks.get(id(_metadata(node)), (None, None))
        return mark

    def put(self, node: Node, mark: Mark) -> None:
        """Give ``node`` a mark, replacing the one that it has."""
        metadata = _metadata(node)
        self._marks[id(metadata)] = (metadata, mark)
        if len(self._marks) > self._limit:
            self._remove_dead()

    def sweep(self) -> None:
        """Remove the marks of dead nodes, unless there are more marks than can be checked quickly."""
        if 0 < len(self._marks) <= _QUICK_SWEEP:
            self._remove_dead()

    def _remove_dead(self) -> None:
        others = [
            instance._marks for instance in _live_instances() if instance is not self
        ]  # one node may have several marks
        counts = _count_references(self._marks)
        self.keep(iter([key for key, count in counts if count - sum(key in marks for marks in others) > _UNHELD]))
        self._limit = max(_FIRST_SWEEP, 2 * len(self._marks))

    def items(self) -> Iterator[tuple[int, Mark]]:
        """Yield (key, mark) of each marked node."""
        return ((key, mark) for key, (_, mark) in self._marks.items())

    def keep(self, keys: Iterator[int]) -> None:
        """Remove all marks but those with these keys."""
        self._marks = {key: self._marks[key] for key in keys}

    def clear(self) -> None:
        """Remove all marks."""
        self._marks = {}


_lock = threading.RLock()
_instances: list[weakref.ref[NodeMarks[Any]]] = []
"""All instances of all threads. A ``WeakSet`` will not do: one thread may iterate over it while another adds to it."""


def _live_instances() -> list[NodeMarks[Any]]:
    with _lock:
        _instances[:] = [reference for reference in _instances if reference() is not None]
        return [marks for reference in _instances if (marks := reference()) is not None]


def _count_references(marks: dict[int, tuple[dict[str, Any], Any]]) -> list[tuple[int, int]]:
    """Pairs (key, number of references to its metadata dict)."""
    return [(key, sys.getrefcount(metadata)) for key, (metadata, _) in marks.items()]


((_, _UNHELD),) = _count_references({0: ({}, None)})
"""The number of references to a dict that no node holds; it depends on the Python version."""


def _metadata(node: Node) -> dict[str, Any]:
    """The dict that a node carries for users' notes; torch's stubs declare it as a method."""
    metadata: Any = node.metadata
    return cast("dict[str, Any]", metadata)
