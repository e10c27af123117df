"""Which boxes a person sees: modules collapsed, runs and fans folded, and what is inside each of them."""

from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, Group, Member, Tree, kind_label
from hookviz.picture.grouping.views import View, Views

__all__ = ["MAX_VISIBLE_BOXES", "Group", "Member", "Tree", "View", "Views", "kind_label"]
