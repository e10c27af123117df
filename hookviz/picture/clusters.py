"""Module calls as DOT: a cluster with one plate for the hooks at its output and one for the hooks at its inputs."""

from collections.abc import Callable
from html import escape
from itertools import pairwise

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
from hookviz.picture.sketch import Canvas

MARKED_COLOR, PLATE_FILL, CALL_FILL = "#475569", "#e9eef5", "#f8fafc"
CLUSTER_DEFAULTS = {"peripheries": "0", "style": "", "label": "", "id": "", "class": "", "bgcolor": "transparent"}
"""A cluster inherits the attributes of the cluster around it; these values reset them."""

DrawBox = Callable[[Canvas, str], None]
"""Adds the box with the given id to a graph or subgraph."""


def draw_calls(figure: Canvas, scene: Scene, style: Style, draw_box: DrawBox) -> None:
    """Draw all module calls, nested as they were made, and in each the boxes directly in it."""
    outermost = [box for box in scene.calls.values() if box.parent not in scene.calls]
    for box in outermost:
        _draw_call(figure, box, scene, style, draw_box)
    _keep_call_order(figure, outermost)
    for box in scene.calls.values():
        if box.pins_at(scene.trace, output=False):
            _push_inputs_below(figure, box, scene)


def _draw_call(parent: Canvas, box: CallBox, scene: Scene, style: Style, draw_box: DrawBox) -> None:
    """Draw a call as two clusters, since a cluster has only one label: the outer one has the lower plate."""
    lower_plate = _make_lower_plate(box, scene, style)
    with parent.subgraph(name=f"cluster_{box.id}") as outer:
        label = {"label": lower_plate} if lower_plate else {}
        own = {**_outline_attributes(box, style), "labelloc": "b", "labeljust": "c", **label}
        outer.attr(**{**CLUSTER_DEFAULTS, **own})
        with outer.subgraph(name=f"cluster_{box.id}_inside") as inner:
            own = {
                "label": _make_upper_plate(box, scene, style),
                "labelloc": "t",
                "labeljust": "c" if box.pins_at(scene.trace, output=True) else "l",
                "margin": "5",
            }
            inner.attr(**{**CLUSTER_DEFAULTS, **own})
            for box_id in box.box_ids:
                draw_box(inner, box_id)
            for child in box.children:
                _draw_call(inner, child, scene, style, draw_box)
            _keep_call_order(inner, box.children)
            if not box.box_ids and not box.children:
                inner.node(ids.filler_id(box.id), label="", style="invis", width="0.9", height="0.1")


def _push_inputs_below(figure: Canvas, box: CallBox, scene: Scene) -> None:
    """Place a module's inputs below its box, so that arrows to them pass the hooks at its inputs."""
    drawn_ids = list(dict.fromkeys(list_drawn_ids(box)))  # in order: equal calls get equal pictures
    inside = set(drawn_ids)
    arrows = [arrow for arrow in scene.all_arrows if arrow.start in inside]
    not_lowest = {arrow.start for arrow in arrows if arrow.end in inside}
    inputs = dict.fromkeys(arrow.end for arrow in arrows if arrow.end not in inside)
    for lowest in drawn_ids:
        for end in inputs if lowest not in not_lowest else ():
            figure.edge(lowest, end, style="invis")


def _keep_call_order(figure: Canvas, boxes: list[CallBox]) -> None:
    """Place each call above the earlier one if one of them is empty, since then no arrow keeps their order."""
    for earlier, later in pairwise(boxes):
        (*_, lowest), (highest, *_) = list_drawn_ids(later), list_drawn_ids(earlier)
        if lowest.endswith("-e") or highest.endswith("-e"):
            figure.edge(lowest, highest, style="invis")


def list_drawn_ids(box: CallBox) -> list[str]:
    """List the ids of the boxes in a call from the roots down, or its filler if it is empty."""
    inside = [drawn_id for child in reversed(box.children) for drawn_id in list_drawn_ids(child)]
    return [*box.box_ids, *inside] or [ids.filler_id(box.id)]


def _outline_attributes(box: CallBox, style: Style) -> dict[str, str]:
    is_current, is_marked = box.id in style.current_elements, box.id in style.marked_elements
    color = AMBER if is_current else MARKED_COLOR if is_marked else LIGHT_GREY
    attributes = {"id": box.id, "class": "hv-module", "style": "rounded,filled", "color": color, "fillcolor": CALL_FILL}
    return {**attributes, "penwidth": "3" if is_current else "1.5", "peripheries": "1", "margin": "8"}


def _make_upper_plate(box: CallBox, scene: Scene, style: Style) -> str:
    """Make the plate with the module's name, its output, and the hooks there."""
    name = f"<B>{format_text(box.name, point_size=16)}</B>" + format_small(f"  {box.kind}")
    head = make_row(
        make_cell(ids.name_id(box.id), name),
        make_value_cell(ids.output_id(box.id), box.longest_text, style, INK, align="RIGHT"),
    )
    return _make_plate(ids.upper_plate_id(box.id), head + _make_pin_rows(box, scene, style, output=True))


def _make_lower_plate(box: CallBox, scene: Scene, style: Style) -> str:
    """Make the plate with the hooks at the inputs, and the input; an empty text if there is no such hook."""
    pins = _make_pin_rows(box, scene, style, output=False)
    if not pins:
        return ""
    input_cell = make_value_cell(ids.input_id(box.id), box.longest_input, style, INK)
    return _make_plate(ids.lower_plate_id(box.id), pins + (make_row(input_cell) if input_cell else ""))


def _make_pin_rows(box: CallBox, scene: Scene, style: Style, *, output: bool) -> str:
    return "".join(make_row(make_pin_cell(hook_pin, style)) for hook_pin in box.pins_at(scene.trace, output=output))


def _make_plate(plate_id: str, rows: str) -> str:
    link = f'ID="{escape(plate_id)}" HREF="#" TOOLTIP=" "'
    style = f'BORDER="0" BGCOLOR="{PLATE_FILL}" STYLE="ROUNDED" CELLBORDER="0" CELLSPACING="2" CELLPADDING="2"'
    return f"<<TABLE {link} {style}>{rows}</TABLE>>"
