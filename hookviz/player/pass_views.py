"""The pictures of a recording of many passes: passes and groups of passes are boxes that can be opened."""

from hookviz.picture.grouped_graph import GroupBox, make_activity_box
from hookviz.picture.grouping import Group
from hookviz.picture.grouping.activity import merge_consecutive
from hookviz.picture.grouping.pass_groups import PassTree
from hookviz.picture.pass_grid import draw_pass_grid
from hookviz.player.payload import View
from hookviz.player.scene_views import text_messages
from hookviz.player.wording import Wording
from hookviz.support.messages import say
from hookviz.support.messages.text import Message
from hookviz.trace import TraceData
from hookviz.trace.sentences import format_pass_number

GROUP_PREFIX = "passes/"
"""The prefix of the names of these pictures; the names of a pass's pictures begin with its number."""


class PassViews:
    """The named pictures of the groups of passes."""

    def __init__(self, trace: TraceData) -> None:
        self.trace, self.overview = trace, PassTree(trace)

    @property
    def names(self) -> list[str]:
        """The names of all pictures. The picture of the whole recording is the first."""
        return [f"{GROUP_PREFIX}{group.id}" for group in self.overview.groups]

    def picture(self, name: str) -> str:
        """Return a picture as SVG."""
        return draw_pass_grid(self.trace, self._boxes(self.overview.boxes[name.removeprefix(GROUP_PREFIX)])).svg()

    def view(self, name: str, svg: int | str, wording: Wording) -> View:
        """Return the view of a group of passes with the picture ``svg``.

        Raises:
            KeyError: there is no picture ``name``.
        """
        group = self.overview.boxes[name.removeprefix(GROUP_PREFIX)]
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
            "arrows": {},
            "spans": {box.id: merge_consecutive(box.steps) for box in boxes},
            "links": {inner.id: _linked_view(inner) for inner in self.overview.children(group)},
            "visible_steps": merge_consecutive(self.overview.activity_of(group).steps),
            "breadcrumbs": [
                (f"{GROUP_PREFIX}{at.id}", wording(self._title(at))) for at in list(group.chain_outwards())[::-1]
            ],
        }

    def breadcrumbs(self, pass_id: int, wording: Wording) -> list[tuple[str, Message]]:
        """Return (name, title) of the pictures around a pass, the outermost first."""
        return [
            (f"{GROUP_PREFIX}{group.id}", wording(self._title(group)))
            for group in self.overview.list_groups_around(pass_id)
        ]

    def _boxes(self, group: Group) -> list[GroupBox]:
        """Return a box for each group or pass in ``group``."""
        boxes = []
        for inner in self.overview.children(group):
            activity = self.overview.activity_of(inner)
            boxes.append(
                make_activity_box(
                    inner.id, self._title(inner), _step_count_text(activity.steps), activity, activity.steps[0]
                )
            )
        return boxes

    def _title(self, group: Group) -> str:
        if group is self.overview.root:
            return say("passes.all", count=f"{len(group.nodes):,}")
        first, last = (format_pass_number(self.trace, pass_id) for pass_id in (group.nodes[0], group.nodes[-1]))
        return say("fold.pass", number=first) if group.kind == "pass" else say("passes.some", first=first, last=last)


def _step_count_text(steps: list[int]) -> str:
    return say("passes.step") if len(steps) == 1 else say("passes.steps", count=f"{len(steps):,}")


def _linked_view(group: Group) -> str:
    """Return the name of the picture that a click on the box of ``group`` opens."""
    return f"{group.nodes[0]}/" if group.kind == "pass" else f"{GROUP_PREFIX}{group.id}"
