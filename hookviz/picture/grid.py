"""Boxes that no arrows join, in rows: the passes of a long recording."""

from collections.abc import Sequence
from itertools import pairwise

from hookviz.picture.cells import Look
from hookviz.picture.dot import Figure, empty_figure
from hookviz.picture.foldbox import draw_fold
from hookviz.picture.folded import FoldBox
from hookviz.picture.scene import Scene
from hookviz.trace import Trace

COLUMNS = 4
"""So many boxes in a row: as wide as a laptop's screen leaves beside the panel, in letters that one can read."""


def grid(trace: Trace, boxes: Sequence[FoldBox]) -> Figure:
    """The picture of ``boxes``, read as a page is: row by row."""
    scene = Scene(trace, -1, {}, {}, {}, len(boxes))
    scene.folds = list(boxes)
    look, figure = Look(scene, None, final=True), empty_figure(ranksep="0.25", nodesep="0.15")
    rows = [boxes[at : at + COLUMNS] for at in range(0, len(boxes), COLUMNS)]
    for row in rows:
        with figure.subgraph() as level:
            level.attr(rank="same")
            for box in row:
                draw_fold(level, box, look)
    neighbours = [pair for row in rows for pair in pairwise(row)]
    below = [(row[0], following[0]) for row, following in pairwise(rows)]
    for one, other in (*neighbours, *below):
        figure.edge(one.id, other.id, style="invis")
    return figure
