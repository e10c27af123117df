"""Boxes that no arrows join, in rows: the passes of a long recording."""

from collections.abc import Sequence
from itertools import pairwise

from hookviz.picture import element_ids as ids
from hookviz.picture.dot_source import Figure, draw_group, empty_figure
from hookviz.picture.grouped_graph import GroupBox
from hookviz.picture.html_labels import SIZE, Style, room_for
from hookviz.picture.scene import Scene
from hookviz.trace import TraceData

WIDE = 960
"""Points: no wider, if two boxes fit beside each other: what a laptop's screen leaves beside the panel."""
APART = 20
"""Points from a box to the next, with their edges."""


class _Even(Style):
    """A look in which all boxes are as wide as the widest, so that they stand in columns."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene, None, final=True)
        self.width = max(room_for(text, SIZE) for fold in scene.folds for text in _longest(fold))
        self.width = max(self.width, *(room_for(fold.name, 16) for fold in scene.folds))

    def room(self, text: str, size: int) -> int:
        return self.width


def _longest(box: GroupBox) -> tuple[str, str]:
    """The longest texts in the two places where steps write on a box."""
    return box.longest(ids.gradient(box.id)), box.longest(ids.fired(box.id))


def grid(trace: TraceData, boxes: Sequence[GroupBox]) -> Figure:
    """The picture of ``boxes``, read as a page is: row by row."""
    scene = Scene(trace, -1, {}, {}, {}, len(boxes))
    scene.folds = list(boxes)
    look, figure = _Even(scene), empty_figure(ranksep="0.25", nodesep="0.15")
    columns = max(2, WIDE // (look.width + APART))
    rows = [boxes[at : at + columns] for at in range(0, len(boxes), columns)]
    for row in rows:
        with figure.subgraph() as level:
            level.attr(rank="same")
            for box in row:
                draw_group(level, box, look)
    neighbours = [pair for row in rows for pair in pairwise(row)]
    below = [(row[0], following[0]) for row, following in pairwise(rows)]
    for one, other in (*neighbours, *below):
        figure.edge(one.id, other.id, style="invis")
    return figure
