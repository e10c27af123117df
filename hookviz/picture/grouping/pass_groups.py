"""The passes of a recording in groups: more of them than can be seen at once are folded, as modules are."""

from collections.abc import Iterator
from itertools import count

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping.activity import Of, merged, of_pass
from hookviz.picture.grouping.collapsing import parted
from hookviz.picture.grouping.tree import MANY, Group, Member
from hookviz.trace import TraceData


def groups_passes(trace: TraceData) -> bool:
    """Whether ``trace`` has more passes than can be seen at once."""
    return len(trace.lookup.passes) > MANY


class Overview:
    """The passes of a recording as a tree of boxes: groups in which are groups or passes, and passes."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.folds: dict[str, Group] = {}
        """Id of a box → it; the whole recording is the empty one."""
        self._of: dict[str, Of] = {}
        numbers = count()

        def fresh(kind: str, inside: list[Member]) -> Group:
            fold = Group(ids.group(next(numbers)), kind, inside)
            self.folds[fold.id] = fold
            return fold

        passes: list[Member] = [fresh("pass", [pass_id]) for pass_id in trace.lookup.passes]
        self.root = Group("", "recording", parted(passes, fresh))
        self.folds[""] = self.root
        for fold in self.folds.values():
            for member in fold.inside:
                if isinstance(member, Group):
                    member.parent = fold
        self._groups = {fold.inside[0]: fold.parent for fold in self.folds.values() if fold.kind == "pass"}

    @property
    def groups(self) -> list[Group]:
        """The boxes in which are groups or passes, the outermost first."""
        found = [self.root]
        for group in found:  # grows while it is read
            found.extend(fold for fold in self.inside(group) if fold.kind != "pass")
        return found

    def inside(self, group: Group) -> Iterator[Group]:
        """The boxes that one sees in a group."""
        return (member for member in group.inside if isinstance(member, Group))

    def around(self, pass_id: int) -> list[Group]:
        """The groups around a pass, the outermost first."""
        group = self._groups[pass_id]
        return [] if group is None else list(group.chain())[::-1]

    def happened(self, fold: Group) -> Of:
        """What happened in a pass, or in all passes of a group."""
        if fold.id not in self._of:
            if fold.kind == "pass":
                self._of[fold.id] = of_pass(self.trace, fold.nodes[0])
            else:
                self._of[fold.id] = merged(self.happened(inner) for inner in self.inside(fold))
        return self._of[fold.id]
