"""Group items by a key."""

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")


def group(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Map each key to what comes with it, in order.

    >>> group([("b", 1), ("a", 2), ("b", 3)])
    {'b': [1, 3], 'a': [2]}
    """
    groups: dict[Key, list[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups
