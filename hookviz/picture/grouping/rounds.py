"""Rounds of a loop: where a module is called again and again with other nodes between, each round is a group."""

from itertools import pairwise
from statistics import median_low

from hookviz.picture.grouping.stacking import MIN_NAMED_ALIKE, make_stack
from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, BoxTree, Member


def stack_rounds(tree: BoxTree) -> None:
    """Put the rounds of a loop into a stack, on each level of ``tree`` with too many boxes."""
    for group in list(tree.groups):
        if len(group.members) > MAX_VISIBLE_BOXES and group.kind in ("pass", "call"):
            group.members = _stack_rounds_of_level(tree, group.members)


def _stack_rounds_of_level(tree: BoxTree, members: list[Member]) -> list[Member]:
    rounds = _find_rounds(tree, members)
    if not rounds:
        return members
    groups: list[Member] = [tree.make_group("round", members[start:end]) for start, end in rounds]
    return [*members[: rounds[0][0]], make_stack(tree, "stack", groups), *members[rounds[-1][1] :]]


def _find_rounds(tree: BoxTree, members: list[Member]) -> list[tuple[int, int]]:
    """Return from where to where each round goes: the nodes before a call in the order of backward, and the call."""
    calls: dict[str, list[int]] = {}
    for index, member in enumerate(members):
        if not isinstance(member, int) and member.call is not None:
            calls.setdefault(tree.trace.call_path(member.call), []).append(index)
    indices = max(calls.values(), key=len, default=[])
    if len(indices) < MIN_NAMED_ALIKE:
        return []
    gaps = [after - before for before, after in pairwise(indices)]
    usual = median_low(gaps)
    if 2 * gaps.count(usual) < len(gaps):
        return []
    first = max(indices[0] - usual + 1, 0)
    return [(before + 1, call + 1) for before, call in pairwise([first - 1, *indices])]
