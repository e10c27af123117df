"""What is seen on entering a box: which calls are opened in their place, and which boxes stay closed."""

from dataclasses import dataclass, field
from functools import cached_property

from hookviz.picture.grouping.collapsing import collapse
from hookviz.picture.grouping.tree import MANY, Group, Member, Tree
from hookviz.trace import TraceData

FEW = 6
"""Up to so many boxes beside a model that fills the picture alone do no harm."""


@dataclass(eq=False)
class View:
    """One picture: a box, and what is seen of its inside."""

    tree: Tree
    fold: Group
    nodes: list[int] = field(default_factory=list)
    opened: list[Group] = field(default_factory=list)
    """The calls around whose inside a frame is drawn, the outermost first; with the box itself, if it is one."""
    closed: list[Group] = field(default_factory=list)
    """The boxes that can be entered."""

    def __post_init__(self) -> None:
        if self.fold.call >= 0:
            self.opened.append(self.fold)
        level: list[Member] = list(self.fold.inside)
        shown = len(level) + len(self.opened)
        while level:
            self.nodes += [member for member in level if isinstance(member, int)]
            folds = [member for member in level if not isinstance(member, int)]
            # There is nothing to enter in a call that made no node and no call, such as dropout's in evaluation.
            self.opened += [fold for fold in folds if not fold.inside]
            folds = [fold for fold in folds if fold.inside]
            calls = [fold for fold in folds if fold.call >= 0]
            inside = [member for call in calls for member in call.inside]
            # All calls of a level are opened, or none: some that look other than their like would puzzle. A model with
            # hardly anything around it is opened anyway, since it is what one wants to see.
            fit = shown + len(inside) <= (MANY + FEW if shown <= FEW and len(folds) == 1 else MANY)
            self.closed += [fold for fold in folds if not (fit and fold.call >= 0)]
            self.opened += calls if fit else []
            level, shown = (inside, shown + len(inside)) if fit else ([], shown)

    @property
    def module(self) -> str:
        """The module that is around all that is seen; empty where there is none."""
        call = next((fold.call for fold in self.fold.chain() if fold.call >= 0), -1)
        return self.tree.trace.call(call) if call >= 0 else ""

    @cached_property
    def shown(self) -> dict[int, Member]:
        """Node anywhere in the box → itself, or the closed box that holds it."""
        return {node: node for node in self.nodes} | {node: fold for fold in self.closed for node in fold.nodes}


class Views:
    """All views of one pass, each made when it is asked for."""

    def __init__(self, trace: TraceData, pass_id: int = 0) -> None:
        self.tree = Tree(trace, pass_id)
        collapse(self.tree)
        self._views: dict[Group, View] = {}
        self._tops: dict[Group, Group] = {self.tree.root: self.tree.root}

    def of(self, fold: Group) -> View:
        """What is seen on entering ``fold``."""
        if fold not in self._views:
            self._views[fold] = View(self.tree, fold)
        return self._views[fold]

    def top(self, fold: Group) -> Group:
        """The box that one enters to see what lies directly in ``fold``: it, or one in which it is opened."""
        waiting: list[Group] = []
        for at in fold.chain():
            if at in self._tops:
                break
            waiting.append(at)
        for at in reversed(waiting):  # from the outermost on
            assert at.parent is not None  # the root is known
            around = self._tops[at.parent]
            self._tops[at] = around if at in self.of(around).opened else at
        return self._tops[fold]

    def name(self, member: Member) -> str:
        """What the picture is called in which one sees a node for itself, or the inside of a box: ``0/m3``."""
        fold = self.tree.around[member] if isinstance(member, int) else member
        return f"{self.tree.pass_id}/{self.top(fold).id}"

    def all(self) -> list[View]:
        """Every view that somebody can enter, the outermost first."""
        found = [self.of(self.tree.root)]
        for view in found:  # grows while it is read
            found.extend(self.of(fold) for fold in view.closed)
        return found
