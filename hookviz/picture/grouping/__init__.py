"""Groups of a large pass: module calls, stacks of equal ones, and parts of levels; and the views that open them."""

from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, BoxTree, Group, Member, has_many_passes, kind_label
from hookviz.picture.grouping.views import View, Views

__all__ = [
    "MAX_VISIBLE_BOXES",
    "BoxTree",
    "Group",
    "Member",
    "View",
    "Views",
    "has_many_passes",
    "kind_label",
]
