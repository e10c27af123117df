"""The views of a pass: on entering a group, module calls in it may be opened at once; other groups stay closed."""

from dataclasses import dataclass, field
from functools import cached_property

from hookviz.picture.grouping.collapsing import collapse
from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, BoxTree, Group, Member
from hookviz.trace import TraceData

MAX_BOXES_BESIDE_MODEL = 6
"""A model is opened even if its boxes alone fill the picture, unless it has more boxes than this around it."""


@dataclass(eq=False)
class View:
    """The inside of a group as one picture shows it."""

    tree: BoxTree
    group: Group
    nodes: list[int] = field(default_factory=list)
    opened_calls: list[Group] = field(default_factory=list)
    """The calls that are drawn as frames around their members, the outermost first; with the group if it is a call."""
    closed_groups: list[Group] = field(default_factory=list)
    """The groups that are drawn as closed boxes, which can be entered."""

    def __post_init__(self) -> None:
        if self.group.call is not None:
            self.opened_calls.append(self.group)
        level: list[Member] = list(self.group.members)
        box_count = len(level) + len(self.opened_calls)
        while level:
            self.nodes += [member for member in level if isinstance(member, int)]
            groups = [member for member in level if not isinstance(member, int)]
            # A call without nodes and calls, such as that of dropout in evaluation, is empty: nobody needs to enter it.
            self.opened_calls += [group for group in groups if not group.members]
            groups = [group for group in groups if group.members]
            calls = [group for group in groups if group.call is not None]
            members_of_calls = [member for call in calls for member in call.members]
            # Either all calls of a level are opened or none, so that calls of one kind look alike. A model with hardly
            # anything around it is opened in any case, since it is what one wants to see.
            fits = box_count + len(members_of_calls) <= (
                MAX_VISIBLE_BOXES + MAX_BOXES_BESIDE_MODEL
                if box_count <= MAX_BOXES_BESIDE_MODEL and len(groups) == 1
                else MAX_VISIBLE_BOXES
            )
            self.closed_groups += [group for group in groups if not (fits and group.call is not None)]
            self.opened_calls += calls if fits else []
            level, box_count = (members_of_calls, box_count + len(members_of_calls)) if fits else ([], box_count)

    @property
    def module(self) -> str:
        """The innermost module around the whole view; empty if there is none."""
        call = next((group.call for group in self.group.chain_outwards() if group.call is not None), None)
        return "" if call is None else self.tree.trace.call(call)

    @cached_property
    def members_by_node(self) -> dict[int, Member]:
        """Each node in the group at any depth → itself, or the closed group that contains it."""
        return {node: node for node in self.nodes} | {
            node: group for group in self.closed_groups for node in group.nodes
        }


class Views:
    """All views of one pass; each is made when it is first needed."""

    def __init__(self, trace: TraceData, pass_id: int = 0, *, internal: bool = False) -> None:
        self.tree = BoxTree(trace, pass_id, internal=internal)
        collapse(self.tree)
        self._views: dict[Group, View] = {}
        self._view_groups: dict[Group, Group] = {self.tree.root: self.tree.root}

    def view_of(self, group: Group) -> View:
        """Return the view on entering ``group``."""
        if group not in self._views:
            self._views[group] = View(self.tree, group)
        return self._views[group]

    def find_view_group(self, group: Group) -> Group:
        """Return the group to enter to see the members of ``group``: itself, or one in whose view it is opened."""
        pending: list[Group] = []
        for outer in group.chain_outwards():
            if outer in self._view_groups:
                break
            pending.append(outer)
        for outer in reversed(pending):  # the outermost first
            assert outer.parent is not None  # the root is in ``_view_groups`` from the start
            outer_view_group = self._view_groups[outer.parent]
            self._view_groups[outer] = (
                outer_view_group if outer in self.view_of(outer_view_group).opened_calls else outer
            )
        return self._view_groups[group]

    def view_name(self, member: Member) -> str:
        """Return the name of the picture that shows a node itself, or the members of a group: ``0/m3``."""
        group = self.tree.innermost_groups[member] if isinstance(member, int) else member
        return f"{self.tree.pass_id}/{self.find_view_group(group).id}"

    def list_views(self) -> list[View]:
        """List every view that can be entered, the outermost first."""
        views = [self.view_of(self.tree.root)]
        for view in views:  # grows while it is read
            views.extend(self.view_of(group) for group in view.closed_groups)
        return views
