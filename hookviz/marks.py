"""What a recording remembers about nodes of a graph, without holding them and without writing anything on them."""

import sys
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

from torch.autograd.graph import Node

Mark = TypeVar("Mark")

_ALIVE, _MANY = 4, 32
"""The metadata dict of a living node is held by the node, by ``Marks``, by a variable and by the call that counts.
Dead ones are let go of once there are so many, and again whenever there are twice as many as were left."""


class Marks(Generic[Mark]):
    """A mark for each of some nodes.

    Nodes cannot be referred to weakly, and the Python object of a node may be made anew whenever it is asked for. What
    stays the same as long as the node lives is its ``metadata``, a dict that others may write to and that is only
    compared here. Holding that dict does not hold the node.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[dict[str, Any], Mark]] = {}
        self._limit = _MANY

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
            self.keep(key for key, (metadata, _) in self._known.items() if sys.getrefcount(metadata) >= _ALIVE)
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


def _metadata(node: Node) -> dict[str, Any]:
    """The dict that a node carries for whoever wants to leave a note on it (torch declares it a method)."""
    metadata: Any = node.metadata
    return cast("dict[str, Any]", metadata)
