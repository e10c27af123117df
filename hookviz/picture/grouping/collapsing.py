"""Grouping a level with too many boxes: first into fans, then into runs, then the rest into parts of equal length."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import ceil, sqrt
from typing import Any

from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, BoxTree, Group, Member, index_nodes, kind_label

MIN_GROUP_SIZE = 3
"""Fewer members than this do not become a group."""


def collapse(tree: BoxTree) -> None:
    """Group each level of ``tree`` until it has at most ``MAX_VISIBLE_BOXES`` boxes."""
    for group in list(tree.groups):
        if len(group.members) > MAX_VISIBLE_BOXES and group.kind != "stack":
            group.members = _collapse_members(tree, group.members)
    tree.link_parents()


def _collapse_members(tree: BoxTree, members: list[Member]) -> list[Member]:
    for group_members in (_group_fans, _group_runs):
        if len(members) > MAX_VISIBLE_BOXES:
            members = _dissolve_small_groups(tree, group_members(tree, members))
    return _split_into_parts(tree, members)


def _dissolve_small_groups(tree: BoxTree, members: list[Member]) -> list[Member]:
    """Replace groups by their members (a long run by its parts) as long as the level has room, the smallest first."""
    groups = [group for group in members if isinstance(group, Group) and group.kind in ("run", "fan")]
    for group in sorted(groups, key=lambda group: len(group.members)):
        can_dissolve = len(group.members) <= MAX_VISIBLE_BOXES or group.kind == "run"
        group.members = _split_into_parts(tree, group.members)
        if can_dissolve and len(members) - 1 + len(group.members) <= MAX_VISIBLE_BOXES:
            index = members.index(group)
            members = [*members[:index], *group.members, *members[index + 1 :]]
            tree.groups.remove(group)
    return members


def find_neighbours(tree: BoxTree, members: list[Member]) -> tuple[list[set[int]], list[set[int]]]:
    """Return for each member the indices of the members before it and of the members after it.

    A node after it that is in none of the members counts as -1 - node.
    """
    index_of = {node: index for index, node in index_nodes(members)}
    before: list[set[int]] = [set() for _ in members]
    after: list[set[int]] = [set() for _ in members]
    for index, node in index_nodes(members):
        for _, end in tree.edges_out.get(node, ()):
            neighbour = index_of.get(end, -1 - end)
            if neighbour != index:
                after[index].add(neighbour)
                if neighbour >= 0:
                    before[neighbour].add(index)
    return before, after


def _group_fans(tree: BoxTree, members: list[Member]) -> list[Member]:
    """Group members of one kind that have the same neighbours."""
    before, after = find_neighbours(tree, members)
    candidates: dict[Any, list[int]] = {}  # by a key that is quick to compute
    for index, (above, below) in enumerate(zip(before, after, strict=True)):
        key = len(above), len(below), min(above, default=None), min(below, default=None)
        candidates.setdefault(key, []).append(index)
    groups: dict[Any, list[int]] = {}
    for indices in candidates.values():
        for index in indices if len(indices) >= MIN_GROUP_SIZE else ():
            exact_key = kind_label(tree.trace, members[index]), frozenset(before[index]), frozenset(after[index])
            groups.setdefault(exact_key, []).append(index)
    return replace_with_groups(members, groups.values(), partial(tree.make_group, "fan"))


def _group_runs(tree: BoxTree, members: list[Member]) -> list[Member]:
    """Group members of one kind that follow one another, with no other edge in or out between them."""
    before, after = find_neighbours(tree, members)
    labels = [kind_label(tree.trace, member) for member in members]

    def next_in_run(index: int) -> int | None:
        (follower,) = after[index] if len(after[index]) == 1 else (-1,)
        return follower if follower >= 0 and before[follower] == {index} and labels[follower] == labels[index] else None

    not_first = {follower for index in range(len(members)) if (follower := next_in_run(index)) is not None}
    groups = [list(_follow_run(index, next_in_run)) for index in range(len(members)) if index not in not_first]
    return replace_with_groups(members, groups, partial(tree.make_group, "run"))


def _follow_run(index: int | None, next_in_run: Callable[[int], int | None]) -> Iterator[int]:
    while index is not None:
        yield index
        index = next_in_run(index)


def replace_with_groups(
    members: list[Member], index_groups: Iterable[list[int]], make_group: Callable[[list[Member]], Group]
) -> list[Member]:
    """Return ``members`` with a group, which ``make_group`` makes, in the place of the first of its members.

    ``index_groups`` are lists of indices; lists shorter than ``MIN_GROUP_SIZE`` stay ungrouped.
    """
    new_groups: dict[int, Member] = {}
    grouped: set[int] = set()
    for indices in index_groups:
        if len(indices) >= MIN_GROUP_SIZE:
            new_groups[indices[0]] = make_group([members[index] for index in indices])
            grouped.update(indices)
    return [
        new_groups.get(index, member)
        for index, member in enumerate(members)
        if index in new_groups or index not in grouped
    ]


def _split_into_parts(tree: BoxTree, members: list[Member]) -> list[Member]:
    """Split ``members`` into parts of equal length, and these again, until no level has too many boxes."""
    if len(members) <= MAX_VISIBLE_BOXES:
        return members
    size = part_size(len(members))
    parts: list[Member] = []
    for start in range(0, len(members), size):
        part = tree.make_group("part", _split_into_parts(tree, members[start : start + size]))
        part.start = start
        parts.append(part)
    return parts


def part_size(count: int) -> int:
    """Return the size of the parts of ``count`` members: a round number near the square root, for few levels.

    >>> part_size(48), part_size(1000), part_size(10_000)
    (10, 40, 250)
    """
    round_numbers = (int(digit * 10**power) for power in range(1, 20) for digit in (1, 2, 2.5, 4, 5))
    return next(size for size in round_numbers if size >= sqrt(count) and ceil(count / size) <= MAX_VISIBLE_BOXES)
