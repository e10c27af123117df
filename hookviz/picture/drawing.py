"""A scene as SVG: its boxes are laid out, and everything is written once, with its ids and classes."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import hypot

from hookviz.picture.box_contents import BoxContents, CutSign, frame_outline
from hookviz.picture.box_parts import Line, Words, begin_group
from hookviz.picture.boxes import CallBox, OptimizerBox
from hookviz.picture.compound_layout import CompoundLayout, Frame, Layout, Link, PlacedFrame, Tile
from hookviz.picture.group_boxes import GroupBox
from hookviz.picture.grouping import MAX_VISIBLE_BOXES
from hookviz.picture.layered_layout import Curve, Direction, Point, Size, line
from hookviz.picture.letters import LINE_HEIGHTS, SMALL
from hookviz.picture.primitives import Arrow
from hookviz.picture.scene import Scene
from hookviz.picture.shared_modules import SharedModule, SharedModules
from hookviz.picture.styles import FONT, GREY, INK, LIGHT_GREY, Style
from hookviz.picture.svg import FilledTemplate, SvgWriter, format_points
from hookviz.support.messages import _
from hookviz.support.terminal_text import wrap

MARGIN = 10.0
"""Points around a picture: halos are wider than the boxes."""
HEAD_LENGTH, HEAD_WIDTH = 10.0, 4.0
"""Points of the head of an arrow: its length, and half its width."""
MAX_LINE = 60
"""Characters of a line of a note below a picture."""


class Drawing:
    """The picture of a scene at one step.

    Args:
        scene: boxes, arrows and marks of a pass.
        style: the state of its elements.
        tensors: whether to add the layer of tensors.
    """

    def __init__(self, scene: Scene, style: Style, *, tensors: bool = False) -> None:
        self.scene, self.style = scene, style
        self.contents = BoxContents(scene, style, tensors=tensors)
        self.root = self._make_root()

    def _make_root(self) -> Frame:
        outermost = [box for box in self.scene.calls.values() if box.parent not in self.scene.calls]
        members = self._make_members(None, self.scene.boxes_outside_calls, outermost)
        optimizers = [box.id for box in self.scene.optimizer_boxes.values()]  # they work after all calls
        return Frame("", members, call_order=[*optimizers, *self._order_calls(None, outermost)])

    def _make_frame(self, box: CallBox) -> Frame:
        return Frame(
            box.id,
            self._make_members(box.call, box.box_ids, box.children),
            self.contents.header(box),
            frame_outline(self.style, box.id, is_dashed=box.is_recomputed),
            {"data-hv": "module", "data-name": box.full_name or box.name},
            self.contents.output_plate(box),
            self.contents.input_plate(box),
            self._order_calls(box.call, box.children),
        )

    def _make_members(self, call: int | None, box_ids: Sequence[str], frames: Sequence[CallBox]) -> list[Tile | Frame]:
        """Make the members of the frame of ``call``; a second run is no member, but stands below the first one."""
        own = (box_id for box_id in box_ids if box_id not in self._shared.leaves)
        members: list[Tile | Frame] = [*map(self._make_tile, own), *map(self._make_frame, frames)]
        by_id = {member.id: member for member in members}
        for first, second in self.scene.second_runs.items():
            if first in by_id and second in by_id:
                by_id[first].second_run = by_id.pop(second)
        for module in self._shared.by_frame.get(call, ()):
            calls = [by_id.pop(one) for one in module.calls]
            by_id[module.id] = self._make_shared_frame(module, calls)
        return [*by_id.values()]

    def _make_shared_frame(self, module: SharedModule, calls: Sequence[Tile | Frame]) -> Frame:
        """Make the frame around the calls of a module, and around the parameters that they share."""
        return Frame(
            module.id,
            [*map(self._make_tile, module.leaves), *calls],
            self.contents.shared_header(module),
            frame_outline(self.style, module.id),
            {"data-hv": "shared-module", "data-name": module.full_name},
            call_order=module.calls,
        )

    def _order_calls(self, call: int | None, frames: Sequence[CallBox]) -> list[str]:
        """List the ids of what stands for ``frames`` in the frame of ``call``, in the order of the calls."""
        around = {one: module.id for module in self._shared.by_frame.get(call, ()) for one in module.calls}
        return [*dict.fromkeys(around.get(box.id, box.id) for box in frames)]

    @cached_property
    def _shared(self) -> SharedModules:
        return SharedModules(self.scene)

    def _make_tile(self, box_id: str) -> Tile:
        if box_id in self._groups:
            return Tile(box_id, self.contents.group(self._groups[box_id]))
        if box_id in self._optimizers:
            return Tile(box_id, self.contents.optimizer(self._optimizers[box_id]))
        return Tile(box_id, self.contents.node(self.scene.boxes[int(box_id[1:])]))

    @cached_property
    def _groups(self) -> dict[str, GroupBox]:
        return {group.id: group for group in self.scene.group_boxes}

    @cached_property
    def _optimizers(self) -> dict[str, OptimizerBox]:
        return {box.id: box for box in self.scene.optimizer_boxes.values()}

    def write(self) -> FilledTemplate:
        """Return the picture as SVG."""
        values = {arrow.id: self.contents.arrow_sign(arrow) for arrow in self.scene.all_arrows}
        links = [self._make_link(arrow, values[arrow.id]) for arrow in self.scene.all_arrows]
        layout = CompoundLayout(self.root, links, find_direction(self.scene)).lay_out()
        notes = [*self._list_notes()]
        svg = SvgWriter()
        self._begin(svg, layout.size, notes)
        for placed in layout.frames:
            _write_frame(svg, placed)
        for start, end in layout.joints:
            joint = {"d": _write_path(line(start, end)), "fill": "none", "stroke": GREY, "stroke_width": "1.5"}
            svg.element("path", **joint, stroke_dasharray="4 3", class_="hv-joint").shared("/>")
        for arrow in self.scene.all_arrows:
            if arrow.id in layout.arrows:
                self._write_arrow(svg, arrow, layout, values[arrow.id])
        for box in (*layout.boxes, *layout.plates):
            box.part.draw(svg, box.x, box.y, box.width)
        return svg.shared("</g></svg>").finish()

    def _make_link(self, arrow: Arrow, value: Words | CutSign | None) -> Link:
        """Return an arrow as the layout needs it: from the box at the right to the one at the left."""
        ends = (arrow.end, arrow.start) if arrow.is_forward else (arrow.start, arrow.end)
        room = Size(0, 0) if value is None else Size(value.width, LINE_HEIGHTS[SMALL])
        is_beside = arrow.end in self._parameters
        return Link(arrow.id, *ends, room, is_apart=bool(arrow.words), is_beside=is_beside)

    @cached_property
    def _parameters(self) -> set[str]:
        """The ids of the boxes of leaves that belong to modules."""
        return {box.id for node, box in self.scene.boxes.items() if box.leaf and node in self.scene.graph.calls}

    def _begin(self, svg: SvgWriter, size: Size, notes: Sequence[str]) -> None:
        """Begin the SVG, with its ground and the notes below the picture."""
        note_height = LINE_HEIGHTS[SMALL] * len(notes)
        note_width = max((Words(note, "").width for note in notes), default=0)
        width = max(size.width, note_width) + 2 * MARGIN
        height = size.height + note_height + 2 * MARGIN
        box = f"0 0 {format_points(width)} {format_points(height)}"
        svg.shared(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" class="hv-svg" font-family="{FONT}">')
        svg.element("rect", width=width, height=height, fill="white", class_="hv-background").shared("/>")
        svg.shared(f'<g transform="translate({format_points(MARGIN)} {format_points(MARGIN)})"')
        svg.shared(f' fill="{INK}">')
        for number, note in enumerate(notes):
            Line([Words(note, "hv-note", color=GREY)]).draw(svg, 0, size.height + LINE_HEIGHTS[SMALL] * number, width)

    def _list_notes(self) -> Iterator[str]:
        scene = self.scene
        if scene.total_boxes > scene.box_count:
            yield from wrap(
                _(
                    "This picture would have {boxes} boxes; only the {shown} nearest to the roots are drawn. "
                    "Pass most=… to hv.draw() for another number (300 at most)."
                ).format(boxes=scene.total_boxes, shown=scene.box_count),
                MAX_LINE,
            )

    def _write_arrow(self, svg: SvgWriter, arrow: Arrow, layout: Layout, value: Words | CutSign | None) -> None:
        """Write a line, its head, and its value or the sign of a cut."""
        is_passed = self.style.for_player or (arrow.id in self.style.marked_elements and not arrow.words)
        color = LIGHT_GREY if arrow.words else self.style.outline_color(arrow.id)
        curve = layout.arrows[arrow.id][:: -1 if arrow.is_forward else 1]
        begin_group(svg, arrow.id, "hv-edge hv-flow" if arrow.is_forward else "hv-edge", {})
        tip, back = curve[-1], _shorten(curve)
        dashes = "" if is_passed else "5 4"
        path = {"d": _write_path((*curve[:-1], back)), "fill": "none", "stroke": color, "stroke_width": "2.2"}
        svg.element("path", **path, stroke_dasharray=dashes, class_="hv-line").shared("/>")
        svg.element("path", d=_write_head(back, tip), class_="hv-head", fill=color).shared("/>")
        if value is not None and arrow.id in layout.labels:
            x, y = layout.labels[arrow.id]
            value.draw(svg, x - value.width / 2, y + 0.35 * SMALL)
        svg.shared("</g>")


def find_direction(scene: Scene) -> Direction:
    """Return where gradients go: in a network to the left, in a small graph of single tensors down."""
    is_network = scene.calls or scene.group_boxes or len(scene.boxes) > MAX_VISIBLE_BOXES
    return "left" if is_network else "down"


def _write_frame(svg: SvgWriter, placed: PlacedFrame) -> None:
    """Write the outline of a module call."""
    frame = placed.frame
    assert frame.outline is not None
    begin_group(svg, frame.id, f"hv-module{' hv-again' if frame.outline.is_dashed else ''}", frame.names)
    frame.outline.draw(svg, placed.x, placed.y, placed.size.width, placed.size.height)
    svg.shared("</g>")


def _write_path(curve: Curve) -> str:
    """Write a curve as the data of a path."""
    first, *rest = (f"{format_points(x)},{format_points(y)}" for x, y in curve)
    return f"M{first}C{' '.join(rest)}"


def _shorten(curve: Curve) -> Point:
    """Return where a line ends, at the back of its head."""
    (x, y), (to_x, to_y) = next((point for point in reversed(curve[:-1]) if point != curve[-1]), (0.0, 0.0)), curve[-1]
    length = hypot(to_x - x, to_y - y) or 1
    return to_x - HEAD_LENGTH * (to_x - x) / length, to_y - HEAD_LENGTH * (to_y - y) / length


def _write_head(back: Point, tip: Point) -> str:
    """Write the triangle at the end of an arrow."""
    (x, y), (to_x, to_y) = back, tip
    across = ((to_y - y) / HEAD_LENGTH * HEAD_WIDTH, (x - to_x) / HEAD_LENGTH * HEAD_WIDTH)
    corners = ((x + across[0], y + across[1]), tip, (x - across[0], y - across[1]))
    return f"M{' '.join(f'{format_points(a)},{format_points(b)}' for a, b in corners)}Z"
