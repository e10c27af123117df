"""Where boxes of given sizes stand: Graphviz answers with positions; if it cannot, the boxes are placed in layers.

All lengths are points. The gradient goes from the right to the left, or from the top down.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from hookviz.picture.graphviz_client import Job, NoWorkerError, WorkerDiedError, draw_in_worker

Point = tuple[float, float]
Curve = tuple[Point, ...]
"""A cubic Bézier curve: its start, and for each piece two control points and an end."""
Direction = Literal["left", "down"]
"""Where the gradient goes."""

RANK_GAPS: Mapping[Direction, float] = {"left": 32.0, "down": 44.0}
"""Points between the layers of boxes."""
BOX_GAP = 20.0
"""Points between the boxes of a layer."""
AROUND = 6.0
"""Points above and below all boxes where there is room for an arrow."""
PORT_HEIGHT = 4
STEEP = 8.0
"""An arrow whose end is this many points higher or lower than its start crosses the value that stands at its middle."""
LOOSE = 5.0
"""Points of the height of a value that hold no letters."""
SAMPLES = 32
"""How many points of each piece of a curve are looked at."""
VALUE_GAP = 13.0
"""Points between the end of such an arrow and its value: the length of the arrow's head, and some room."""
LEFT_OF_VALUE = 4.0
"""Points between a value and an arrow beside it that goes down."""
MAX_SPANNED_LAYERS = 1_000
"""Layers between the ends of all edges: with more of them, Graphviz takes seconds to minutes, and does not lay out."""


class Size(NamedTuple):
    """The size of a box, or of a whole layout."""

    width: float
    height: float


class Edge(NamedTuple):
    """An edge between two boxes, given by their indices."""

    start: int
    end: int
    label: Size = Size(0, 0)
    """The room that the value on it needs."""
    is_drawn: bool = True
    """Whether there is a line, or the edge only keeps its ends in order."""
    start_offset: float = 0
    """How far below the middle of its box the edge starts, where gradients go to the left, and where it ends."""
    end_offset: float = 0
    is_apart: bool = False
    """Whether it keeps apart from the other edges of its boxes, because it stands for something else."""


class Placement(NamedTuple):
    """Where boxes and edges are."""

    size: Size
    centres: Sequence[Point]
    curves: Sequence[Curve]
    """The curve of each edge, from its start to its end."""
    labels: Sequence[Point]
    """The middle of the value of each edge."""


class Boxes(NamedTuple):
    """What is to be placed."""

    sizes: tuple[Size, ...]
    edges: tuple[Edge, ...]
    direction: Direction
    first: int | None = None
    """The box before all others, where gradients enter, if there is one."""
    last: int | None = None
    """The box after all others, where gradients leave, if there is one."""


@lru_cache(maxsize=512)
def place_boxes(boxes: Boxes) -> Placement:
    """Return where the boxes stand; equal layouts are computed once.

    >>> placement = place_boxes(Boxes((Size(60, 20), Size(60, 20)), (Edge(0, 1),), "left"))
    >>> placement.centres[0][0] > placement.centres[1][0]
    True
    """
    if not boxes.sizes:
        return Placement(Size(0, 0), (), (), ())
    order = _order_of_chain(len(boxes.sizes), boxes.edges)
    if order is not None:
        return _place_layers(boxes, [[index] for index in order], _level_arrows(boxes.edges, order))
    if count_spanned_layers(len(boxes.sizes), boxes.edges) <= MAX_SPANNED_LAYERS:
        positions = _ask_graphviz(boxes)
        if positions is not None:
            return _read_positions(positions, boxes)
    return _place_layers(boxes, _layers_of(len(boxes.sizes), boxes.edges))


def _ask_graphviz(boxes: Boxes) -> bytes | None:
    """Return the laid-out graph; None if Graphviz crashed, took too long or cannot run here.

    No reader is told: a picture with plainer curves is still the picture.
    """
    try:
        answer = draw_in_worker(Job(_write_source(boxes), "json0", "dot"))
    except (NoWorkerError, WorkerDiedError):
        return None
    return None if answer.error else answer.content


# -- without Graphviz


def _order_of_chain(count: int, edges: Sequence[Edge]) -> list[int] | None:
    """Return the boxes from the first to the last if each edge leads from one to the next; None if not."""
    after = {edge.start: edge.end for edge in edges}
    if len(edges) != max(count - 1, 0) or len(after) != len(edges) or len({edge.end for edge in edges}) != len(edges):
        return None
    order = [index for index in range(count) if index not in after.values()][:1]
    while order and order[-1] in after:
        order.append(after[order[-1]])
    return order if len(order) == count else None


def _layers_of(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Return the boxes by their distance from the first ones; edges of a cycle count for nothing."""
    above: dict[int, set[int]] = {index: set() for index in range(count)}
    for edge in edges:
        above[edge.end].add(edge.start)
    try:
        order = [*TopologicalSorter(above).static_order()]
    except CycleError:
        order, above = [*range(count)], {}
    depth: dict[int, int] = {}
    for index in order:
        depth[index] = 1 + max((depth[start] for start in above.get(index, ())), default=-1)
    layers: list[list[int]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for index in sorted(depth):
        layers[depth[index]].append(index)
    return layers


def count_spanned_layers(count: int, edges: Sequence[Edge]) -> int:
    """Count the layers between the two ends of each edge; the layout needs room for the edge in each of them.

    >>> count_spanned_layers(3, [Edge(0, 1), Edge(1, 2), Edge(0, 2)]), count_spanned_layers(2, [Edge(0, 1), Edge(1, 0)])
    (1, 0)
    """
    depth = {index: number for number, layer in enumerate(_layers_of(count, edges)) for index in layer}
    return sum(max(depth[edge.end] - depth[edge.start] - 1, 0) for edge in edges)


def _level_arrows(edges: Sequence[Edge], order: Sequence[int]) -> dict[int, float]:
    """Return how far down each box of a chain is moved, so that the arrows between them are level."""
    edge_from = {edge.start: edge for edge in edges}
    downs = dict.fromkeys(order[:1], 0.0)
    for index in order[:-1]:
        edge = edge_from[index]
        downs[edge.end] = downs[index] + edge.start_offset - edge.end_offset
    return downs


def _place_layers(
    boxes: Boxes, layers: Sequence[Sequence[int]], downs: Mapping[int, float] = MappingProxyType({})
) -> Placement:
    """Place the boxes of each layer beside each other, and the layers after each other; edges may cross boxes.

    Args:
        boxes: the boxes.
        layers: their indices, layer by layer.
        downs: index → how far down a box is moved, where gradients go to the left.
    """
    sizes, edges, direction = boxes.sizes, boxes.edges, boxes.direction
    turned = [size if direction == "down" else Size(size.height, size.width) for size in sizes]
    breadths = [sum(turned[index].width for index in layer) + BOX_GAP * (len(layer) - 1) for layer in layers]
    breadth = max(breadths, default=0)
    places: list[Point] = [(0, 0)] * len(sizes)
    depth = gap = 0.0
    for layer, own in zip(layers, breadths, strict=True):
        depth += gap
        thickness = max(turned[index].height for index in layer)
        across = (breadth - own) / 2
        for index in layer:
            places[index] = (across + turned[index].width / 2, depth + thickness / 2)
            across += turned[index].width + BOX_GAP
        depth += thickness
        labels = [edge.label for edge in edges if edge.start in layer]
        gap = max([RANK_GAPS[direction], *((one.height if direction == "down" else one.width) + 24 for one in labels)])
    size = Size(breadth, depth)
    if direction == "left":
        places = [(depth - down, across + downs.get(index, 0)) for index, (across, down) in enumerate(places)]
        top = min(y - size.height / 2 for (_, y), size in zip(places, sizes, strict=True))
        bottom = max(y + size.height / 2 for (_, y), size in zip(places, sizes, strict=True))
        places = [(x, y - top) for x, y in places]
        size = Size(depth, bottom - top)
    curves = [_straight(places, sizes, edge, direction) for edge in edges]
    middles = [
        _beside((curve[0][0] + curve[-1][0]) / 2, (curve[0][1] + curve[-1][1]) / 2, edge.label, direction)
        for curve, edge in zip(curves, edges, strict=True)
    ]
    return Placement(size, places, curves, middles)


def _straight(places: Sequence[Point], sizes: Sequence[Size], edge: Edge, direction: Direction) -> Curve:
    """Return a line from the side of a box at which gradients leave it to the side at which they enter the next."""
    return line(*_ends(places, sizes, edge, direction))


def _ends(places: Sequence[Point], sizes: Sequence[Size], edge: Edge, direction: Direction) -> tuple[Point, Point]:
    """Return where an edge starts and ends."""
    (start_x, start_y), (end_x, end_y) = places[edge.start], places[edge.end]
    if direction == "down":
        return (start_x, start_y + sizes[edge.start].height / 2), (end_x, end_y - sizes[edge.end].height / 2)
    start = (start_x - sizes[edge.start].width / 2, start_y + edge.start_offset)
    return start, (end_x + sizes[edge.end].width / 2, end_y + edge.end_offset)


def _beside(x: float, y: float, label: Size, direction: Direction) -> Point:
    """Return the middle of a value whose edge passes (``x``, ``y``)."""
    return (x + label.width / 2 + 4, y) if direction == "down" else (x, y - label.height / 2 - 2)


def line(start: Point, end: Point) -> Curve:
    """Return a straight line as a curve.

    >>> line((0, 0), (3, 0))
    ((0, 0), (1.0, 0.0), (2.0, 0.0), (3, 0))
    """
    (x, y), (to_x, to_y) = start, end
    third = ((to_x - x) / 3, (to_y - y) / 3)
    return (start, (x + third[0], y + third[1]), (to_x - third[0], to_y - third[1]), end)


# -- with Graphviz


def _write_source(boxes: Boxes) -> str:
    """Write a graph of boxes of fixed sizes and nothing in them."""
    sizes, edges, direction = boxes.sizes, boxes.edges, boxes.direction
    rankdir = "TB" if direction == "down" else "RL"
    has_labels = any(edge.label.width for edge in edges)
    gap = RANK_GAPS[direction] / (2 if has_labels else 1) / 72  # Graphviz gives labels ranks of their own
    parts = [
        f"digraph {{ rankdir={rankdir} ranksep={gap:.3f} nodesep={BOX_GAP / 72:.3f} "
        'node [shape=box fixedsize=true label=""] edge [dir=none]'
    ]
    ports = _list_ports(sizes, edges)
    parts += [
        f"{index} [width={size.width / 72:.4f} height={size.height / 72:.4f}{_write_ports(size, ports.get(index, ()))}]"
        for index, size in enumerate(sizes)
    ]
    for place, index in (("source", boxes.first), ("sink", boxes.last)):
        parts += [f"{{rank={place} {index}}}"] if index is not None else []
    for index, edge in enumerate(edges):
        style = "" if edge.is_drawn else " style=invis"
        if edge.is_drawn and direction == "left":
            tail, head = _port(sizes[edge.start], edge.start_offset), _port(sizes[edge.end], edge.end_offset)
            style = f' tailport="{tail}w" headport="{head}e"'
        # Gradients that go down pass their values at the left: an arrow that is not quite upright needs room.
        aside = 2 * LEFT_OF_VALUE if direction == "down" and edge.label.width else 0
        room = edge.label._replace(width=edge.label.width + aside)
        parts.append(f"{edge.start} -> {edge.end} [comment={index}{style}{_write_label(room)}]")
    return "\n".join([*parts, "}"])


def _list_ports(sizes: Sequence[Size], edges: Sequence[Edge]) -> dict[int, set[int]]:
    """Return index of a box → how far down from its top edges start or end, for boxes where that is not the middle."""
    ports: dict[int, set[int]] = {}
    for edge in edges:
        for index, offset in ((edge.start, edge.start_offset), (edge.end, edge.end_offset)):
            if offset:
                ports.setdefault(index, set()).add(_port_place(sizes[index], offset))
    return ports


def _port_place(size: Size, offset: float) -> int:
    """Return how far down a port is, as a multiple of its height: two ports of a box do not overlap."""
    return round((size.height / 2 + offset) / PORT_HEIGHT) * PORT_HEIGHT


def _port(size: Size, offset: float) -> str:
    return f"p{_port_place(size, offset)}:" if offset else ""


def _write_ports(size: Size, ports: Collection[int]) -> str:
    """Write a box as a table that has a row for each port, with its middle where the port is."""
    if not ports:
        return ""
    rows, above = [], 0
    for place in sorted(ports):
        top = place - PORT_HEIGHT // 2
        rows += [f'<TR><TD HEIGHT="{top - above}"></TD></TR>'] if top > above else []
        rows.append(f'<TR><TD PORT="p{place}" WIDTH="{round(size.width)}" HEIGHT="{PORT_HEIGHT}"></TD></TR>')
        above = top + PORT_HEIGHT
    rest = max(round(size.height) - above, 1)
    table = f'FIXEDSIZE="TRUE" WIDTH="{round(size.width)}" HEIGHT="{above + rest}"'
    rows.append(f'<TR><TD HEIGHT="{rest}"></TD></TR>')
    cells = 'BORDER="0" CELLBORDER="0" CELLPADDING="0" CELLSPACING="0"'
    return f" label=<<TABLE {cells} {table}>{''.join(rows)}</TABLE>>"


def _write_label(label: Size) -> str:
    if not label.width:
        return ""
    size = f'FIXEDSIZE="TRUE" WIDTH="{round(label.width)}" HEIGHT="{round(label.height)}"'
    return f' label=<<TABLE BORDER="0" CELLPADDING="0" CELLSPACING="0" {size}><TR><TD></TD></TR></TABLE>>'


def _read_positions(answer: bytes, boxes: Boxes) -> Placement:
    """Read the positions of a laid-out graph, which count from the lower left corner."""
    graph = json.loads(answer)
    width, height = map(float, graph["bb"].split(",")[2:])
    nodes = sorted((item for item in graph["objects"] if "pos" in item), key=lambda node: int(node["name"]))
    centres = [_read_point(node["pos"], height) for node in nodes]
    by_index = {int(edge["comment"]): edge for edge in graph.get("edges", ())}
    curves, labels = [], []
    for index, edge in enumerate(boxes.edges):
        curve = _read_curve(by_index[index], height) or _straight(centres, boxes.sizes, edge, boxes.direction)
        if edge.start_offset or edge.end_offset:  # Graphviz rounds them
            curve = move_ends(curve, *_ends(centres, boxes.sizes, edge, boxes.direction))
        curves.append(curve)
        middle = curve[len(curve) // 2]
        labels.append(_read_point(by_index[index]["lp"], height) if edge.label.width else middle)
    if boxes.direction == "left":
        _move_values(boxes, centres, curves, labels)
    return Placement(Size(width, height), centres, curves, labels)


def _move_values(boxes: Boxes, centres: Sequence[Point], curves: Sequence[Curve], labels: list[Point]) -> None:
    """Move values to where no arrow, box or other value is.

    The value of a steep arrow moves to its end, if it can to the side from which the arrow does not come.
    """
    areas = [_area(centre, size) for centre, size in zip(centres, boxes.sizes, strict=True)]
    lines = [curve for edge, curve in zip(boxes.edges, curves, strict=True) if edge.is_drawn]
    ways = [(_area_around(curve), curve) for curve in lines]
    for index, edge in enumerate(boxes.edges):
        if edge.label.width:
            size = edge.label._replace(height=edge.label.height - LOOSE)
            places = [*_list_places(edge.label, curves[index], labels[index])]
            free = [at for at in places if not any(_area(at, size).meets(other) for other in areas)] or places
            labels[index] = next((at for at in free if not _is_crossed(_area(at, size), ways)), free[0])
            areas.append(_area(labels[index], size))


def _list_places(label: Size, curve: Curve, middle: Point) -> Iterator[Point]:
    """Yield the places where the value of an arrow may stand, the best first; ``middle``: where Graphviz puts it."""
    (start_x, start_y), (end_x, end_y) = curve[0], curve[-1]
    across, down = start_x - end_x, end_y - start_y
    if abs(down) > STEEP and across < label.width + 2 * RANK_GAPS["left"]:
        beside = (label.height / 2 + 1) * (1 if down > 0 else -1)
        yield end_x + VALUE_GAP + label.width / 2, end_y + beside
        yield end_x + VALUE_GAP + label.width / 2, end_y - beside
    for shift_y in (0, -label.height / 2, label.height / 2, -label.height, label.height):
        yield middle[0], middle[1] + shift_y


class _Area(NamedTuple):
    """The edges of something that takes room."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Area") -> bool:
        """Whether it has common points with another one."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def _area(middle: Point, size: Size) -> _Area:
    across, down = size.width / 2, size.height / 2
    return _Area(middle[0] - across, middle[1] - down, middle[0] + across, middle[1] + down)


def _area_around(curve: Curve) -> _Area:
    across, down = zip(*curve, strict=True)
    return _Area(min(across), min(down), max(across), max(down))


def _is_crossed(area: _Area, ways: Sequence[tuple[_Area, Curve]]) -> bool:
    """Whether a curve is in an area; with each curve, the area around it is given."""
    near = (curve for around, curve in ways if around.meets(area._replace(top=area.top - 1, bottom=area.bottom + 1)))
    return any(
        area.left < x < area.right and area.top < y < area.bottom for curve in near for x, y in sample_curve(curve)
    )


def sample_curve(curve: Curve) -> Iterator[Point]:
    """Yield points along a curve.

    >>> [*sample_curve(line((0, 0), (8, 0)))][::16]
    [(0.0, 0.0), (4.0, 0.0), (8.0, 0.0)]
    """
    for first in range(0, len(curve) - 3, 3):
        piece = curve[first : first + 4]
        for step in range(SAMPLES + 1):
            at = step / SAMPLES
            weights = ((1 - at) ** 3, 3 * (1 - at) ** 2 * at, 3 * (1 - at) * at**2, at**3)
            x, y = (sum(weight * point[axis] for weight, point in zip(weights, piece, strict=True)) for axis in (0, 1))
            yield x, y


def _read_point(text: str, height: float) -> Point:
    x, y = map(float, text.split(","))
    return x, height - y


def _read_curve(edge: Mapping[str, Any], height: float) -> Curve:
    """Read the curve of an edge; empty if it is invisible. It stays in the picture: Graphviz lets some leave it."""
    points = (_read_point(point, height) for point in edge.get("pos", "").partition(";")[0].split())
    return tuple((x, min(max(y, -AROUND), height + AROUND)) for x, y in points)


# -- curves


def move_ends(curve: Curve, start: Point, end: Point) -> Curve:
    """Return the curve with other ends; the control points beside them move along.

    >>> move_ends(line((0, 0), (3, 0)), (0, 1), (3, 0))
    ((0, 1), (1.0, 1.0), (2.0, 0.0), (3, 0))
    """
    (old_x, old_y), (last_x, last_y) = curve[0], curve[-1]
    points = [*curve]
    points[0], points[-1] = start, end
    points[1] = (points[1][0] + start[0] - old_x, points[1][1] + start[1] - old_y)
    points[-2] = (points[-2][0] + end[0] - last_x, points[-2][1] + end[1] - last_y)
    return tuple(points)


def shift(curve: Curve, x: float, y: float) -> Curve:
    """Return the curve moved by (``x``, ``y``)."""
    return tuple((at_x + x, at_y + y) for at_x, at_y in curve)


def join(curves: Sequence[Curve]) -> Curve:
    """Return one curve through all ``curves``; straight pieces lead over the gaps between them."""
    joined = curves[0]
    for before, after in pairwise(curves):
        gap = line(before[-1], after[0])[1:] if before[-1] != after[0] else ()
        joined += gap + after[1:]
    return joined
