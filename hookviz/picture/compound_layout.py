"""Where everything in a picture stands: a frame is laid out by itself, and is then a box in the frame around it.

An arrow that leaves a frame crosses its outline at one gate, where the hooks of the module stand: gradients enter a
module at its output, and leave it at its inputs. Only the gradients of parameters leave it beside these hooks.
"""

from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from hookviz.picture.box_parts import Framed, Outline, Part
from hookviz.picture.layered_layout import (
    Boxes,
    Curve,
    Direction,
    Edge,
    Placement,
    Point,
    Size,
    join,
    place_boxes,
    shift,
)
from hookviz.picture.row_wrapping import wrap_rows

PADDING = 14.0
"""Points between the outline of a frame and what is in it."""
SPACING = 5.0
"""Points between the parts of a column."""
INSET = SPACING + 2
"""Points between the outline of a frame and its head, or the parts of a column."""
APART = 16.0
"""Points between the arrows of gradients and one that keeps apart from them, where they meet the outline of a box."""
SECOND_RUN_GAP = 16.0
"""Points between a box and its second run below it."""
JOINT_X = 16.0
"""Points from the left ends of both to the line that joins them."""
_GATE = Size(1, 1)
"""The size of a gate at which no hook stands."""
WAY = 12.0
"""Points below the hooks at the inputs of a module, through which the gradients of parameters leave it."""

_ENTRY, _EXIT, _BESIDE = ">", "<", "/"
"""In place of a member's id: the gate where gradients enter the frame, the one where they leave it, and the way beside
the hooks there."""

_Segment = tuple[str, str, str]
"""The start and the end of a part of an arrow inside one frame, and the arrow's id if it has a curve of its own."""


@dataclass(eq=False)
class Tile:
    """A box, with the parts in it."""

    id: str
    part: Part
    second_run: "Tile | Frame | None" = None
    """What stands below it, joined with it."""


@dataclass(eq=False)
class Frame:
    """The frame of a module call around what is in it, or the whole picture."""

    id: str
    members: "list[Tile | Frame]"
    header: Framed | None = None
    """None for the whole picture, which has no outline either."""
    outline: Outline | None = None
    names: dict[str, str] = field(default_factory=dict)
    output_plate: Framed | None = None
    """The hooks where gradients enter."""
    input_plate: Framed | None = None
    """The hooks where gradients leave."""
    call_order: list[str] = field(default_factory=list)
    """The ids of the calls in it, as they were made: they stand in this order, also where no arrow joins them."""
    second_run: "Tile | Frame | None" = None
    """What stands below it, joined with it."""

    @property
    def is_column(self) -> bool:
        """Whether it holds one box only, which then stands between the hooks, and arrows end at the outline."""
        if self.header is None or len(self.members) != 1 or not isinstance(self.members[0], Tile):
            return False
        return self.members[0].second_run is None


class Link(NamedTuple):
    """An arrow between two boxes or frames, given by their ids."""

    id: str
    start: str
    end: str
    label: Size = Size(0, 0)
    """The room for the value on it."""
    is_apart: bool = False
    """Whether it keeps apart from the other arrows of its boxes."""
    is_beside: bool = False
    """Whether it leaves frames beside the hooks at their inputs, since no such hook gets its gradient."""


class PlacedPart(NamedTuple):
    """A part and its place."""

    part: Part
    x: float
    y: float
    width: float


class PlacedFrame(NamedTuple):
    """A frame and its place."""

    frame: Frame
    x: float
    y: float
    size: Size


@dataclass
class Layout:
    """Where everything stands."""

    size: Size
    frames: list[PlacedFrame] = field(default_factory=list)
    """The outer ones first."""
    plates: list[PlacedPart] = field(default_factory=list)
    """The heads of the frames, and the plates with their hooks."""
    boxes: list[PlacedPart] = field(default_factory=list)
    arrows: dict[str, Curve] = field(default_factory=dict)
    labels: dict[str, Point] = field(default_factory=dict)
    """Id of an arrow with a value → the middle of that value."""
    joints: list[tuple[Point, Point]] = field(default_factory=list)
    """The lines between boxes and their second runs."""


@dataclass
class _Inside:
    """A frame that is laid out, in its own coordinates."""

    size: Size
    places: dict[str, Point]
    """Id of a member → its upper left corner."""
    plates: list[PlacedPart]
    entry_y: float
    """Where gradients cross the outline at the right, and at the left."""
    exit_y: float
    beside_y: float
    """Where the gradients of parameters cross it at the left."""
    curves: dict[tuple[str, str, str], Curve]
    """(start, end, id of the arrow) → the curve between two members or gates."""
    labels: dict[str, Point]


class _Sizes:
    """The sizes of tiles and of frames that are laid out; a member and its second run are one box."""

    def __init__(self, insides: Mapping[str, _Inside]) -> None:
        self._insides = insides

    def own(self, member: Tile | Frame) -> Size:
        """Return the size of a member without its second run."""
        if isinstance(member, Frame):
            return self._insides[member.id].size
        return Size(member.part.width, member.part.height)

    def whole(self, member: Tile | Frame) -> Size:
        """Return the size of a member with its second run."""
        own = self.own(member)
        if member.second_run is None:
            return own
        return Size(
            max(own.width, self.least_width(member)), own.height + SECOND_RUN_GAP + self.own(member.second_run).height
        )

    def least_width(self, member: Tile | Frame) -> float:
        """Return the width of the second run of a member: the member is as wide, so that arrows end at its outline."""
        return 0 if member.second_run is None else self.own(member.second_run).width

    def offset(self, member: Tile | Frame, *, gate: str, is_apart: bool) -> float:
        """Return how far below the middle of the whole an arrow leaves or enters a member, at one of its gates."""
        own, whole = self.own(member).height, self.whole(member).height
        inside = self._insides.get(member.id)
        y = own / 2
        if inside is not None:
            y = {_ENTRY: inside.entry_y, _EXIT: inside.exit_y, _BESIDE: inside.beside_y}[gate]
        if is_apart:
            y += APART if y + 2 * APART < own else -APART
        return y - whole / 2


class _Routes:
    """The way of each arrow through the frames between its ends."""

    def __init__(self, root: Frame, links: Sequence[Link]) -> None:
        self._root = root
        self._holders: dict[str, Frame] = {}
        self._frames: dict[str, Frame] = {}
        self.members: dict[str, Tile | Frame] = {}
        self._list_holders(root)
        self.segments: dict[str, dict[_Segment, Size]] = {frame_id: {} for frame_id in self._frames}
        """Id of a frame → the parts of arrows in it → the room for the value there."""
        self.by_link = {link.id: route for link in links if (route := self._route(link))}
        """Id of an arrow → (frame, segment) from its start to its end."""

    def _list_holders(self, frame: Frame) -> None:
        self._frames[frame.id] = frame
        for member in _with_second_runs(frame.members):
            self._holders[member.id], self.members[member.id] = frame, member
            if isinstance(member, Frame):
                self._list_holders(member)

    def _chain(self, element_id: str) -> list[str]:
        """Return an element and the frames around it, the innermost first."""
        chain = [element_id]
        while chain[-1] in self._holders:
            chain.append(self._holders[chain[-1]].id)
        return chain

    def _route(self, link: Link) -> list[tuple[str, _Segment]]:
        """Return (frame, segment) from the start of an arrow to its end; empty if one end is not in the picture."""
        starts, ends = self._chain(link.start), self._chain(link.end)
        if self._root.id not in (starts[-1], ends[-1]) or starts[-1] != ends[-1]:
            return []
        common = next(frame for frame in starts if frame in ends)
        above_start, above_end = starts[: starts.index(common)], ends[: ends.index(common)]
        if not above_start or not above_end:  # one of them is around the other
            return []
        own = link.id if link.label.width or link.is_beside or (len(above_start) == len(above_end) == 1) else ""
        route = [(outer, (inner, self._find_exit(outer, link), "")) for inner, outer in pairwise(above_start)]
        route.append((common, (above_start[-1], above_end[-1], own)))
        route += [(outer, (_ENTRY, inner, "")) for inner, outer in reversed([*pairwise(above_end)])]
        route = [(frame, segment) for frame, segment in route if not self._frames[frame].is_column]
        for frame, segment in route:
            self.segments[frame][segment] = link.label if frame == common else Size(0, 0)
        return route

    def _find_exit(self, frame: str, link: Link) -> str:
        """Return where an arrow leaves a frame."""
        return _BESIDE if link.is_beside and self._frames[frame].input_plate is not None else _EXIT


class CompoundLayout:
    """Lays out a picture.

    Args:
        root: the whole picture.
        links: its arrows.
        direction: where gradients go. Frames need "left".
    """

    def __init__(self, root: Frame, links: Sequence[Link], direction: Direction) -> None:
        self._root, self._links, self._direction = root, links, direction
        self._apart = {link.id for link in links if link.is_apart}
        self._beside = {link.id for link in links if link.is_beside}
        self._routes = _Routes(root, links)
        self._insides: dict[str, _Inside] = {}
        self._sizes = _Sizes(self._insides)

    def lay_out(self) -> Layout:
        """Return where everything stands."""
        inside = self._lay_out_frame(self._root)
        layout = Layout(inside.size)
        origins = dict(self._place(layout, self._root, 0, 0))
        for link in self._links:
            if link.id in self._routes.by_link:
                self._draw_route(layout, link.id, origins)
        return layout

    def _draw_route(self, layout: Layout, link_id: str, origins: dict[str, Point]) -> None:
        curves = []
        for frame, segment in self._routes.by_link[link_id]:
            inside, (x, y) = self._insides[frame], origins[frame]
            curves.append(shift(inside.curves[segment], x, y))
            if link_id in inside.labels:
                label_x, label_y = inside.labels[link_id]
                layout.labels[link_id] = (label_x + x, label_y + y)
        layout.arrows[link_id] = join(curves)

    # -- one frame

    def _lay_out_frame(self, frame: Frame) -> _Inside:
        for member in reversed([*_with_second_runs(frame.members)]):  # the second run first: it says how wide both are
            if isinstance(member, Frame):
                self._lay_out_frame(member)
        self._insides[frame.id] = self._lay_out_column(frame) if frame.is_column else self._lay_out_members(frame)
        return self._insides[frame.id]

    def _lay_out_column(self, frame: Frame) -> _Inside:
        """Stack the head, the hooks at the output, the box, and the hooks at the inputs."""
        (tile,) = frame.members
        assert isinstance(tile, Tile) and frame.header is not None
        parts = [part for part in (frame.header, frame.output_plate, tile.part, frame.input_plate) if part is not None]
        width = max([*(part.width for part in parts), self._sizes.least_width(frame) - 2 * INSET])
        plates, places, y = [], {}, INSET
        for part in parts:
            if part is tile.part:
                places[tile.id] = (INSET, y)
            else:
                plates.append(PlacedPart(part, INSET, y, width))
            y += part.height + SPACING
        size = Size(width + 2 * INSET, y + 2)
        return _Inside(size, places, plates, size.height / 2, size.height / 2, size.height / 2, {}, {})

    def _lay_out_members(self, frame: Frame) -> _Inside:
        """Place the members and the two gates, and a frame around them."""
        ids = [*(member.id for member in frame.members)]
        sizes = [self._sizes.whole(member) for member in frame.members]
        plates = {_ENTRY: frame.output_plate, _EXIT: frame.input_plate}
        used = {end for start, end, _ in self._routes.segments[frame.id] for end in (start, end)}
        for gate, plate in plates.items():
            if plate is not None or gate in used:
                ids.append(gate)
                way = WAY if gate == _EXIT and _BESIDE in used else 0
                sizes.append(_GATE if plate is None else Size(plate.width, plate.height + way))
        segments, edges = self._list_edges(frame, ids)
        gates = [ids.index(gate) if gate in ids else None for gate in (_ENTRY, _EXIT)]
        if self._direction == "left":
            joined, numbers = join_parallel(edges)
            placement = place_boxes(Boxes(tuple(sizes), tuple(joined), self._direction, *gates))
            placement = part_parallel(wrap_rows(placement, sizes, joined), edges, numbers)
        else:
            placement = place_boxes(Boxes(tuple(sizes), tuple(edges), self._direction, *gates))
        return self._surround(frame, dict(zip(ids, sizes, strict=True)), segments, placement)

    def _list_edges(self, frame: Frame, ids: Sequence[str]) -> tuple[list[_Segment], list[Edge]]:
        """List the drawn edges in a frame with their segments, and after them those that keep an order."""
        index = {name: number for number, name in enumerate(ids)}
        segments = list(self._routes.segments[frame.id])
        edges = [
            Edge(
                index[start],
                index[_EXIT if end == _BESIDE else end],
                self._routes.segments[frame.id][start, end, own],
                start_offset=self._find_start(start, end, own),
                end_offset=self._find_end(frame, end, own),
                is_apart=own in self._apart,
            )
            for start, end, own in segments
        ]
        joined = {end for edge in edges for end in (edge.start, edge.end)}
        for earlier, later in pairwise([index[call] for call in frame.call_order if call in index]):
            if earlier not in joined or later not in joined:
                edges.append(Edge(later, earlier, is_drawn=False))
        edges += [*_tie_gates(index, edges, joined)]
        return segments, edges

    def _find_start(self, member: str, end: str, link: str) -> float:
        """Return how far below the middle of a member, or of a gate, an arrow leaves it."""
        element, gate = self._routes.members.get(member), _BESIDE if end == _BESIDE or link in self._beside else _EXIT
        return 0 if element is None else self._sizes.offset(element, gate=gate, is_apart=link in self._apart)

    def _find_end(self, frame: Frame, member: str, link: str) -> float:
        """Return how far below the middle of a member, or of a gate of ``frame``, an arrow enters it."""
        element = self._routes.members.get(member)
        if element is not None:
            return self._sizes.offset(element, gate=_ENTRY, is_apart=link in self._apart)
        is_wide = any(end == _BESIDE for _start, end, _own in self._routes.segments[frame.id])
        if frame.input_plate is None or not is_wide or member == _ENTRY:
            return 0
        return frame.input_plate.height / 2 if member == _BESIDE else -WAY / 2

    def _surround(
        self, frame: Frame, sizes: dict[str, Size], segments: Sequence[_Segment], placement: Placement
    ) -> _Inside:
        """Put the frame around its placed members, with its head above them."""
        points = dict(zip(sizes, placement.centres, strict=True))
        left = _GATE.width / 2 if self._is_bare(frame, _EXIT, points) and points[_EXIT][0] < 1 else PADDING
        is_edge = self._is_bare(frame, _ENTRY, points) and points[_ENTRY][0] > placement.size.width - 1
        right = _GATE.width / 2 if is_edge else PADDING
        top, bottom = PADDING, PADDING
        plates, least = [], self._sizes.least_width(frame)
        if frame.header is not None:
            plates.append(PlacedPart(frame.header, INSET, INSET, frame.header.width))
            top, least = frame.header.height + 2 * INSET + 2, max(least, frame.header.width + 2 * INSET)
        size = Size(max(placement.size.width + left + right, least), placement.size.height + top + bottom)
        centres = {name: (x + left, y + top) for name, (x, y) in points.items()}
        inside = _Inside(size, {}, plates, size.height / 2, size.height / 2, size.height / 2, {}, {})
        for name, (x, y) in centres.items():
            corner = (x - sizes[name].width / 2, y - sizes[name].height / 2)
            plate = {_ENTRY: frame.output_plate, _EXIT: frame.input_plate}.get(name)
            if plate is not None:
                plates.append(PlacedPart(plate, *corner, plate.width))
            elif name not in (_ENTRY, _EXIT):
                inside.places[name] = corner
        inside.entry_y = centres[_ENTRY][1] if _ENTRY in centres else inside.entry_y
        inside.exit_y = centres[_EXIT][1] + self._find_end(frame, _EXIT, "") if _EXIT in centres else inside.exit_y
        inside.beside_y = centres[_EXIT][1] + self._find_end(frame, _BESIDE, "") if _EXIT in centres else inside.exit_y
        for segment, curve, label in zip(segments, placement.curves, placement.labels, strict=False):
            inside.curves[segment] = self._finish_curve(segment, shift(curve, left, top), inside)
            if segment[2] and self._routes.segments[frame.id][segment].width:
                inside.labels[segment[2]] = (label[0] + left, label[1] + top)
        return inside

    def _is_bare(self, frame: Frame, gate: str, points: Container[str]) -> bool:
        """Whether no hook stands at a gate."""
        return gate in points and (frame.output_plate if gate == _ENTRY else frame.input_plate) is None

    def _finish_curve(self, segment: _Segment, curve: Curve, inside: _Inside) -> Curve:
        """Let a curve go on from the gates of its own frame to the outline."""
        start, end, _ = segment
        if start == _ENTRY:
            return join([((inside.size.width, curve[0][1]),), curve])
        if end in (_EXIT, _BESIDE):
            return join([curve, ((0.0, curve[-1][1]),)])
        return curve

    # -- everything

    def _place(self, layout: Layout, frame: Frame, x: float, y: float) -> Iterator[tuple[str, Point]]:
        """Place a frame and all that is in it; yield each frame's id with its upper left corner."""
        inside = self._insides[frame.id]
        yield frame.id, (x, y)
        if frame.outline is not None:
            layout.frames.append(PlacedFrame(frame, x, y, inside.size))
        width = inside.size.width - 2 * INSET
        for part, plate_x, plate_y, plate_width in inside.plates:
            own = width if part is frame.header else plate_width
            layout.plates.append(PlacedPart(part, x + plate_x, y + plate_y, own))
        for member in frame.members:
            at_x, at_y = inside.places[member.id]
            box_width = width if frame.is_column else self._sizes.whole(member).width
            yield from self._place_member(layout, member, (x + at_x, y + at_y), box_width)
            if member.second_run is not None:
                top = y + at_y + self._sizes.own(member).height
                joint_x, bottom = x + at_x + JOINT_X, top + SECOND_RUN_GAP
                layout.joints.append(((joint_x, top), (joint_x, bottom)))
                second_width = self._sizes.own(member.second_run).width
                yield from self._place_member(layout, member.second_run, (x + at_x, bottom), second_width)

    def _place_member(
        self, layout: Layout, member: Tile | Frame, corner: Point, width: float
    ) -> Iterator[tuple[str, Point]]:
        if isinstance(member, Frame):
            yield from self._place(layout, member, *corner)
        else:
            layout.boxes.append(PlacedPart(member.part, *corner, width))


def _with_second_runs(members: Sequence[Tile | Frame]) -> Iterator[Tile | Frame]:
    """Yield each of ``members``, and after it its second run."""
    for member in members:
        yield member
        if member.second_run is not None:
            yield member.second_run


def _tie_gates(index: Mapping[str, int], edges: Sequence[Edge], joined: Set[int]) -> Iterator[Edge]:
    """Keep a gate that no arrow reaches beside the boxes where the arrows of its frame begin or end."""
    gates = {index[gate] for gate in (_ENTRY, _EXIT) if gate in index}
    entered, left = {edge.end for edge in edges}, {edge.start for edge in edges}
    for number in sorted(gates - joined):
        if number == index.get(_ENTRY):
            yield from (Edge(number, box, is_drawn=False) for box in index.values() if box not in gates | entered)
        else:
            yield from (Edge(box, number, is_drawn=False) for box in index.values() if box not in gates | left)


# -- arrows between the same two boxes are laid out as one line, and their values stand below each other


def join_parallel(edges: Sequence[Edge]) -> tuple[list[Edge], list[int]]:
    """Return the edges to lay out, and for each of ``edges`` the index of the one that it is part of.

    >>> join_parallel([Edge(0, 1, Size(40, 10)), Edge(1, 2), Edge(0, 1, Size(50, 10))])[1]
    [0, 1, 0]
    """
    numbers: dict[Edge, int] = {}
    joined: list[Edge] = []
    indices = []
    for edge in edges:
        number = numbers.setdefault(edge._replace(label=Size(0, 0)), len(joined))
        if number == len(joined):
            joined.append(edge)
        else:
            label = joined[number].label
            room = Size(max(label.width, edge.label.width), label.height + edge.label.height)
            joined[number] = edge._replace(label=room)
        indices.append(number)
    return joined, indices


def part_parallel(placement: Placement, edges: Sequence[Edge], indices: Sequence[int]) -> Placement:
    """Return the placement of all ``edges``; ``indices`` and the edges of ``placement`` are from ``join_parallel``."""
    total = [0.0] * len(placement.labels)
    for edge, number in zip(edges, indices, strict=True):
        total[number] += edge.label.height
    above = [0.0] * len(total)
    labels: list[Point] = []
    for edge, number in zip(edges, indices, strict=True):
        x, y = placement.labels[number]
        labels.append((x, y - total[number] / 2 + above[number] + edge.label.height / 2))
        above[number] += edge.label.height
    return placement._replace(curves=[placement.curves[number] for number in indices], labels=labels)
