"""The pictures of a recording of very many passes: groups of passes, and in them the passes, as boxes to be entered."""

from hookviz.picture.grouped_graph import GroupBox, make_activity_box
from hookviz.picture.grouping import Group
from hookviz.picture.grouping.activity import merge_consecutive
from hookviz.picture.grouping.pass_groups import PassTree
from hookviz.picture.pass_grid import draw_pass_grid
from hookviz.player.payload import View
from hookviz.player.scene_views import sent_texts
from hookviz.player.wording import Wording
from hookviz.support.messages import say
from hookviz.support.messages.text import Message
from hookviz.trace import TraceData

PREFIX = "passes/"
"""With this the names of these pictures begin; those of a pass begin with its number."""


class PassViews:
    """What the player is given of the groups of passes."""

    def __init__(self, trace: TraceData) -> None:
        self.trace, self.overview = trace, PassTree(trace)

    @property
    def names(self) -> list[str]:
        """The names of all pictures, that of the whole recording first."""
        return [f"{PREFIX}{group.id}" for group in self.overview.groups]

    def picture(self, name: str) -> str:
        """One picture, as SVG."""
        return draw_pass_grid(self.trace, self._boxes(self.overview.boxes[name.removeprefix(PREFIX)])).svg()

    def view(self, name: str, svg: int | str, wording: Wording) -> View:
        """What is shown in the picture ``svg``.

        Raises:
            KeyError: there is none of that name.
        """
        group = self.overview.boxes[name.removeprefix(PREFIX)]
        boxes = self._boxes(group)
        if not boxes:
            raise KeyError(name)
        return {
            "svg": svg,
            "steps": {},
            "clicks": {},
            "texts": sent_texts({spot: texts for box in boxes for spot, texts in box.texts.items()}, wording),
            "near": {},
            "pins": {},
            "spans": {box.id: merge_consecutive(box.steps) for box in boxes},
            "doors": {inner.id: _door(inner) for inner in self.overview.children(group)},
            "own": merge_consecutive(self.overview.activity_of(group).steps),
            "trail": [(f"{PREFIX}{at.id}", wording(self._name(at))) for at in list(group.chain_outwards())[::-1]],
        }

    def trail(self, pass_id: int, wording: Wording) -> list[tuple[str, Message]]:
        """The pictures that one has entered to come to a pass, the outermost first."""
        return [
            (f"{PREFIX}{group.id}", wording(self._name(group))) for group in self.overview.list_groups_around(pass_id)
        ]

    def _boxes(self, group: Group) -> list[GroupBox]:
        """The boxes of the groups and passes in ``group``."""
        boxes = []
        for inner in self.overview.children(group):
            of = self.overview.activity_of(inner)
            boxes.append(make_activity_box(inner.id, self._name(inner), _about(of.steps), of, of.steps[0]))
        return boxes

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
