"""Folding a level that has too many boxes: fans, then runs, then, of whatever is left, parts of one length."""

from collections.abc import Callable, Iterator
from itertools import count
from math import ceil, sqrt
from typing import Any

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping.tree import MANY, Group, Member, Tree, label_of, nodes_of

FEWEST = 3
"""Fewer than this of a kind are not worth a box of their own."""

Fresh = Callable[[str, list[Member]], Group]
"""Makes a fold of a kind around members."""


def collapse(tree: Tree) -> None:
    """Fold each level of ``tree`` until it has at most ``MANY`` boxes."""
    numbers = count()

    def fresh(kind: str, inside: list[Member]) -> Group:
        fold = Group(ids.group(next(numbers)), kind, inside)
        tree.folds.append(fold)
        return fold

    for fold in list(tree.folds):
        if len(fold.inside) > MANY:
            fold.inside = _squeezed(tree, fold.inside, fresh)
    tree.settle()


def _squeezed(tree: Tree, members: list[Member], fresh: Fresh) -> list[Member]:
    for fold in (_fans, _runs):
        if len(members) > MANY:
            members = _unfolded(fold(tree, members, fresh), tree, fresh)
    return parted(members, fresh)


def _unfolded(members: list[Member], tree: Tree, fresh: Fresh) -> list[Member]:
    """Where there is room for what is in a fold, the smallest first, it stands there instead; of a run, its parts."""
    new = [fold for fold in members if isinstance(fold, Group) and fold.kind in ("run", "fan")]
    for fold in sorted(new, key=lambda fold: len(fold.inside)):
        whole = len(fold.inside) <= MANY or fold.kind == "run"
        fold.inside = parted(fold.inside, fresh)
        if whole and len(members) - 1 + len(fold.inside) <= MANY:
            at = members.index(fold)
            members = [*members[:at], *fold.inside, *members[at + 1 :]]
            tree.folds.remove(fold)
    return members


def _neighbours(tree: Tree, members: list[Member]) -> tuple[list[set[int]], list[set[int]]]:
    """For each member, the places of those before it and of those behind it; -1 - node for a node elsewhere."""
    place = {node: at for at, node in nodes_of(members)}
    before: list[set[int]] = [set() for _ in members]
    behind: list[set[int]] = [set() for _ in members]
    for at, node in nodes_of(members):
        for _, end in tree.following.get(node, ()):
            to = place.get(end, -1 - end)
            if to != at:
                behind[at].add(to)
                if to >= 0:
                    before[to].add(at)
    return before, behind


def _fans(tree: Tree, members: list[Member], fresh: Fresh) -> list[Member]:
    """Fold what is of one kind and lies between the same neighbours."""
    before, behind = _neighbours(tree, members)
    roughly: dict[Any, list[int]] = {}
    for at, (above, below) in enumerate(zip(before, behind, strict=True)):
        key = len(above), len(below), min(above, default=None), min(below, default=None)
        roughly.setdefault(key, []).append(at)
    groups: dict[Any, list[int]] = {}
    for some in roughly.values():
        for at in some if len(some) >= FEWEST else ():
            exact = label_of(tree.trace, members[at]), frozenset(before[at]), frozenset(behind[at])
            groups.setdefault(exact, []).append(at)
    return _folded(members, groups.values(), "fan", fresh)


def _runs(tree: Tree, members: list[Member], fresh: Fresh) -> list[Member]:
    """Fold what is of one kind and follows one upon the other, with no way in or out between."""
    before, behind = _neighbours(tree, members)
    labels = [label_of(tree.trace, member) for member in members]

    def after(at: int) -> int | None:
        (to,) = behind[at] if len(behind[at]) == 1 else (-1,)
        return to if to >= 0 and before[to] == {at} and labels[to] == labels[at] else None

    inner = {to for at in range(len(members)) if (to := after(at)) is not None}
    groups = [list(_along(at, after)) for at in range(len(members)) if at not in inner]
    return _folded(members, groups, "run", fresh)


def _along(at: int | None, after: Callable[[int], int | None]) -> Iterator[int]:
    while at is not None:
        yield at
        at = after(at)


def _folded(members: list[Member], groups: Any, kind: str, fresh: Fresh) -> list[Member]:
    """``members`` with a fold in the place of the first of each group that is worth one."""
    made: dict[int, Member] = {}
    gone: set[int] = set()
    for group in groups:
        if len(group) >= FEWEST:
            made[group[0]] = fresh(kind, [members[at] for at in group])
            gone.update(group)
    return [made.get(at, member) for at, member in enumerate(members) if at in made or at not in gone]


def parted(members: list[Member], fresh: Fresh) -> list[Member]:
    """``members`` in parts of one length, and those in parts again, until no more than ``MANY`` are seen at once."""
    if len(members) <= MANY:
        return members
    size = part_size(len(members))
    parts: list[Member] = []
    for at in range(0, len(members), size):
        part = fresh("part", parted(members[at : at + size], fresh))
        part.first = at
        parts.append(part)
    return parts


def part_size(count: int) -> int:
    """How many there are in a part of ``count``: a round number, near the root, so that few levels do.

    >>> part_size(48), part_size(1000), part_size(10_000)
    (10, 40, 250)
    """
    rounds = (int(digit * 10**power) for power in range(1, 20) for digit in (1, 2, 2.5, 4, 5))
    return next(size for size in rounds if size >= sqrt(count) and ceil(count / size) <= MANY)
