"""The picture of the passes of a long recording: boxes in rows, without arrows."""

from collections.abc import Sequence
from itertools import pairwise

from hookviz.picture import element_ids as ids
from hookviz.picture.dot_source import Figure, draw_group, make_empty_figure
from hookviz.picture.grouped_graph import GroupBox
from hookviz.picture.html_labels import FONT_SIZE, Style, text_width
from hookviz.picture.scene import Scene
from hookviz.trace import TraceData

MAX_WIDTH = 960
"""Points: the room for a picture next to the panel on a laptop. A row of two boxes may be wider."""
BOX_DISTANCE = 20
"""Points between two boxes, with their outlines."""


class _EqualWidthStyle(Style):
    """A style in which all boxes are as wide as the widest, so that they stand in columns."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene, None, for_player=True)
        self.width = max(text_width(text, FONT_SIZE) for box in scene.group_boxes for text in _list_longest_texts(box))
        self.width = max(self.width, *(text_width(box.name, 16) for box in scene.group_boxes))

    def width_of(self, text: str, size: int) -> int:
        return self.width


def _list_longest_texts(box: GroupBox) -> tuple[str, str]:
    """Return the longest of the texts with the gradient and with the count of fired hooks."""
    return box.longest_text(ids.gradient_id(box.id)), box.longest_text(ids.fired_count_id(box.id))


def draw_pass_grid(trace: TraceData, boxes: Sequence[GroupBox]) -> Figure:
    """Draw ``boxes`` in rows, in reading order."""
    scene = Scene(trace, -1, {}, {}, {}, len(boxes))
    scene.group_boxes = list(boxes)
    style, figure = _EqualWidthStyle(scene), make_empty_figure(ranksep="0.25", nodesep="0.15")
    columns = max(2, MAX_WIDTH // (style.width + BOX_DISTANCE))
    rows = [boxes[start : start + columns] for start in range(0, len(boxes), columns)]
    for row in rows:
        with figure.subgraph() as level:
            level.attr(rank="same")
            for box in row:
                draw_group(level, box, style)
    neighbours = [pair for row in rows for pair in pairwise(row)]
    first_in_rows = [(row[0], next_row[0]) for row, next_row in pairwise(rows)]
    for first, second in (*neighbours, *first_in_rows):
        figure.edge(first.id, second.id, style="invis")
    return figure
