"""Module calls as DOT: a cluster around what is inside, a plate at each of the two sides where its hooks act."""

from collections.abc import Callable
from html import escape
from itertools import pairwise

import graphviz

from hookviz.picture import element_ids as ids
from hookviz.picture.html_labels import AMBER, FAINT, INK, Style, cell, kept, pin, row, small, words
from hookviz.picture.module_boxes import CallBox
from hookviz.picture.scene import Scene

BLUE_GREY, PLATE, GROUND = "#475569", "#e9eef5", "#f8fafc"
PLAIN = {"peripheries": "0", "style": "", "label": "", "id": "", "class": "", "bgcolor": "transparent"}
"""A cluster takes over what the one around it says; these undo it."""

Draw = Callable[[graphviz.Digraph, str], None]
"""Adds the box with an id to a (sub)graph."""


def draw_calls(figure: graphviz.Digraph, scene: Scene, look: Style, draw: Draw) -> None:
    """Draw all calls, those inside others within them, and in each the nodes that it made."""
    outermost = [box for box in scene.calls.values() if box.parent not in scene.calls]
    for box in outermost:
        _draw_call(figure, box, scene, look, draw)
    _stack(figure, outermost)
    for box in scene.calls.values():
        if box.at(scene.trace, output=False):
            _lower(figure, box, scene)


def _draw_call(around: graphviz.Digraph, box: CallBox, scene: Scene, look: Style, draw: Draw) -> None:
    """Two clusters, since each has one label only: the outer with the plate below, the inner with that above."""
    below = _below(box, scene, look)
    with around.subgraph(name=f"cluster_{box.id}") as outer:
        outer.attr(**PLAIN)
        outer.attr(**_outline(box, look), labelloc="b", labeljust="c", **({"label": below} if below else {}))
        with outer.subgraph(name=f"cluster_{box.id}_inside") as inner:
            inner.attr(**PLAIN)
            inner.attr(
                label=_above(box, scene, look),
                labelloc="t",
                labeljust="c" if box.at(scene.trace, output=True) else "l",
                margin="5",
            )
            for spot in box.boxes:
                draw(inner, spot)
            for child in box.inside:
                _draw_call(inner, child, scene, look, draw)
            _stack(inner, box.inside)
            if not box.boxes and not box.inside:
                inner.node(ids.filler(box.id), label="", style="invis", width="0.9", height="0.1")


def _lower(figure: graphviz.Digraph, box: CallBox, scene: Scene) -> None:
    """What a module was given stands below its box, so that the way there leads past the hooks at its inputs."""
    inside = set(_nodes(box))
    arrows = [arrow for arrow in scene.ways if arrow.start in inside]
    leads = {arrow.start for arrow in arrows if arrow.end in inside}
    given = dict.fromkeys(arrow.end for arrow in arrows if arrow.end not in inside)
    for lowest in inside - leads:
        for end in given:
            figure.edge(lowest, end, style="invis")


def _stack(figure: graphviz.Digraph, boxes: list[CallBox]) -> None:
    """Where no arrow holds two calls in their order, as without a graph, the later one stands on the earlier."""
    for earlier, later in pairwise(boxes):
        (*_, lowest), (highest, *_) = _nodes(later), _nodes(earlier)
        if lowest.endswith("-e") or highest.endswith("-e"):
            figure.edge(lowest, highest, style="invis")


def _nodes(box: CallBox) -> list[str]:
    """The ids of what is drawn in a box, as from the roots down: its own nodes, or those of the calls inside it."""
    inside = [spot for child in reversed(box.inside) for spot in _nodes(child)]
    return [*box.boxes, *inside] or [ids.filler(box.id)]


def _outline(box: CallBox, look: Style) -> dict[str, str]:
    now, done = box.id in look.now, box.id in look.done
    color = AMBER if now else BLUE_GREY if done else FAINT
    drawn = {"id": box.id, "class": "hv-module", "style": "rounded,filled", "color": color, "fillcolor": GROUND}
    return {**drawn, "penwidth": "3" if now else "1.5", "peripheries": "1", "margin": "8"}


def _above(box: CallBox, scene: Scene, look: Style) -> str:
    """The name, what the module returns, and the hooks at its output."""
    name = f"<B>{words(box.name, point_size=16)}</B>" + small(f"  {box.kind}")
    head = row(cell(ids.name(box.id), name), kept(ids.returned(box.id), box.final, look, INK, align="RIGHT"))
    return _plate(ids.upper_plate(box.id), head + _pins(box, scene, look, output=True))


def _below(box: CallBox, scene: Scene, look: Style) -> str:
    """The hooks at the inputs, and what the module is given; nothing where there is no such hook."""
    pins = _pins(box, scene, look, output=False)
    given = kept(ids.given(box.id), box.input, look, INK)
    return _plate(ids.lower_plate(box.id), pins + (row(given) if given else "")) if pins else ""


def _pins(box: CallBox, scene: Scene, look: Style, *, output: bool) -> str:
    return "".join(row(pin(shown, look)) for shown in box.at(scene.trace, output=output))


def _plate(spot: str, rows: str) -> str:
    link = f'ID="{escape(spot)}" HREF="#" TOOLTIP=" "'
    style = f'BORDER="0" BGCOLOR="{PLATE}" STYLE="ROUNDED" CELLBORDER="0" CELLSPACING="2" CELLPADDING="2"'
    return f"<<TABLE {link} {style}>{rows}</TABLE>>"
