"""What is known of objects of the user's program, without holding them."""

import weakref
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

Known = TypeVar("Known")


class IdentityMap(Generic[Known]):
    """Maps objects to what is known of them, by identity.

    A dict with weak keys would compare tensors, need a hash of modules, and call a function when a key is freed, which
    a profiler sees. Here the entry of an object that is gone stays until another object has the same ``id``.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], Known]] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, item: object) -> Known | None:
        """Return what is known of an object; None if nothing is."""
        entry = self._entries.get(id(item))
        return entry[1] if entry is not None and entry[0]() is item else None

    def put(self, item: object, known: Known) -> None:
        """Note what is known of an object, in place of what was."""
        self._entries[id(item)] = weakref.ref(item), known

    def find(self, reference: "weakref.ref[Any]") -> Known | None:
        """Return what is known of an object that may be gone: Python makes one reference to each."""
        return next((known for other, known in self._entries.values() if other is reference), None)

    def items(self) -> list[tuple[Any, Known]]:
        """List the objects that still exist, each with what is known of it."""
        pairs = [(reference(), known) for reference, known in self._entries.values()]
        return [pair for pair in pairs if pair[0] is not None]

    def ids(self) -> set[int]:
        """Return the ``id`` of each object, also of one that is gone."""
        return set(self._entries)

    def forget(self, item: object) -> None:
        """Forget an object, and the weak reference to it."""
        self._entries.pop(id(item), None)

    def forget_dead(self) -> None:
        """Forget the objects that are gone."""
        self._entries = {key: entry for key, entry in self._entries.items() if entry[0]() is not None}

    def renumber(self, kept: Mapping[Known, Known]) -> None:
        """Apply new numbers (old → new), and forget the objects whose number is not in the mapping."""
        entries = self._entries.items()
        self._entries = {key: (reference, kept[known]) for key, (reference, known) in entries if known in kept}

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
