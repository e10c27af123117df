"""What is drawn around a group that is opened in place: its frames, the nearest boxes of each level, and the rest."""

from itertools import pairwise
from typing import NamedTuple

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping.tree import BoxTree, Group, Member

MAX_AROUND = 6
"""The maximum number of boxes that a level shows around the one that is opened; boxes far from it are joined."""
MAX_LEVELS_AROUND = 6
"""The maximum number of levels around an opened group that are drawn; what is further outside is joined."""


class Neighbourhood(NamedTuple):
    """What a picture shows around an opened group."""

    frames: list[Group]
    """The calls around the group, the outermost first, and the group itself if it is a call."""
    boxes: list[Member]
    """The nodes and the closed groups around it."""


class Surroundings:
    """The neighbourhoods of all groups of a pass; a group that is made of the same boxes is the same in all of them."""

    def __init__(self, tree: BoxTree) -> None:
        self._first_number = tree.group_count
        self._numbers = {group: index for index, group in enumerate(tree.groups)}
        self._joined: dict[str, Group] = {}

    def find(self, group: Group) -> Neighbourhood:
        """Return what is drawn around ``group``."""
        chain = [*group.chain_outwards()]
        near = chain[: MAX_LEVELS_AROUND + 1]
        boxes: list[Member] = []
        for child, level in pairwise(near):
            boxes += self._list_siblings(child, level)
        if len(near) < len(chain):
            boxes += self._list_far_boxes(near[-1], chain[len(near) :])
        return Neighbourhood([level for level in reversed(near) if level.call is not None], boxes)

    def _list_siblings(self, child: Group, level: Group) -> list[Member]:
        """List the boxes of ``level`` beside ``child``; of the others in a stack, each side is one box."""
        before, after = _split_at(level, child)
        if level.kind == "stack":
            return [*self._join(child, 0, "stack", before, level), *self._join(child, 1, "stack", after, level)]
        most_before, most_after = _share_room(len(before), len(after))
        cut = len(before) - most_before
        return [
            *self._join(child, 0, "rest", before[:cut], level),
            *before[cut:],
            *after[:most_after],
            *self._join(child, 1, "rest", after[most_after:], level),
        ]

    def _list_far_boxes(self, outermost: Group, levels: list[Group]) -> list[Member]:
        """Join all that is before, and all that is after the ``outermost`` group that is drawn."""
        all_before: list[Member] = []
        all_after: list[Member] = []
        child = outermost
        for level in levels:
            before, after = _split_at(level, child)
            all_before, all_after, child = before + all_before, all_after + after, level
        return [
            *self._join(outermost, 2, "rest", all_before, levels[0]),
            *self._join(outermost, 3, "rest", all_after, levels[0]),
        ]

    def _join(self, child: Group, side: int, kind: str, members: list[Member], level: Group) -> list[Member]:
        """Join ``members`` unless they are fewer than two; ``side`` tells apart the groups around one ``child``."""
        if len(members) < 2:
            return members
        group_id = ids.group_id(self._first_number + 4 * self._numbers[child] + side)
        if group_id not in self._joined:
            self._joined[group_id] = Group(group_id, kind, members, level)
        return [self._joined[group_id]]


def _split_at(level: Group, child: Group) -> tuple[list[Member], list[Member]]:
    """Return the members of ``level`` before and after ``child``."""
    index = level.members.index(child)
    return level.members[:index], level.members[index + 1 :]


def _share_room(before: int, after: int) -> tuple[int, int]:
    """Return how many boxes are shown before and after the opened one, the nearest ones of ``before`` and ``after``.

    >>> _share_room(2, 4), _share_room(20, 20), _share_room(0, 20), _share_room(9, 1)
    ((2, 4), (2, 2), (0, 4), (3, 1))
    """
    if before + after <= MAX_AROUND:
        return before, after
    room = MAX_AROUND - 2  # beside the rest before and the rest after
    shown_before = min(before, max(room // 2, room - after))
    return shown_before, min(after, room - shown_before)
