"""The pictures of a recording of very many passes: groups of passes, and in them the passes, as boxes to be entered."""

from hookviz.picture.grouped_graph import GroupBox, box_about
from hookviz.picture.grouping import Group
from hookviz.picture.grouping.activity import spans
from hookviz.picture.grouping.pass_groups import Overview
from hookviz.picture.pass_grid import grid
from hookviz.player.payload import View
from hookviz.player.scene_views import text_messages
from hookviz.player.wording import Wording
from hookviz.support.messages import say
from hookviz.support.messages.text import Message
from hookviz.trace import TraceData

GROUP_PREFIX = "passes/"
"""With this the names of these pictures begin; those of a pass begin with its number."""


class PassViews:
    """What the player is given of the groups of passes."""

    def __init__(self, trace: TraceData) -> None:
        self.trace, self.overview = trace, Overview(trace)

    @property
    def names(self) -> list[str]:
        """The names of all pictures, that of the whole recording first."""
        return [f"{GROUP_PREFIX}{group.id}" for group in self.overview.groups]

    def picture(self, name: str) -> str:
        """One picture, as SVG."""
        return grid(self.trace, self._boxes(self.overview.folds[name.removeprefix(GROUP_PREFIX)])).svg()

    def view(self, name: str, svg: int | str, wording: Wording) -> View:
        """What is shown in the picture ``svg``.

        Raises:
            KeyError: there is none of that name.
        """
        group = self.overview.folds[name.removeprefix(GROUP_PREFIX)]
        boxes = self._boxes(group)
        if not boxes:
            raise KeyError(name)
        return {
            "svg": svg,
            "steps": {},
            "clicks": {},
            "texts": text_messages({spot: texts for box in boxes for spot, texts in box.texts.items()}, wording),
            "related": {},
            "pins": {},
            "spans": {box.id: spans(box.steps) for box in boxes},
            "links": {inner.id: _linked_view(inner) for inner in self.overview.inside(group)},
            "visible_steps": spans(self.overview.happened(group).steps),
            "breadcrumbs": [(f"{GROUP_PREFIX}{at.id}", wording(self._name(at))) for at in list(group.chain())[::-1]],
        }

    def trail(self, pass_id: int, wording: Wording) -> list[tuple[str, Message]]:
        """The pictures that one has entered to come to a pass, the outermost first."""
        return [(f"{GROUP_PREFIX}{group.id}", wording(self._name(group))) for group in self.overview.around(pass_id)]

    def _boxes(self, group: Group) -> list[GroupBox]:
        """The boxes of the groups and passes in ``group``."""
        boxes = []
        for inner in self.overview.inside(group):
            of = self.overview.happened(inner)
            boxes.append(box_about(inner.id, self._name(inner), _step_count_text(of.steps), of, of.steps[0]))
        return boxes

    def _name(self, fold: Group) -> str:
        if fold is self.overview.root:
            return say("passes.all", count=f"{len(fold.nodes):,}")
        first, last = (f"{pass_id + 1:,}" for pass_id in (fold.nodes[0], fold.nodes[-1]))
        return say("fold.pass", number=first) if fold.kind == "pass" else say("passes.some", first=first, last=last)


def _step_count_text(steps: list[int]) -> str:
    return say("passes.step") if len(steps) == 1 else say("passes.steps", count=f"{len(steps):,}")


def _linked_view(fold: Group) -> str:
    """The name of the picture to which a box leads."""
    return f"{fold.nodes[0]}/" if fold.kind == "pass" else f"{GROUP_PREFIX}{fold.id}"
