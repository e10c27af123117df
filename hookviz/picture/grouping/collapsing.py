"""Folding a level that has too many boxes: fans, then runs, then, of whatever is left, parts of one length."""

from collections.abc import Callable, Iterator
from itertools import count
from math import ceil, sqrt
from typing import Any

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, Group, Member, Tree, index_nodes, kind_label

MIN_GROUP_SIZE = 3
"""Fewer than this of a kind are not worth a box of their own."""

MakeGroup = Callable[[str, list[Member]], Group]
"""Makes a fold of a kind around members."""


def collapse(tree: Tree) -> None:
    """Fold each level of ``tree`` until it has at most ``MANY`` boxes."""
    numbers = count()

    def make_group(kind: str, inside: list[Member]) -> Group:
        group = Group(ids.group_id(next(numbers)), kind, inside)
        tree.groups.append(group)
        return group

    for group in list(tree.groups):
        if len(group.members) > MAX_VISIBLE_BOXES:
            group.members = _collapse_members(tree, group.members, make_group)
    tree.link_parents()


def _collapse_members(tree: Tree, members: list[Member], make_group: MakeGroup) -> list[Member]:
    for fold in (_fold_fans, _fold_runs):
        if len(members) > MAX_VISIBLE_BOXES:
            members = _unfold_what_fits(fold(tree, members, make_group), tree, make_group)
    return split_into_parts(members, make_group)


def _unfold_what_fits(members: list[Member], tree: Tree, make_group: MakeGroup) -> list[Member]:
    """Where there is room for what is in a fold, the smallest first, it stands there instead; of a run, its parts."""
    groups = [group for group in members if isinstance(group, Group) and group.kind in ("run", "fan")]
    for group in sorted(groups, key=lambda group: len(group.members)):
        can_unfold = len(group.members) <= MAX_VISIBLE_BOXES or group.kind == "run"
        group.members = split_into_parts(group.members, make_group)
        if can_unfold and len(members) - 1 + len(group.members) <= MAX_VISIBLE_BOXES:
            index = members.index(group)
            members = [*members[:index], *group.members, *members[index + 1 :]]
            tree.groups.remove(group)
    return members


def _find_neighbours(tree: Tree, members: list[Member]) -> tuple[list[set[int]], list[set[int]]]:
    """For each member, the places of those before it and of those behind it; -1 - node for a node elsewhere."""
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


def _fold_fans(tree: Tree, members: list[Member], make_group: MakeGroup) -> list[Member]:
    """Fold what is of one kind and lies between the same neighbours."""
    before, after = _find_neighbours(tree, members)
    candidates: dict[Any, list[int]] = {}
    for index, (above, below) in enumerate(zip(before, after, strict=True)):
        key = len(above), len(below), min(above, default=None), min(below, default=None)
        candidates.setdefault(key, []).append(index)
    groups: dict[Any, list[int]] = {}
    for indices in candidates.values():
        for index in indices if len(indices) >= MIN_GROUP_SIZE else ():
            exact_key = kind_label(tree.trace, members[index]), frozenset(before[index]), frozenset(after[index])
            groups.setdefault(exact_key, []).append(index)
    return _replace_with_groups(members, groups.values(), "fan", make_group)


def _fold_runs(tree: Tree, members: list[Member], make_group: MakeGroup) -> list[Member]:
    """Fold what is of one kind and follows one upon the other, with no way in or out between."""
    before, after = _find_neighbours(tree, members)
    labels = [kind_label(tree.trace, member) for member in members]

    def next_in_run(index: int) -> int | None:
        (follower,) = after[index] if len(after[index]) == 1 else (-1,)
        return follower if follower >= 0 and before[follower] == {index} and labels[follower] == labels[index] else None

    not_first = {follower for index in range(len(members)) if (follower := next_in_run(index)) is not None}
    groups = [list(_follow_run(index, next_in_run)) for index in range(len(members)) if index not in not_first]
    return _replace_with_groups(members, groups, "run", make_group)


def _follow_run(index: int | None, next_in_run: Callable[[int], int | None]) -> Iterator[int]:
    while index is not None:
        yield index
        index = next_in_run(index)


def _replace_with_groups(members: list[Member], index_groups: Any, kind: str, make_group: MakeGroup) -> list[Member]:
    """``members`` with a fold in the place of the first of each group that is worth one."""
    new_groups: dict[int, Member] = {}
    grouped: set[int] = set()
    for group in index_groups:
        if len(group) >= MIN_GROUP_SIZE:
            new_groups[group[0]] = make_group(kind, [members[index] for index in group])
            grouped.update(group)
    return [
        new_groups.get(index, member)
        for index, member in enumerate(members)
        if index in new_groups or index not in grouped
    ]


def split_into_parts(members: list[Member], make_group: MakeGroup) -> list[Member]:
    """``members`` in parts of one length, and those in parts again, until no more than ``MANY`` are seen at once."""
    if len(members) <= MAX_VISIBLE_BOXES:
        return members
    size = part_size(len(members))
    parts: list[Member] = []
    for start in range(0, len(members), size):
        part = make_group("part", split_into_parts(members[start : start + size], make_group))
        part.start = start
        parts.append(part)
    return parts


def part_size(count: int) -> int:
    """How many there are in a part of ``count``: a round number, near the root, so that few levels do.

    >>> part_size(48), part_size(1000), part_size(10_000)
    (10, 40, 250)
    """
    round_numbers = (int(digit * 10**power) for power in range(1, 20) for digit in (1, 2, 2.5, 4, 5))
    return next(size for size in round_numbers if size >= sqrt(count) and ceil(count / size) <= MAX_VISIBLE_BOXES)
