"""Which boxes a person sees: modules collapsed, runs and fans folded, and what is inside each of them."""

from hookviz.fold.tree import MANY, Fold, Member, Tree, label_of
from hookviz.fold.view import View, Views

__all__ = ["MANY", "Fold", "Member", "Tree", "View", "Views", "label_of"]
