"""How far the arrows of a picture run: what makes a layout slow is not its boxes but its long arrows."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

FAR = 1_000
"""Places between the ends of all arrows: with more, a layout with bent arrows takes seconds, and soon minutes."""


def passed(ways: Iterable[tuple[str, str]]) -> int:
    """How many places arrows pass between their ends; a layout has to find room in each of them.

    >>> passed([("e", "c"), ("c", "a"), ("e", "a")]), passed([("a", "b"), ("b", "a")])
    (1, 0)
    """
    ways = list(ways)
    above: dict[str, set[str]] = {}
    for start, end in ways:
        above.setdefault(end, set()).add(start)
    rank: dict[str, int] = {}
    try:
        for box in TopologicalSorter(above).static_order():
            rank[box] = 1 + max((rank[start] for start in above.get(box, ())), default=-1)
    except CycleError:  # boxes that hold parts of each other are few
        return 0
    return sum(rank[end] - rank[start] - 1 for start, end in ways)
