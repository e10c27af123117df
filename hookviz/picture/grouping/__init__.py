"""Groups of a large pass: module calls, and runs, fans and parts of too many boxes; and the views that open them."""

from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, BoxTree, Group, Member, has_many_passes, kind_label
from hookviz.picture.grouping.views import INTERNAL, View, Views

__all__ = [
    "INTERNAL",
    "MAX_VISIBLE_BOXES",
    "BoxTree",
    "Group",
    "Member",
    "View",
    "Views",
    "has_many_passes",
    "kind_label",
]
