"""What a recording remembers about nodes of a graph, without holding them and without writing anything on them."""

import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

from torch.autograd.graph import Node

Mark = TypeVar("Mark")

_MANY = 32
"""Dead marks are let go of once there are so many, and again whenever there are twice as many as were left."""
_FEW = 256
"""So many marks are looked through in a few microseconds."""


class NodeMarks(Generic[Mark]):
    """A mark for each of some nodes.

    Nodes cannot be referred to weakly, and the Python object of a node may be made anew whenever it is asked for. What
    stays the same as long as the node lives is its ``metadata``, a dict that others may write to and that is only
    compared here. Holding that dict does not hold the node, but what somebody stored in it: a dead node's dict is let
    go of at the next ``sweep``, or where there are more than ``_FEW`` marks, once they are twice as many as were left.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[dict[str, Any], Mark]] = {}
        self._limit = _MANY
        with _lock:
            _everywhere.append(weakref.ref(self))

    def __bool__(self) -> bool:
        return bool(self._known)

    def __contains__(self, node: Node) -> bool:
        return bool(self._known) and id(_metadata(node)) in self._known

    def get(self, node: Node) -> Mark | None:
        """The mark of ``node``; None if it has none."""
        if not self._known:
            return None
        _, mark = self._known.get(id(_metadata(node)), (None, None))
        return mark

    def put(self, node: Node, mark: Mark) -> None:
        """Give ``node`` a mark, in the place of any that it has."""
        metadata = _metadata(node)
        self._known[id(metadata)] = (metadata, mark)
        if len(self._known) > self._limit:
            self._let_go()

    def sweep(self) -> None:
        """Let go of the marks of dead nodes, unless there are so many marks that to look at each would take long."""
        if 0 < len(self._known) <= _FEW:
            self._let_go()

    def _let_go(self) -> None:
        others = [marks._known for marks in _alive() if marks is not self]  # one node may have several marks
        found = _references(self._known)
        self.keep(iter([key for key, count in found if count - sum(key in known for known in others) > _DEAD]))
        self._limit = max(_MANY, 2 * len(self._known))

    def items(self) -> Iterator[tuple[int, Mark]]:
        """(key, mark) of each."""
        return ((key, mark) for key, (_, mark) in self._known.items())

    def keep(self, keys: Iterator[int]) -> None:
        """Forget all but those with these keys."""
        self._known = {key: self._known[key] for key in keys}

    def clear(self) -> None:
        """Forget all."""
        self._known = {}


_lock = threading.RLock()
_everywhere: list[weakref.ref[NodeMarks[Any]]] = []
"""All that there are, in whatever thread: a ``WeakSet`` may not grow in one while another goes through it."""


def _alive() -> list[NodeMarks[Any]]:
    with _lock:
        _everywhere[:] = [reference for reference in _everywhere if reference() is not None]
        return [marks for reference in _everywhere if (marks := reference()) is not None]


def _references(known: dict[int, tuple[dict[str, Any], Any]]) -> list[tuple[int, int]]:
    """(key, how many references its metadata dict has), counted in the same way for each."""
    return [(key, sys.getrefcount(metadata)) for key, (metadata, _) in known.items()]


((_, _DEAD),) = _references({0: ({}, None)})
"""How many references a dict has that no node holds: fewer from Python 3.14 on."""


def _metadata(node: Node) -> dict[str, Any]:
    """The dict that a node carries for whoever wants to leave a note on it (torch declares it a method)."""
    metadata: Any = node.metadata
    return cast("dict[str, Any]", metadata)
