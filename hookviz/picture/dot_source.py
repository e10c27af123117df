"""The DOT source of a scene: rounded boxes with pins, and arrows between them."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from hookviz.picture import element_ids as ids
from hookviz.picture.clusters import draw_calls, list_drawn_ids
from hookviz.picture.graphviz_digraph import Rendered, tidy_svg
from hookviz.picture.grouped_graph import GroupBox
from hookviz.picture.html_labels import (
    ARROW_FONT_SIZE,
    BOX_FILL,
    CURRENT_FILL,
    FONT_SIZE,
    HIDDEN,
    INK,
    LEAF_FILL,
    LIGHT_GREY,
    PURPLE,
    Style,
    format_small,
    format_text,
    make_cell,
    make_pin_cell,
    make_row,
    make_title,
    make_value_cell,
    text_width,
)
from hookviz.picture.primitives import Arrow, Box
from hookviz.picture.scene import Scene
from hookviz.picture.sketch import Canvas, Sketch
from hookviz.picture.tensor_layer import make_pre_hooks_cell, make_tensors_label
from hookviz.support.messages import _

LAYOUT_FONT = "DejaVu Sans,Verdana,sans-serif"
"""The font with which Graphviz measures labels: wider than the fonts that show them, so that every label fits."""

MAX_SHARED_ROW = 210
"""Points: a gradient shares a row with the name if that row is no wider than this, or than the widest pin."""

MAX_SPANNED_RANKS = 1_000
"""Ranks between the ends of all arrows: with more of them, a layout with bent arrows takes seconds to minutes."""


class Figure(Rendered):
    """The picture of a graph, or of one step of a trace, as a ``graphviz.Digraph``."""

    def finish(self, svg: bytes) -> bytes:
        """Give the SVG its ids and classes."""
        return tidy_svg(svg)


def build_figure(
    scene: Scene, step: int | None, *, tensors: bool = False, pre_hooks: bool = False, for_player: bool = False
) -> Figure:
    """Build the figure of ``scene`` at ``step``.

    Args:
        scene: boxes, arrows and marks of a pass.
        step: highlight this step, and show the texts up to it; None shows the texts of all steps.
        tensors: add the layer of tensors.
        pre_hooks: add the nodes' lists of pre-hooks, which the layer of tensors has in any case.
        for_player: lay out every text at its longest; the player writes the texts of each step into the SVG.
    """
    figure = _make_empty_figure(_rank_distance(scene))
    draw_scene(figure, scene, Style(scene, step, for_player), tensors=tensors, pre_hooks=pre_hooks)
    return figure


def sketch_scene(scene: Scene) -> Sketch:
    """Sketch the picture of ``scene`` for the player, which costs a third of building its figure."""
    sketch = Sketch()
    sketch.attr("graph", ranksep=_rank_distance(scene))
    draw_scene(sketch, scene, Style(scene, None, for_player=True))
    return sketch


def _rank_distance(scene: Scene) -> str:
    """Return the inches between ranks: Graphviz gives the labels of arrows ranks of their own, which doubles them."""
    return "0.2" if any(arrow.longest_text for arrow in scene.arrows.values()) else "0.4"


def draw_scene(figure: Canvas, scene: Scene, style: Style, *, tensors: bool = False, pre_hooks: bool = False) -> None:
    """Draw the boxes and arrows of ``scene``; ``tensors`` and ``pre_hooks`` add layers, as in ``build_figure``."""
    closed_groups = {group.id: group for group in scene.group_boxes}

    def draw_box(graph: Canvas, box_id: str) -> None:
        if box_id in closed_groups:
            _draw_group(graph, closed_groups[box_id], style)
            return
        box = scene.boxes[int(box_id[1:])]
        if tensors:
            label = make_tensors_label(scene, box, style, _make_frame)
        else:
            rows = _make_box_rows(box, style)
            if pre_hooks:
                rows.append(make_row(make_pre_hooks_cell(scene, box)))
            label = _make_frame(box, style, "".join(rows))
        graph.node(box.id, f"<{label}>", id=box.id, **{"class": "hv-node hv-leaf" if box.leaf else "hv-node"})

    figure.attr("edge", color=PURPLE, style="solid", penwidth="2.2", **{"class": "hv-edge"})
    draw_calls(figure, scene, style, draw_box)
    for box_id in scene.boxes_outside_calls:
        draw_box(figure, box_id)
    for arrow in scene.all_arrows:
        if arrow.is_forward:
            _draw_forward_arrow(figure, arrow, scene)
        else:
            _draw_arrow(figure, arrow, style)
    for port in scene.ports:
        figure.node(port.id, f"<{format_small(port.label)}>", id=port.id, **{"class": "hv-port"})
    notes = []
    if scene.total_boxes > scene.box_count:
        notes.append(
            _(
                "This picture would have {boxes} boxes; only the {shown} nearest to the roots are drawn. "
                "Pass most=… to hv.draw() for another number (300 at most)."
            ).format(boxes=scene.total_boxes, shown=scene.box_count)
        )
    if count_spanned_ranks((arrow.start, arrow.end) for arrow in scene.all_arrows) > MAX_SPANNED_RANKS:
        figure.attr("graph", splines="line", nslimit="1", mclimit="0.1")
        notes.append(_("Many arrows are long: all arrows are drawn straight and may cross boxes."))
    if notes:
        figure.attr(label="\n".join(notes))


def _make_empty_figure(rank_distance: str) -> Figure:
    """Make a figure without boxes; ``rank_distance`` is the inches between ranks."""
    figure: Figure = Figure("hookviz", format="svg")
    distances = {"nodesep": "0.35", "ranksep": rank_distance, "pad": "0.1"}
    figure.attr("graph", rankdir="TB", bgcolor="white", fontname=LAYOUT_FONT, **distances)
    figure.attr("node", shape="plain", fontname=LAYOUT_FONT, fontsize=str(FONT_SIZE), fontcolor=INK)
    figure.attr("edge", fontname=LAYOUT_FONT, fontsize=str(ARROW_FONT_SIZE), fontcolor=PURPLE, arrowsize="0.9")
    return figure


def _draw_group(graph: Canvas, box: GroupBox, style: Style) -> None:
    """Draw a box that can be entered: its name, its description, and the texts that steps write on it."""
    rows = make_row(make_cell(ids.name_id(box.id), f"<B>{format_text(box.name, point_size=16)}</B>"))
    rows += make_row(make_cell(ids.op_id(box.id), format_small(box.description)))
    for text_id, color in ((ids.gradient_id(box.id), PURPLE), (ids.fired_count_id(box.id), INK)):
        longest = box.longest_text(text_id)
        rows += make_row(make_value_cell(text_id, longest, style, color)) if longest else ""
    spacing = 'CELLBORDER="0" CELLSPACING="2" CELLPADDING="3"'
    color = style.outline_color(box.id)
    label = f'<TABLE BORDER="2" COLOR="{color}" BGCOLOR="{BOX_FILL}" STYLE="ROUNDED" {spacing}>{rows}</TABLE>'
    graph.node(box.id, f"<{label}>", id=box.id, **{"class": "hv-fold"})


def _make_frame(box: Box, style: Style, rows: str) -> str:
    """Make the outline of a node around its rows: one line, or two for a leaf, and a halo if it is highlighted.

    The player draws halos and the second line of a leaf by itself.
    """
    color, fill = style.outline_color(box.id), LEAF_FILL if box.leaf else BOX_FILL
    spacing = 'CELLBORDER="0" CELLSPACING="2" CELLPADDING="2"'
    if style.for_player:
        border = 5 if box.leaf else 2  # 5 points have room for both lines of a leaf
        return f'<TABLE BORDER="{border}" COLOR="{color}" BGCOLOR="{fill}" STYLE="ROUNDED" {spacing}>{rows}</TABLE>'
    border = 1 if box.leaf else 2
    table = f'<TABLE BORDER="{border}" COLOR="{color}" BGCOLOR="{fill}" STYLE="ROUNDED" {spacing}>{rows}</TABLE>'
    if box.leaf:
        table = _wrap_in_table(table, color, 1, 2)
    # Every box has a halo, hidden or not, so that no step moves anything.
    halo = CURRENT_FILL if box.id in style.current_elements else HIDDEN
    return _wrap_in_table(table, halo, 4, 0)


def _wrap_in_table(table: str, color: str, border: int, padding: int) -> str:
    frame = f'BORDER="{border}" COLOR="{color}" STYLE="ROUNDED" CELLBORDER="0" CELLSPACING="0"'
    return f'<TABLE {frame} CELLPADDING="{padding}"><TR><TD>{table}</TD></TR></TABLE>'


def _make_box_rows(box: Box, style: Style) -> list[str]:
    """Make the rows of a node's box: names with values, the op, the pins, and the gradient.

    The gradient is in the first row if it fits there, else in the last.
    """
    heads = [
        (
            ids.name_id(box.id, index),
            make_title(name, style.reserved_texts.get(ids.tensor_value_id(box.id, index), value)),
        )
        for index, (name, value) in enumerate(box.names)
    ]
    heads.append((ids.op_id(box.id), format_small(_("leaf · {op}").format(op=box.op) if box.leaf else box.op)))
    shares_row = _gradient_fits_in_first_row(box)
    attributes = {"align": "RIGHT"} if shares_row else {"colspan": 2}
    gradient = make_value_cell(ids.gradient_id(box.id), box.longest_text, style, PURPLE, **attributes)
    rows = [make_row(make_cell(*head, colspan=2)) for head in heads]
    if shares_row:
        rows[0] = make_row(make_cell(*heads[0]), gradient)
    rows += [make_row(make_pin_cell(hook_pin, style)) for hook_pin in box.pins]
    return rows if shares_row or not gradient else [*rows, make_row(gradient)]


def _gradient_fits_in_first_row(box: Box) -> bool:
    """Whether the gradient can be in the first row without making the box much wider."""
    if not box.longest_text:
        return False
    first_row = "".join(box.names[0]) if box.names else box.op
    pin_widths = [text_width(pin.label) + text_width(pin.longest_text) for pin in box.pins]
    size = 1.3 if box.names else 0.9  # a name is in larger type than an op
    return size * text_width(first_row) + text_width(box.longest_text) <= max(MAX_SHARED_ROW, *pin_widths, 0)


def _draw_arrow(figure: Canvas, arrow: Arrow, style: Style) -> None:
    is_marked, color = arrow.id in style.marked_elements, style.outline_color(arrow.id)
    value_cell = make_value_cell(ids.value_id(arrow.id), arrow.longest_text, style, PURPLE, ARROW_FONT_SIZE)
    label = {}
    if value_cell:
        label["label"] = f'<<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="3"><TR>{value_cell}</TR></TABLE>>'
    attributes = {} if style.for_player else {"color": color, "style": "solid" if is_marked else "dashed"}
    figure.edge(arrow.start, arrow.end, id=arrow.id, **attributes, **label)


def _draw_forward_arrow(figure: Canvas, arrow: Arrow, scene: Scene) -> None:
    """Draw the arrow from a call up to a later one, from box to box: frames with arrows to them crash Graphviz."""
    frames = {frame.id: list_drawn_ids(frame) for frame in scene.calls.values()}
    lower, upper = frames.get(arrow.start, [arrow.start])[0], frames.get(arrow.end, [arrow.end])[-1]
    look = {"class": "hv-edge hv-flow", "style": "dashed", "color": LIGHT_GREY, "dir": "back"}
    figure.edge(f"{upper}:s", f"{lower}:n", id=arrow.id, **look)  # Graphviz places the first one above the second


def count_spanned_ranks(arrows: Iterable[tuple[str, str]]) -> int:
    """Count the ranks between the two ends of each arrow; the layout needs room for the arrow in each of them.

    It is 0 for a graph with a cycle.

    >>> count_spanned_ranks([("e", "c"), ("c", "a"), ("e", "a")]), count_spanned_ranks([("a", "b"), ("b", "a")])
    (1, 0)
    """
    arrows = list(arrows)
    above: dict[str, set[str]] = {}
    for start, end in arrows:
        above.setdefault(end, set()).add(start)
    rank: dict[str, int] = {}
    try:
        for box in TopologicalSorter(above).static_order():
            rank[box] = 1 + max((rank[start] for start in above.get(box, ())), default=-1)
    except CycleError:  # only few boxes can form one: groups with edges in both directions
        return 0
    return sum(rank[end] - rank[start] - 1 for start, end in arrows)
