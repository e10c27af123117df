"""Groups of passes: a recording with more than ``MAX_VISIBLE_BOXES`` passes shows them in groups."""

from collections.abc import Iterator
from itertools import count

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping.activity import BoxActivity, collect_pass_activity, merge_activities
from hookviz.picture.grouping.collapsing import split_into_parts
from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, Group, Member
from hookviz.trace import TraceData


def needs_pass_groups(trace: TraceData) -> bool:
    """Whether ``trace`` has too many passes to show them all at once."""
    return len(trace.lookup.passes) > MAX_VISIBLE_BOXES


class PassTree:
    """The passes of a recording as a tree of boxes: the root and its groups contain groups or passes."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.boxes: dict[str, Group] = {}
        """Id → box; the id of the root is empty."""
        self._activities: dict[str, BoxActivity] = {}
        numbers = count()

        def make_group(kind: str, members: list[Member]) -> Group:
            group = Group(ids.group_id(next(numbers)), kind, members)
            self.boxes[group.id] = group
            return group

        passes: list[Member] = [make_group("pass", [pass_id]) for pass_id in trace.lookup.passes]
        self.root = Group("", "recording", split_into_parts(passes, make_group))
        self.boxes[""] = self.root
        for group in self.boxes.values():
            for member in group.members:
                if isinstance(member, Group):
                    member.parent = group
        self._parents = {group.members[0]: group.parent for group in self.boxes.values() if group.kind == "pass"}

    @property
    def groups(self) -> list[Group]:
        """The root and all groups, the outermost first."""
        groups = [self.root]
        for group in groups:  # grows while it is read
            groups.extend(box for box in self.children(group) if box.kind != "pass")
        return groups

    def children(self, group: Group) -> Iterator[Group]:
        """Return the boxes directly in a group."""
        return (member for member in group.members if isinstance(member, Group))

    def list_groups_around(self, pass_id: int) -> list[Group]:
        """List the groups around a pass, the outermost first."""
        group = self._parents[pass_id]
        return [] if group is None else list(group.chain_outwards())[::-1]

    def activity_of(self, box: Group) -> BoxActivity:
        """Return the activity of a pass, or of all passes of a group."""
        if box.id not in self._activities:
            if box.kind == "pass":
                self._activities[box.id] = collect_pass_activity(self.trace, box.nodes[0])
            else:
                self._activities[box.id] = merge_activities(self.activity_of(inner) for inner in self.children(box))
        return self._activities[box.id]
