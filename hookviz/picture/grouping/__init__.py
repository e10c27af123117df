"""Which boxes a person sees: modules collapsed, runs and fans folded, and what is inside each of them."""

from hookviz.picture.grouping.tree import MANY, Group, Member, Tree, label_of
from hookviz.picture.grouping.views import View, Views

__all__ = ["MANY", "Group", "Member", "Tree", "View", "Views", "label_of"]
