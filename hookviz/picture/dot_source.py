"""A scene as DOT: rounded boxes with pins, and arrows between them."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

import graphviz

from hookviz.picture import element_ids as ids
from hookviz.picture.clusters import draw_calls
from hookviz.picture.graphviz import Rendered, tidy_svg
from hookviz.picture.grouped_graph import GroupBox
from hookviz.picture.html_labels import (
    ARROW_FONT_SIZE,
    BOX_FILL,
    CURRENT_FILL,
    FONT_SIZE,
    HIDDEN,
    INK,
    LEAF_FILL,
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
from hookviz.picture.tensor_layer import make_pre_hooks_cell, make_tensors_label
from hookviz.support.messages import say

LAYOUT_FONT = "DejaVu Sans,Verdana,sans-serif"
"""The font the layout measures with: wider than those that show it, so that every label has room."""

MAX_SHARED_ROW = 210
"""Points: how wide a box may become for its gradient to stand beside its name, where no pin makes it wider."""

MAX_SPANNED_RANKS = 1_000
"""Places between the ends of all arrows: with more, a layout with bent arrows takes seconds, and soon minutes."""


class Figure(Rendered):
    """The picture of a graph, or of one step of a trace. A ``graphviz.Digraph``."""

    def finish(self, svg: bytes) -> bytes:
        """Give the SVG its ids and classes."""
        return tidy_svg(svg)


def build_figure(
    scene: Scene, step: int | None, *, tensors: bool = False, pre_hooks: bool = False, for_player: bool = False
) -> Figure:
    """The figure of ``scene`` at ``step``; with ``final``, every text is laid out at its longest (for the player).

    ``tensors`` adds the layer of tensors, and ``nodes`` the nodes' lists of pre-hooks, which that layer has anyway.
    """
    style = Style(scene, step, for_player)
    # A label takes a rank of its own, and so twice the distance.
    figure = empty_figure(ranksep="0.2" if any(arrow.longest_text for arrow in scene.arrows.values()) else "0.4")
    closed_groups = {group.id: group for group in scene.group_boxes}

    def draw_box(graph: graphviz.Digraph, box_id: str) -> None:
        if box_id in closed_groups:
            draw_group(graph, closed_groups[box_id], style)
            return
        box = scene.boxes[int(box_id[1:])]
        rows = (
            [*_make_box_rows(box, style), make_row(make_pre_hooks_cell(scene, box))]
            if pre_hooks
            else _make_box_rows(box, style)
        )
        label = (
            make_tensors_label(scene, box, style, _make_frame) if tensors else _make_frame(box, style, "".join(rows))
        )
        graph.node(box.id, f"<{label}>", id=box.id, **{"class": "hv-node hv-leaf" if box.leaf else "hv-node"})

    draw_calls(figure, scene, style, draw_box)
    for box_id in scene.boxes_outside_calls:
        draw_box(figure, box_id)
    for arrow in scene.all_arrows:
        _draw_arrow(figure, arrow, style)
    for port in scene.ports:
        figure.node(port.id, f"<{format_small(port.label)}>", id=port.id, **{"class": "hv-port"})
    notes = [say("picture.large", boxes=scene.total_boxes, shown=scene.box_count)] * (
        scene.total_boxes > scene.box_count
    )
    if passed((arrow.start, arrow.end) for arrow in scene.all_arrows) > MAX_SPANNED_RANKS:
        figure.attr("graph", splines="line", nslimit="1", mclimit="0.1")
        notes.append(say("picture.straight"))
    if notes:
        figure.attr(label="\n".join(notes))
    return figure


def empty_figure(*, ranksep: str, nodesep: str = "0.35") -> Figure:
    """A figure in which nothing is drawn yet; ``ranksep`` inches lie between its rows, ``nodesep`` between boxes."""
    figure: Figure = Figure("hookviz", format="svg")
    figure.attr(
        "graph", rankdir="TB", nodesep=nodesep, ranksep=ranksep, pad="0.1", bgcolor="white", fontname=LAYOUT_FONT
    )
    figure.attr("node", shape="plain", fontname=LAYOUT_FONT, fontsize=str(FONT_SIZE), fontcolor=INK)
    figure.attr("edge", fontname=LAYOUT_FONT, fontsize=str(ARROW_FONT_SIZE), fontcolor=PURPLE, arrowsize="0.9")
    return figure


def draw_group(graph: graphviz.Digraph, box: GroupBox, style: Style) -> None:
    """A box that can be entered: its name, what is in it, and what is known of that."""
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
    """The outline of a node around its rows; twice around a leaf's. The player draws what changes by itself."""
    color, fill = style.outline_color(box.id), LEAF_FILL if box.leaf else BOX_FILL
    spacing = 'CELLBORDER="0" CELLSPACING="2" CELLPADDING="2"'
    if style.for_player:
        border = 5 if box.leaf else 2  # the player draws both lines of a leaf's outline in this one
        return f'<TABLE BORDER="{border}" COLOR="{color}" BGCOLOR="{fill}" STYLE="ROUNDED" {spacing}>{rows}</TABLE>'
    border = 1 if box.leaf else 2
    table = f'<TABLE BORDER="{border}" COLOR="{color}" BGCOLOR="{fill}" STYLE="ROUNDED" {spacing}>{rows}</TABLE>'
    if box.leaf:
        table = _wrap_in_table(table, color, 1, 2)
    halo = CURRENT_FILL if box.id in style.current else HIDDEN  # always there, so that no step moves anything
    return _wrap_in_table(table, halo, 4, 0)


def _wrap_in_table(table: str, color: str, border: int, padding: int) -> str:
    frame = f'BORDER="{border}" COLOR="{color}" STYLE="ROUNDED" CELLBORDER="0" CELLSPACING="0"'
    return f'<TABLE {frame} CELLPADDING="{padding}"><TR><TD>{table}</TD></TR></TABLE>'


def _make_box_rows(box: Box, style: Style) -> list[str]:
    """Name, value and gradient in one row where they have room; then the op, and the pins."""
    heads = [
        (
            ids.name_id(box.id, index),
            make_title(name, style.reserved_texts.get(ids.tensor_value_id(box.id, index), hook_pin)),
        )
        for index, (name, hook_pin) in enumerate(box.names)
    ]
    heads.append((ids.op_id(box.id), format_small(say("picture.leaf", op=box.op) if box.leaf else box.op)))
    shares_row = _gradient_fits_beside_name(box)
    gradient = make_value_cell(
        ids.gradient_id(box.id),
        box.longest_text,
        style,
        PURPLE,
        **({"align": "RIGHT"} if shares_row else {"colspan": 2}),
    )
    rows = [make_row(make_cell(*head, colspan=2)) for head in heads]
    if shares_row:
        rows[0] = make_row(make_cell(*heads[0]), gradient)
    rows += [make_row(make_pin_cell(hook_pin, style)) for hook_pin in box.pins]
    return rows if shares_row or not gradient else [*rows, make_row(gradient)]


def _gradient_fits_beside_name(box: Box) -> bool:
    """Whether the gradient can stand beside the first line without making the box much wider."""
    if not box.longest_text:
        return False
    first = "".join(box.names[0]) if box.names else box.op
    pins = [text_width(pin.label) + text_width(pin.longest_text) for pin in box.pins]
    size = 1.3 if box.names else 0.9  # a name is in larger type than an op
    return size * text_width(first) + text_width(box.longest_text) <= max(MAX_SHARED_ROW, *pins, 0)


def _draw_arrow(figure: Figure, arrow: Arrow, style: Style) -> None:
    done = style.for_player or arrow.id in style.done
    color = PURPLE if style.for_player else style.outline_color(arrow.id)
    shown = make_value_cell(ids.value_id(arrow.id), arrow.longest_text, style, PURPLE, ARROW_FONT_SIZE)
    label = {}
    if shown:
        label["label"] = f'<<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="3"><TR>{shown}</TR></TABLE>>'
    drawn = {"id": arrow.id, "color": color, "style": "solid" if done else "dashed", "penwidth": "2.2"}
    figure.edge(arrow.start, arrow.end, **drawn, **label, **{"class": "hv-edge"})


def passed(ways: Iterable[tuple[str, str]]) -> int:
    """How many places arrows pass between their ends; a layout has to find room in each of them.

    >>> passed([("e", "c"), ("c", "a"), ("e", "a")]), passed([("a", "b"), ("b", "a")])
    (1, 0)
    """
    ways = list(ways)
    above: dict[str, set[str]] = {}
    for start, end in ways:
        above.setdefault(end, set()).add(start)
    rank: dict[str, int] = {}
    try:
        for box in TopologicalSorter(above).static_order():
            rank[box] = 1 + max((rank[start] for start in above.get(box, ())), default=-1)
    except CycleError:  # boxes that hold parts of each other are few
        return 0
    return sum(rank[end] - rank[start] - 1 for start, end in ways)
