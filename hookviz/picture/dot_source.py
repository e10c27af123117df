"""A scene as DOT: rounded boxes with pins, and arrows between them."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

import graphviz

from hookviz.picture import element_ids as ids
from hookviz.picture.clusters import draw_calls
from hookviz.picture.graphviz import Rendered, tidy
from hookviz.picture.grouped_graph import GroupBox
from hookviz.picture.html_labels import (
    GLOW,
    HIDDEN,
    INK,
    LEAF,
    ON_ARROWS,
    PAPER,
    PURPLE,
    SIZE,
    Style,
    cell,
    kept,
    pin,
    room_for,
    row,
    small,
    title,
    words,
)
from hookviz.picture.primitives import Arrow, Box
from hookviz.picture.scene import Scene
from hookviz.picture.tensor_layer import pre_hooks, with_tensors
from hookviz.support.messages import say

MEASURED = "DejaVu Sans,Verdana,sans-serif"
"""The font the layout measures with: wider than those that show it, so that every label has room."""

BESIDE = 210
"""Points: how wide a box may become for its gradient to stand beside its name, where no pin makes it wider."""

FAR = 1_000
"""Places between the ends of all arrows: with more, a layout with bent arrows takes seconds, and soon minutes."""


class Figure(Rendered):
    """The picture of a graph, or of one step of a trace. A ``graphviz.Digraph``."""

    def finish(self, svg: bytes) -> bytes:
        """Give the SVG its ids and classes."""
        return tidy(svg)


def dot(scene: Scene, step: int | None, *, tensors: bool = False, nodes: bool = False, final: bool = False) -> Figure:
    """The figure of ``scene`` at ``step``; with ``final``, every text is laid out at its longest (for the player).

    ``tensors`` adds the layer of tensors, and ``nodes`` the nodes' lists of pre-hooks, which that layer has anyway.
    """
    look = Style(scene, step, final)
    # A label takes a rank of its own, and so twice the distance.
    figure = empty_figure(ranksep="0.2" if any(arrow.final for arrow in scene.arrows.values()) else "0.4")
    closed = {fold.id: fold for fold in scene.folds}

    def draw(graph: graphviz.Digraph, spot: str) -> None:
        if spot in closed:
            draw_group(graph, closed[spot], look)
            return
        box = scene.boxes[int(spot[1:])]
        plain = [*_rows(box, look), row(pre_hooks(scene, box))] if nodes else _rows(box, look)
        label = with_tensors(scene, box, look, _frame) if tensors else _frame(box, look, "".join(plain))
        graph.node(box.id, f"<{label}>", id=box.id, **{"class": "hv-node hv-leaf" if box.leaf else "hv-node"})

    draw_calls(figure, scene, look, draw)
    for spot in scene.loose:
        draw(figure, spot)
    for arrow in scene.ways:
        _draw_arrow(figure, arrow, look)
    for port in scene.ports:
        figure.node(port.id, f"<{small(port.label)}>", id=port.id, **{"class": "hv-port"})
    said = [say("picture.large", boxes=scene.everything, shown=scene.shown)] * (scene.everything > scene.shown)
    if passed((arrow.start, arrow.end) for arrow in scene.ways) > FAR:
        figure.attr("graph", splines="line", nslimit="1", mclimit="0.1")
        said.append(say("picture.straight"))
    if said:
        figure.attr(label="\n".join(said))
    return figure


def empty_figure(*, ranksep: str, nodesep: str = "0.35") -> Figure:
    """A figure in which nothing is drawn yet; ``ranksep`` inches lie between its rows, ``nodesep`` between boxes."""
    figure: Figure = Figure("hookviz", format="svg")
    figure.attr("graph", rankdir="TB", nodesep=nodesep, ranksep=ranksep, pad="0.1", bgcolor="white", fontname=MEASURED)
    figure.attr("node", shape="plain", fontname=MEASURED, fontsize=str(SIZE), fontcolor=INK)
    figure.attr("edge", fontname=MEASURED, fontsize=str(ON_ARROWS), fontcolor=PURPLE, arrowsize="0.9")
    return figure


def draw_group(graph: graphviz.Digraph, box: GroupBox, look: Style) -> None:
    """A box that can be entered: its name, what is in it, and what is known of that."""
    rows = row(cell(ids.name(box.id), f"<B>{words(box.name, point_size=16)}</B>"))
    rows += row(cell(ids.op(box.id), small(box.about)))
    for spot, color in ((ids.gradient(box.id), PURPLE), (ids.fired(box.id), INK)):
        longest = box.longest(spot)
        rows += row(kept(spot, longest, look, color)) if longest else ""
    inside = 'CELLBORDER="0" CELLSPACING="2" CELLPADDING="3"'
    edge = look.outline(box.id)
    label = f'<TABLE BORDER="2" COLOR="{edge}" BGCOLOR="{PAPER}" STYLE="ROUNDED" {inside}>{rows}</TABLE>'
    graph.node(box.id, f"<{label}>", id=box.id, **{"class": "hv-fold"})


def _frame(box: Box, look: Style, rows: str) -> str:
    """The outline of a node around its rows; twice around a leaf's. The player draws what changes by itself."""
    edge, fill = look.outline(box.id), LEAF if box.leaf else PAPER
    inside = 'CELLBORDER="0" CELLSPACING="2" CELLPADDING="2"'
    if look.final:
        border = 5 if box.leaf else 2  # the player draws both lines of a leaf's outline in this one
        return f'<TABLE BORDER="{border}" COLOR="{edge}" BGCOLOR="{fill}" STYLE="ROUNDED" {inside}>{rows}</TABLE>'
    border = 1 if box.leaf else 2
    table = f'<TABLE BORDER="{border}" COLOR="{edge}" BGCOLOR="{fill}" STYLE="ROUNDED" {inside}>{rows}</TABLE>'
    if box.leaf:
        table = _around(table, edge, 1, 2)
    halo = GLOW if box.id in look.now else HIDDEN  # always there, so that no step moves anything
    return _around(table, halo, 4, 0)


def _around(table: str, color: str, border: int, padding: int) -> str:
    frame = f'BORDER="{border}" COLOR="{color}" STYLE="ROUNDED" CELLBORDER="0" CELLSPACING="0"'
    return f'<TABLE {frame} CELLPADDING="{padding}"><TR><TD>{table}</TD></TR></TABLE>'


def _rows(box: Box, look: Style) -> list[str]:
    """Name, value and gradient in one row where they have room; then the op, and the pins."""
    heads = [
        (ids.name(box.id, k), title(name, look.wide.get(ids.held(box.id, k), shown)))
        for k, (name, shown) in enumerate(box.names)
    ]
    heads.append((ids.op(box.id), small(say("picture.leaf", op=box.op) if box.leaf else box.op)))
    beside = _has_room(box)
    gradient = kept(ids.gradient(box.id), box.final, look, PURPLE, **({"align": "RIGHT"} if beside else {"colspan": 2}))
    rows = [row(cell(*head, colspan=2)) for head in heads]
    if beside:
        rows[0] = row(cell(*heads[0]), gradient)
    rows += [row(pin(shown, look)) for shown in box.pins]
    return rows if beside or not gradient else [*rows, row(gradient)]


def _has_room(box: Box) -> bool:
    """Whether the gradient can stand beside the first line without making the box much wider."""
    if not box.final:
        return False
    first = "".join(box.names[0]) if box.names else box.op
    pins = [room_for(shown.label) + room_for(shown.final) for shown in box.pins]
    size = 1.3 if box.names else 0.9  # a name is in larger type than an op
    return size * room_for(first) + room_for(box.final) <= max(BESIDE, *pins, 0)


def _draw_arrow(figure: Figure, arrow: Arrow, look: Style) -> None:
    done = look.final or arrow.id in look.done
    color = PURPLE if look.final else look.outline(arrow.id)
    shown = kept(ids.value(arrow.id), arrow.final, look, PURPLE, ON_ARROWS)
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
