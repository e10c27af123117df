"""Long pictures in rows: a picture that goes far from right to left is cut into rows, like the lines of a text.

The network is read from the upper left to the lower right; the gradient goes the other way, from row to row.
"""

from collections import Counter
from collections.abc import Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from hookviz.picture.layered_layout import Curve, Edge, Placement, Point, Size, join, line, shift

WIDE, LONG = 2.6, 1_200.0
"""A picture is cut if it is this many times as wide as high, and longer than this number of points."""
BEST_RATIO = 16 / 9
MAX_ROWS = 12
WORTH = 1.25
"""How many times as large a picture of more rows must fit a screen: between rows, arrows go far."""
ROW_GAP = 40.0
"""Points between two rows, where arrows pass."""
CHANNEL = 14.0
"""Points between these arrows and the row below them; there is room for values above them."""
TURN = 16.0
"""Points between a box and the place where an arrow to another row turns."""
CORNER = 8.0
WAYS, WAY = 3, 5.0
"""How many arrows pass between two rows beside each other, and the points between them."""


class _Row(NamedTuple):
    """A row: from where to where it goes in the long picture, and how far it is moved."""

    start: float
    end: float
    top: float
    bottom: float
    shift_x: float
    shift_y: float

    def move(self, point: Point) -> Point:
        """Return where a point of the long picture stands in the row."""
        return point[0] + self.shift_x, point[1] + self.shift_y


def wrap_rows(placement: Placement, sizes: Sequence[Size], edges: Sequence[Edge]) -> Placement:
    """Return a placement in rows if the picture is long, else the placement itself.

    Args:
        placement: the picture, in which gradients go to the left.
        sizes: the sizes of its boxes.
        edges: its edges.
    """
    width, height = placement.size
    if width < LONG or width < WIDE * height:
        return placement
    spans = _list_spans(placement, sizes, {end for edge in edges if edge.is_drawn for end in edge[:2]})
    best = _cut_rows(placement, sizes, spans, 1)
    for count in range(2, min(MAX_ROWS, len(spans)) + 1):
        rows = _cut_rows(placement, sizes, spans, count)
        if _extent(rows) * WORTH < _extent(best):
            best = rows
    return placement if len(best) == 1 else _move(placement, sizes, edges, best)


def _list_spans(placement: Placement, sizes: Sequence[Size], joined: Set[int]) -> list[tuple[float, float]]:
    """Return from where to where boxes stand, from left to right; boxes above each other are one span.

    Gates without hooks, which are points, do not count: rows begin at their boxes. A first box to which no arrow leads,
    as an optimizer, is in one span with the next if arrows lead to that: it gets no row of its own.
    """
    spans: list[tuple[float, float]] = []
    is_alone = False
    boxes = enumerate(zip(placement.centres, sizes, strict=True))
    for index, ((x, _), size) in sorted(boxes, key=lambda box: box[1][0][0] - box[1][1].width / 2):
        left, right = x - size.width / 2, x + size.width / 2
        if size.width <= 1:
            continue
        follows_alone = is_alone and index in joined
        is_alone = (is_alone or not spans) and index not in joined
        if spans and (left < spans[-1][1] or follows_alone):
            spans[-1] = (spans[-1][0], max(right, spans[-1][1]))
        else:
            spans.append((left, right))
    return spans


def _cut_rows(
    placement: Placement, sizes: Sequence[Size], spans: Sequence[tuple[float, float]], count: int
) -> list[_Row]:
    """Cut the picture into ``count`` rows, or fewer, as short as they can be; all but the last one are full."""
    firsts = _fill_rows(spans, count)
    borders = [(spans[first - 1][1] + spans[first][0]) / 2 for first in firsts[1:]]
    rows, y = [], 0.0
    for first, (start, end) in zip(firsts, pairwise([0.0, *borders, placement.size.width]), strict=True):
        boxes = [
            (middle, size.height)
            for (x, middle), size in zip(placement.centres, sizes, strict=True)
            if start <= x < end
        ]
        top = min((middle - high / 2 for middle, high in boxes), default=0)
        bottom = max((middle + high / 2 for middle, high in boxes), default=0)
        top, bottom = _include_curves(placement, start, end, top, bottom)
        rows.append(_Row(start, end, top, bottom, -spans[first][0], y - top))
        y += bottom - top + ROW_GAP
    return rows


def _fill_rows(spans: Sequence[tuple[float, float]], count: int) -> list[int]:
    """Return the first span of each of ``count`` rows, or of fewer, of the least width that suffices."""
    least, most = max(right - left for left, right in spans), spans[-1][1] - spans[0][0]
    while most - least > 1:
        middle = (least + most) / 2
        least, most = (least, middle) if len(_fill_width(spans, middle)) <= count else (middle, most)
    return _fill_width(spans, most)


def _fill_width(spans: Sequence[tuple[float, float]], width: float) -> list[int]:
    """Return the first span of each row if as many spans go into a row as fit into ``width``."""
    firsts = [0]
    for index, (_, right) in enumerate(spans):
        if right - spans[firsts[-1]][0] > width and index > firsts[-1]:
            firsts.append(index)
    return firsts


def _include_curves(placement: Placement, start: float, end: float, top: float, bottom: float) -> tuple[float, float]:
    """Return the top and bottom of a row with the curves and values that lie in it."""
    inside = [curve for curve in placement.curves if all(start <= x < end for x, _ in (curve[0], curve[-1]))]
    heights = [y for curve in inside for _, y in curve]
    return min([top, *heights]), max([bottom, *heights])


def _extent(rows: Sequence[_Row]) -> float:
    """Return the width of the screen that rows need."""
    width = max(row.end - row.start for row in rows)
    return max(width, (rows[-1].bottom + rows[-1].shift_y) * BEST_RATIO)


def _move(placement: Placement, sizes: Sequence[Size], edges: Sequence[Edge], rows: Sequence[_Row]) -> Placement:
    """Move each box to its row, and let arrows between rows pass between these."""
    numbers = [_find_row(x, rows) for x, _ in placement.centres]
    centres = [rows[number].move(point) for point, number in zip(placement.centres, numbers, strict=True)]
    between = [edge for edge in edges if numbers[edge.start] != numbers[edge.end]]
    leaving = Counter((edge.start, edge.is_apart) for edge in between)
    ways = {start: index % WAYS * WAY for index, start in enumerate(leaving)}
    values_beside = Counter[int]()
    curves, labels = [], []
    for edge, curve, label in zip(edges, placement.curves, placement.labels, strict=True):
        row, to = rows[numbers[edge.start]], rows[numbers[edge.end]]
        if row is to:
            curves.append(shift(curve, row.shift_x, row.shift_y))
            labels.append(row.move(label))
            continue
        start, end = row.move(curve[0]), to.move(curve[-1])
        is_far = numbers[edge.start] > numbers[edge.end] + 1
        curves.append(_turn(start, end, (row, to), ways[edge.start, edge.is_apart], is_far=is_far))
        if leaving[edge.start, edge.is_apart] > 1:  # they start as one line: values are beside the lower end of the box
            bottom = centres[edge.end][1] + sizes[edge.end].height / 2
            middle = bottom - (values_beside[edge.end] + 0.5) * edge.label.height
            labels.append((end[0] + TURN + CORNER + edge.label.width / 2, middle))
            values_beside[edge.end] += 1
        else:
            labels.append(
                (start[0] - TURN + CORNER + edge.label.width / 2, _channel_above(row) - edge.label.height / 2)
            )
    height = rows[-1].bottom + rows[-1].shift_y
    return _widen(Placement(Size(0, height), centres, curves, labels), sizes, edges)


def _widen(placement: Placement, sizes: Sequence[Size], edges: Sequence[Edge]) -> Placement:
    """Return a placement as wide as its boxes, arrows and values need."""
    across = [x for curve in placement.curves for x, _ in curve]
    for (x, _), edge in zip(placement.labels, edges, strict=True):
        across += [x - edge.label.width / 2, x + edge.label.width / 2]
    across += [x + size.width / 2 for (x, _), size in zip(placement.centres, sizes, strict=True)]
    left, right = -min([0.0, *across]), max(across)
    return Placement(
        Size(right + left, placement.size.height),
        [(x + left, y) for x, y in placement.centres],
        [shift(curve, left, 0) for curve in placement.curves],
        [(x + left, y) for x, y in placement.labels],
    )


def _find_row(x: float, rows: Sequence[_Row]) -> int:
    return next((number for number, row in enumerate(rows) if x < row.end), len(rows) - 1)


def _channel_above(row: _Row) -> float:
    """Return how far down the arrows pass that leave a row upwards."""
    return row.top + row.shift_y - CHANNEL


def _turn(start: Point, end: Point, rows: tuple[_Row, _Row], way: float, *, is_far: bool) -> Curve:
    """Return the curve of an arrow that leaves a row, passes between rows, and enters another one from the right.

    Arrows of different boxes take ways beside each other, ``way`` points from the usual one. ``is_far``: whether there
    are rows between the two.
    """
    row, to = rows
    above_start = _channel_above(row) + way
    below_end = to.bottom + to.shift_y + ROW_GAP - CHANNEL + way
    out, into = start[0] - TURN + way, end[0] + TURN - way
    points = [start, (out, start[1]), (out, above_start)]
    if is_far:
        points += [(-TURN / 2 - way, above_start), (-TURN / 2 - way, below_end)]
    return _round_corners([*points, (into, below_end), (into, end[1]), end])


def _round_corners(points: Sequence[Point]) -> Curve:
    """Return a curve along straight lines with round corners."""
    pieces: list[Curve] = []
    at = points[0]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        arrive, leave = _towards(corner, before), _towards(corner, after)
        pieces += [line(at, arrive), (arrive, corner, corner, leave)]
        at = leave
    return join([*pieces, line(at, points[-1])])


def _towards(corner: Point, other: Point) -> Point:
    """Return the point beside a corner on the way to another one."""
    across, down = other[0] - corner[0], other[1] - corner[1]
    length = max(abs(across), abs(down), 0.001)
    part = min(CORNER, length / 2) / length
    return corner[0] + across * part, corner[1] + down * part
