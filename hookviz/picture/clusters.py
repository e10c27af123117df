"""Module calls as DOT: a cluster around what is inside, a plate at each of the two sides where its hooks act."""

from collections.abc import Callable
from html import escape
from itertools import pairwise

import graphviz

from hookviz.picture import element_ids as ids
from hookviz.picture.html_labels import (
    AMBER,
    INK,
    LIGHT_GREY,
    Style,
    format_small,
    format_text,
    make_cell,
    make_pin_cell,
    make_row,
    make_value_cell,
)
from hookviz.picture.module_boxes import CallBox
from hookviz.picture.scene import Scene

DONE_COLOR, PLATE_FILL, CALL_FILL = "#475569", "#e9eef5", "#f8fafc"
CLUSTER_DEFAULTS = {"peripheries": "0", "style": "", "label": "", "id": "", "class": "", "bgcolor": "transparent"}
"""A cluster takes over what the one around it says; these undo it."""

DrawBox = Callable[[graphviz.Digraph, str], None]
"""Adds the box with an id to a (sub)graph."""


def draw_calls(figure: graphviz.Digraph, scene: Scene, style: Style, draw: DrawBox) -> None:
    """Draw all calls, those inside others within them, and in each the nodes that it made."""
    outermost = [box for box in scene.calls.values() if box.parent not in scene.calls]
    for box in outermost:
        _draw_call(figure, box, scene, style, draw)
    _keep_call_order(figure, outermost)
    for box in scene.calls.values():
        if box.pins_at(scene.trace, output=False):
            _push_inputs_below(figure, box, scene)


def _draw_call(around: graphviz.Digraph, box: CallBox, scene: Scene, style: Style, draw: DrawBox) -> None:
    """Two clusters, since each has one label only: the outer with the plate below, the inner with that above."""
    lower_plate = _make_lower_plate(box, scene, style)
    with around.subgraph(name=f"cluster_{box.id}") as outer:
        outer.attr(**CLUSTER_DEFAULTS)
        outer.attr(
            **_outline_attributes(box, style),
            labelloc="b",
            labeljust="c",
            **({"label": lower_plate} if lower_plate else {}),
        )
        with outer.subgraph(name=f"cluster_{box.id}_inside") as inner:
            inner.attr(**CLUSTER_DEFAULTS)
            inner.attr(
                label=_make_upper_plate(box, scene, style),
                labelloc="t",
                labeljust="c" if box.pins_at(scene.trace, output=True) else "l",
                margin="5",
            )
            for box_id in box.box_ids:
                draw(inner, box_id)
            for child in box.children:
                _draw_call(inner, child, scene, style, draw)
            _keep_call_order(inner, box.children)
            if not box.box_ids and not box.children:
                inner.node(ids.filler_id(box.id), label="", style="invis", width="0.9", height="0.1")


def _push_inputs_below(figure: graphviz.Digraph, box: CallBox, scene: Scene) -> None:
    """What a module was given stands below its box, so that the way there leads past the hooks at its inputs."""
    inside = set(_list_drawn_ids(box))
    arrows = [arrow for arrow in scene.all_arrows if arrow.start in inside]
    not_lowest = {arrow.start for arrow in arrows if arrow.end in inside}
    inputs = dict.fromkeys(arrow.end for arrow in arrows if arrow.end not in inside)
    for lowest in inside - not_lowest:
        for end in inputs:
            figure.edge(lowest, end, style="invis")


def _keep_call_order(figure: graphviz.Digraph, boxes: list[CallBox]) -> None:
    """Where no arrow holds two calls in their order, as without a graph, the later one stands on the earlier."""
    for earlier, later in pairwise(boxes):
        (*_, lowest), (highest, *_) = _list_drawn_ids(later), _list_drawn_ids(earlier)
        if lowest.endswith("-e") or highest.endswith("-e"):
            figure.edge(lowest, highest, style="invis")


def _list_drawn_ids(box: CallBox) -> list[str]:
    """The ids of what is drawn in a box, as from the roots down: its own nodes, or those of the calls inside it."""
    inside = [drawn_id for child in reversed(box.children) for drawn_id in _list_drawn_ids(child)]
    return [*box.box_ids, *inside] or [ids.filler_id(box.id)]


def _outline_attributes(box: CallBox, style: Style) -> dict[str, str]:
    is_current, is_done = box.id in style.current, box.id in style.done
    color = AMBER if is_current else DONE_COLOR if is_done else LIGHT_GREY
    attributes = {"id": box.id, "class": "hv-module", "style": "rounded,filled", "color": color, "fillcolor": CALL_FILL}
    return {**attributes, "penwidth": "3" if is_current else "1.5", "peripheries": "1", "margin": "8"}


def _make_upper_plate(box: CallBox, scene: Scene, style: Style) -> str:
    """The name, what the module returns, and the hooks at its output."""
    name = f"<B>{format_text(box.name, point_size=16)}</B>" + format_small(f"  {box.kind}")
    head = make_row(
        make_cell(ids.name_id(box.id), name),
        make_value_cell(ids.output_id(box.id), box.longest_text, style, INK, align="RIGHT"),
    )
    return _make_plate(ids.upper_plate_id(box.id), head + _make_pin_rows(box, scene, style, output=True))


def _make_lower_plate(box: CallBox, scene: Scene, style: Style) -> str:
    """The hooks at the inputs, and what the module is given; nothing where there is no such hook."""
    pins = _make_pin_rows(box, scene, style, output=False)
    given = make_value_cell(ids.input_id(box.id), box.longest_input, style, INK)
    return _make_plate(ids.lower_plate_id(box.id), pins + (make_row(given) if given else "")) if pins else ""


def _make_pin_rows(box: CallBox, scene: Scene, style: Style, *, output: bool) -> str:
    return "".join(make_row(make_pin_cell(shown, style)) for shown in box.pins_at(scene.trace, output=output))


def _make_plate(plate_id: str, rows: str) -> str:
    link = f'ID="{escape(plate_id)}" HREF="#" TOOLTIP=" "'
    style = f'BORDER="0" BGCOLOR="{PLATE_FILL}" STYLE="ROUNDED" CELLBORDER="0" CELLSPACING="2" CELLPADDING="2"'
    return f"<<TABLE {link} {style}>{rows}</TABLE>>"
