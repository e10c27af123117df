"""Sliders for the arguments of a what-if's function: each move records all passes again."""

import json
import uuid
from math import ceil, floor, log10
from typing import Any, NamedTuple

import ipywidgets
from IPython import get_ipython
from IPython.display import display
from traitlets import Bunch

from hookviz.player.html_page import render_output
from hookviz.player.widget import Player
from hookviz.support.messages import _
from hookviz.what_if.experiment import OffHooks, Range, WhatIf
from hookviz.what_if.runs import RecordedRun

_SLIDER_STEPS = 100
_ROUND = 1e-9
"""A number that misses a whole one by less is whole."""
_SLIDER_WIDTH = "min(480px, 90vw)"
"""With its name and its value: the track is as wide as a hand needs to choose one of its steps."""
_SLIDER_HEIGHT = 32
"""The height of a slider with its margins, in pixels, so that the output below does not move when it appears."""
_CSS = """.jp-OutputArea-child:has(+ * .hv-again) > .jp-OutputArea-output {
  min-height: %(height)dpx;
  &:not(:has(*)), &:has(> .jupyter-widgets-disconnected) {
    visibility: hidden; font-size: 0;
    > * { display: none }
    &::after { content: %(again)s; font-size: var(--jp-content-font-size1); animation: hv-again 0s 3s forwards }
  }
  &.jupyter-widgets::after, &:has(> .jupyter-widgets-disconnected)::after { visibility: visible }
}
@keyframes hv-again { to { visibility: visible } }"""
"""Replaces what Jupyter shows instead of a widget without a kernel. It writes "Loading widget..." and then an error, as
text without an element; or it shows the widget of a dead kernel, which does nothing. Our sentence appears in its place:
at once, or after three seconds if a widget may still load."""


class _SliderMove(NamedTuple):
    """The last move: its slider, and the passes with which the new ones are compared."""

    slider: ipywidgets.FloatSlider | None
    before: dict[OffHooks, RecordedRun]


def make_sliders(whatif: WhatIf, player: Player) -> list[ipywidgets.FloatSlider]:
    """Make a slider for each range of ``whatif``; a move records all passes again and shows them in ``player``.

    All moves of a slider in a row are compared with the passes before the first of them: what is struck out is the
    value that it began with, and no value on the way.
    """
    created = [_slider(name, bounds, whatif.values[name]) for name, bounds in whatif.ranges.items()]
    last = _SliderMove(None, {})

    def moved(change: Bunch) -> None:
        nonlocal last
        whatif.change(**{change.owner.description: change.new})
        if change.owner is last.slider:
            whatif.before = last.before
        player.show(whatif.content())
        last = _SliderMove(change.owner, whatif.before)

    for slider in created:
        slider.observe(moved, "value")
    return created


def find_slider_step(low: float, high: float, value: float) -> float:
    """Return the step of a slider: a round number of which ``value`` is a multiple, counted from ``low``.

    A slider shows multiples of its step only, and would change another value before anybody moves it.

    >>> find_slider_step(0, 8, 4.0), find_slider_step(-3, 3, 2.0), find_slider_step(0, 1, 0.125)
    (0.05, 0.05, 0.005)
    >>> round(find_slider_step(0, 1, 1 / 3) * 34, 6)
    0.333333
    """
    power = floor(log10((high - low) / _SLIDER_STEPS))
    for step in (float(f"{digit}e{power - down}") for down in (0, 1) for digit in (5, 2, 1)):
        count = (value - low) / step
        if step * _SLIDER_STEPS <= high - low and abs(count - round(count)) < _ROUND * max(count, 1):
            return step
    return (value - low) / ceil((value - low) / (high - low) * _SLIDER_STEPS)


def _slider(name: str, bounds: Range, value: float) -> ipywidgets.FloatSlider:
    low, high = bounds
    step = find_slider_step(low, high, value)
    return ipywidgets.FloatSlider(
        value, min=low, max=high, step=step, description=name, readout_format=".4g", layout={"width": _SLIDER_WIDTH}
    )


def show(whatif: WhatIf) -> None:
    """Show the sliders above the player in Jupyter, as long as their kernel lives.

    A second player, which needs no kernel, is in the output for the time after; the live player replaces it.
    """
    content = whatif.content()
    player = Player.showing(content)
    player.twin = uuid.uuid4().hex
    again = _("The sliders need a running kernel: run this cell again.")
    box = ipywidgets.VBox([*make_sliders(whatif, player), player])
    # The format of every release of ipywidgets.
    view = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
    live = {"application/vnd.jupyter.widget-view+json": view, "text/html": f"<p>{again}</p>"}
    css = _CSS % {"height": _SLIDER_HEIGHT * len(whatif.ranges), "again": json.dumps(again, ensure_ascii=False)}
    twin = (
        f'<div class="hv-again"><style>{css}</style><div data-twin="{player.twin}">{render_output(content)}</div></div>'
    )
    _close_earlier(box)
    for bundle in (live, {"text/html": twin, "text/plain": repr(whatif)}):
        display(bundle, raw=True)  # type: ignore[no-untyped-call]


_shown_by_cell: dict[str, tuple[str, list[ipywidgets.Widget]]] = {}
"""Id of a cell → the id of its last run, and the boxes shown by it."""


def _close_earlier(box: ipywidgets.Widget) -> None:
    """Close the widgets of earlier runs of this cell: Jupyter has removed their output but keeps the widgets."""
    message = _execute_message()
    cell, run = message.get("metadata", {}).get("cellId"), message.get("header", {}).get("msg_id", "")
    if cell is None:  # not every front end sends the id of the cell
        return
    last_run, boxes = _shown_by_cell.get(cell, ("", []))
    if last_run != run:
        for earlier in boxes:
            close_widgets(earlier)
        boxes = []
    _shown_by_cell[cell] = run, [*boxes, box]


def _execute_message() -> dict[str, Any]:
    """The message that made the kernel run this cell; an empty dict outside of Jupyter."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    return dict(kernel.get_parent()) if hasattr(kernel, "get_parent") else {}


def close_widgets(widget: ipywidgets.Widget) -> None:
    """Close ``widget`` and its children, with the models of their layouts and styles."""
    for child in getattr(widget, "children", ()):
        close_widgets(child)
    widget.close()
    for model in (getattr(widget, name, None) for name in ("layout", "style")):
        if isinstance(model, ipywidgets.Widget):
            model.close()
