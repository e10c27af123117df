"""The pictures of a recording of very many passes: groups of passes, and in them the passes, as boxes to be entered."""

from typing import Any

from hookviz.picture.grouped_graph import box_about
from hookviz.picture.grouping import Group
from hookviz.picture.grouping.activity import spans
from hookviz.picture.grouping.pass_groups import Overview
from hookviz.picture.pass_grid import grid
from hookviz.support.messages import say
from hookviz.trace import TraceData

PREFIX = "passes/"
"""With this the names of these pictures begin; those of a pass begin with its number."""


class PassViews:
    """What the player is given of the groups of passes."""

    def __init__(self, trace: TraceData) -> None:
        self.trace, self.overview = trace, Overview(trace)

    @property
    def names(self) -> list[str]:
        """The names of all pictures, that of the whole recording first."""
        return [f"{PREFIX}{group.id}" for group in self.overview.groups]

    def view(self, name: str) -> dict[str, Any]:
        """One picture, as ``Large`` has those of the inside of a pass.

        Raises:
            KeyError: there is none of that name.
        """
        group = self.overview.folds[name.removeprefix(PREFIX)]
        folds = list(self.overview.inside(group))
        if not folds:
            raise KeyError(name)
        boxes = []
        for fold in folds:
            of = self.overview.happened(fold)
            boxes.append(box_about(fold.id, self._name(fold), _about(of.steps), of, of.steps[0]))
        texts = {spot: [*map(list, told.items())] for box in boxes for spot, told in box.texts.items()}
        return {
            "svg": grid(self.trace, boxes).svg(),
            "texts": texts,
            "steps": {},
            "ports": {},
            "spans": {box.id: spans(box.steps) for box in boxes},
            "doors": {fold.id: _door(fold) for fold in folds},
            "own": spans(self.overview.happened(group).steps),
            "trail": [[f"{PREFIX}{at.id}", self._name(at)] for at in list(group.chain())[::-1]],
        }

    def trail(self, pass_id: int) -> list[list[str]]:
        """The pictures that one has entered to come to a pass, the outermost first."""
        return [[f"{PREFIX}{group.id}", self._name(group)] for group in self.overview.around(pass_id)]

    def _name(self, fold: Group) -> str:
        if fold is self.overview.root:
            return say("passes.all", count=f"{len(fold.nodes):,}")
        first, last = (f"{pass_id + 1:,}" for pass_id in (fold.nodes[0], fold.nodes[-1]))
        return say("fold.pass", number=first) if fold.kind == "pass" else say("passes.some", first=first, last=last)


def _about(steps: list[int]) -> str:
    return say("passes.step") if len(steps) == 1 else say("passes.steps", count=f"{len(steps):,}")


def _door(fold: Group) -> str:
    """The name of the picture to which a box leads."""
    return f"{fold.nodes[0]}/" if fold.kind == "pass" else f"{PREFIX}{fold.id}"
