"""Boxes that no arrows join, in rows: the passes of a long recording."""

from collections.abc import Sequence
from itertools import pairwise

from hookviz.picture import element_ids as ids
from hookviz.picture.dot_source import Figure, draw_group, empty_figure
from hookviz.picture.grouped_graph import GroupBox
from hookviz.picture.html_labels import FONT_SIZE, Style, text_width
from hookviz.picture.scene import Scene
from hookviz.trace import TraceData

MAX_WIDTH = 960
"""Points: no wider, if two boxes fit beside each other: what a laptop's screen leaves beside the panel."""
BOX_DISTANCE = 20
"""Points from a box to the next, with their edges."""


class _EqualWidthStyle(Style):
    """A look in which all boxes are as wide as the widest, so that they stand in columns."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene, None, for_player=True)
        self.width = max(
            text_width(text, FONT_SIZE) for fold in scene.group_boxes for text in _list_longest_texts(fold)
        )
        self.width = max(self.width, *(text_width(fold.name, 16) for fold in scene.group_boxes))

    def width_of(self, text: str, size: int) -> int:
        return self.width


def _list_longest_texts(box: GroupBox) -> tuple[str, str]:
    """The longest texts in the two places where steps write on a box."""
    return box.longest_text(ids.gradient_id(box.id)), box.longest_text(ids.fired_count_id(box.id))


def draw_pass_grid(trace: TraceData, boxes: Sequence[GroupBox]) -> Figure:
    """The picture of ``boxes``, read as a page is: row by row."""
    scene = Scene(trace, -1, {}, {}, {}, len(boxes))
    scene.group_boxes = list(boxes)
    style, figure = _EqualWidthStyle(scene), empty_figure(ranksep="0.25", nodesep="0.15")
    columns = max(2, MAX_WIDTH // (style.width + BOX_DISTANCE))
    rows = [boxes[start : start + columns] for start in range(0, len(boxes), columns)]
    for row in rows:
        with figure.subgraph() as level:
            level.attr(rank="same")
            for box in row:
                draw_group(level, box, style)
    neighbours = [pair for row in rows for pair in pairwise(row)]
    below = [(row[0], following[0]) for row, following in pairwise(rows)]
    for first, second in (*neighbours, *below):
        figure.edge(first.id, second.id, style="invis")
    return figure
