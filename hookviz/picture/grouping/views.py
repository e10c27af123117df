"""The views of a pass: the whole pass with one group opened in place; calls in the group may be opened at once.

Around the opened group are its frames, the nearest boxes of each level, and the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping.stacking import stack_equal_calls, stack_rounds
from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, BoxTree, Group, Member
from hookviz.picture.visible_graph import VisibleGraph

MAX_BOXES_BESIDE_MODEL = 6
"""A model is opened even if its boxes alone fill the picture, unless it has more boxes than this around it."""

MAX_OPENED = 12
"""Calls in the opened group are opened at once as long as the group has no more boxes than this, which fit a screen."""

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
        group_id = ids.box_id("group", self._first_number + 4 * self._numbers[child] + side)
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


@dataclass(eq=False)
class View:
    """The whole pass as one picture shows it, with ``group`` opened."""

    tree: BoxTree
    group: Group
    surroundings: Surroundings
    nodes: list[int] = field(default_factory=list)
    """The nodes that have a box of their own."""
    opened_calls: list[Group] = field(default_factory=list)
    """The calls that are drawn as frames around their members, the outermost first."""
    closed_groups: list[Group] = field(default_factory=list)
    """The groups that are drawn as closed boxes."""
    doors: list[Group] = field(default_factory=list)
    """The closed groups that are inside the opened one."""
    _boxes: dict[Member, Member] = field(default_factory=dict)
    """Each node or group that is a box, or that is in a joined group → that box."""

    def __post_init__(self) -> None:
        around = self.surroundings.find(self.group)
        self.opened_calls += around.frames
        self.closed_groups += self._add_boxes(around.boxes)
        self._open_inside()
        self.closed_groups += self.doors
        self._boxes |= {box: box for box in self.boxes}
        for group in self.closed_groups:
            if group.kind in ("rest", "stack"):  # it may have some members only of the group around them
                self._boxes |= dict.fromkeys(group.members, group)

    def _add_boxes(self, members: list[Member]) -> list[Group]:
        """Add boxes for ``members``, and return the groups among them that were not added: those with members."""
        self.nodes += [member for member in members if isinstance(member, int)]
        groups = [member for member in members if not isinstance(member, int)]
        # A call without nodes and calls, such as that of dropout in evaluation, is empty: nobody needs to open it.
        self.opened_calls += [group for group in groups if not group.members]
        return [group for group in groups if group.members]

    def _open_inside(self) -> None:
        """Add the boxes inside the group, and open the calls there, level by level, as far as they fit."""
        level: list[Member] = list(self.group.members)
        box_count = len(level) + (self.group.call is not None)
        while level:
            groups = self._add_boxes(level)
            single = [group for group in groups if _is_single(group)]
            calls = [group for group in groups if group.call is not None and not _is_single(group)]
            members_of_calls = [member for call in calls for member in call.members]
            # Either all calls of a level are opened or none, so that calls of one kind look alike. A model with hardly
            # anything around it is opened in any case, since it is what one wants to see.
            is_model = box_count <= MAX_BOXES_BESIDE_MODEL and len(groups) == 1
            most = MAX_VISIBLE_BOXES + MAX_BOXES_BESIDE_MODEL if is_model else MAX_OPENED
            opened = calls if box_count + len(members_of_calls) <= most else []
            self.doors += [group for group in groups if group not in opened and group not in single]
            self.opened_calls += [*opened, *single]
            self.nodes += [member for call in single for member in call.members if isinstance(member, int)]
            level, box_count = (members_of_calls, box_count + len(members_of_calls)) if opened else ([], box_count)

    @property
    def boxes(self) -> list[Member]:
        """All its boxes: each node of the pass is one of them, or is inside one."""
        return [*self.nodes, *self.closed_groups]

    def find_box(self, node: int) -> Member:
        """Return the node itself if it has a box, or the closed group that contains it."""
        member: Member = node
        while member not in self._boxes:
            parent = self.tree.find_parent(member)
            assert parent is not None  # each node of the pass is in a box
            member = parent
        return self._boxes[member]

    def list_edges(self, box: Member) -> Iterator[tuple[int, int, int]]:
        """Yield (node, input, node) for each edge that starts in ``box``; it may end in the box if that is joined."""
        if isinstance(box, int):
            yield from ((box, slot, end) for slot, end in self.tree.edges_out.get(box, ()))
        elif box in self.tree.edges_leaving:
            yield from self.tree.edges_leaving[box]
        else:
            for member in box.members:
                yield from self.list_edges(member)

    def find_frame(self, member: Member) -> int | None:
        """Return the innermost call that is drawn around a node or a closed group, or None."""
        group = self.tree.find_call_around(member)
        return group.call if group is not None and group in self.opened_calls else None


def _is_single(group: Group) -> bool:
    """Whether a group is a call with one node, which is drawn as one box with the call's hooks."""
    return group.call is not None and len(group.members) == 1 and isinstance(group.members[0], int)


class Views:
    """All views of one pass; each is made when it is first needed."""

    def __init__(self, graph: VisibleGraph) -> None:
        self.tree = BoxTree(graph)
        stack_equal_calls(self.tree)
        stack_rounds(self.tree)
        self.tree.split_levels()
        self._surroundings = Surroundings(self.tree)
        self._views: dict[Group, View] = {}
        self._view_groups: dict[Group, Group] = {self.tree.root: self.tree.root}

    def view_of(self, group: Group) -> View:
        """Return the view in which ``group`` is opened."""
        if group not in self._views:
            self._views[group] = View(self.tree, group, self._surroundings)
        return self._views[group]

    def find_view_group(self, group: Group) -> Group:
        """Return the group to open to see the members of ``group``: itself, or one in whose view it is opened.

        A stack is opened at one of its members: it is seen in the view of the group around it.
        """
        pending: list[Group] = []
        for outer in group.chain_outwards():
            if outer in self._view_groups:
                break
            pending.append(outer)
        for outer in reversed(pending):  # the outermost first
            assert outer.parent is not None  # the root is in ``_view_groups`` from the start
            outer_view_group = self._view_groups[outer.parent]
            is_drawn_there = outer.kind == "stack" or outer in self.view_of(outer_view_group).opened_calls
            self._view_groups[outer] = outer_view_group if is_drawn_there else outer
        return self._view_groups[group]

    def view_name(self, member: Member) -> str:
        """Return the name of the picture that shows a node itself, or the members of a group."""
        group = self.tree.innermost_groups[member] if isinstance(member, int) else member
        return self.name_view(self.find_view_group(group))

    def name_view(self, group: Group) -> str:
        """Return the name of the picture in which ``group`` is opened: ``0/m3``."""
        return f"{self.tree.pass_id}/{group.id}"

    def linked_view(self, group: Group) -> str:
        """Return the name of the picture that opens a closed box: of a stack, that of its first member."""
        if group.kind == "rest":  # its boxes have boxes of their own where the level around them is opened
            assert group.parent is not None
            return self.view_name(group.parent)
        return self.view_name(group.stacked_calls[0])

    def list_views(self) -> list[View]:
        """List every view, the outermost first."""
        views = [self.view_of(self.tree.root)]
        for view in views:  # grows while it is read
            views.extend(self.view_of(group) for door in view.doors for group in door.stacked_calls)
        return views
