"""What is known of objects of the user's program, without holding them."""

import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any, Generic, TypeVar

Known = TypeVar("Known")


class IdentityMap(Generic[Known]):
    """Maps objects to what is known of them, by identity, as long as they exist.

    A dict with weak keys would compare tensors, and need a hash of modules. An entry is removed when its object is
    freed, without a call in Python: a profiler may follow these.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], Known]] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def get(self, item: object) -> Known | None:
        """Return what is known of an object; None if nothing is."""
        entry = self._entries.get(id(item))
        return entry[1] if entry is not None and entry[0]() is item else None

    def put(self, item: object, known: Known) -> None:
        """Note what is known of an object, in place of what was."""
        self._entries[id(item)] = weakref.ref(item, partial(self._entries.pop, id(item))), known

    def items(self) -> list[tuple[Any, Known]]:
        """List the objects, each with what is known of it."""
        pairs = [(reference(), known) for reference, known in list(self._entries.values())]
        return [pair for pair in pairs if pair[0] is not None]

    def forget(self, item: object) -> None:
        """Forget an object, and the weak reference to it."""
        self._entries.pop(id(item), None)

    def renumber(self, kept: Mapping[Known, Known]) -> None:
        """Apply new numbers (old → new), and forget the objects whose number is not in the mapping."""
        for key, (reference, known) in self._entries.copy().items():  # a list of pairs may start the garbage collector
            if known not in kept:
                self._entries.pop(key, None)
            elif key in self._entries:  # it may have been freed since
                self._entries[key] = reference, kept[known]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
