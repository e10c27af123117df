"""Which combinations of hooks a what-if switches off: all of them, or with many hooks one at a time."""

from itertools import combinations

MAX_COMBINED = 5
"""Up to this many hooks, every combination is recorded: 32 passes. With more, each hook is switched off alone."""
MAX_HOOKS = 40
"""At most this many hooks can be switched: each one takes a pass to record."""


def subsets(count: int) -> list[frozenset[int]]:
    """List the sets of hooks to switch off, for ``count`` hooks; the empty set first.

    >>> [sorted(off) for off in subsets(2)]
    [[], [0], [1], [0, 1]]
    >>> len(subsets(5)), len(subsets(6))
    (32, 7)
    """
    largest = count if count <= MAX_COMBINED else 1
    return [frozenset(off) for size in range(largest + 1) for off in combinations(range(min(count, MAX_HOOKS)), size)]
