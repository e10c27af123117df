"""Sliders for the values that a function is given: each move records afresh."""

import json
import time
import uuid
from typing import Any, NamedTuple

import ipywidgets
from IPython import get_ipython
from IPython.display import display
from traitlets import Bunch

from hookviz.player.html_page import render_output
from hookviz.player.widget import Player
from hookviz.support.messages import say
from hookviz.support.progress import ShowLine, show_progress_with
from hookviz.what_if.experiment import Off, Range, WhatIf
from hookviz.what_if.runs import Run

DRAG = 1.0
"""Seconds: a slider that is moved again sooner is still being dragged, and compared with where that began."""
_STEPS = 100
_HEIGHT = 32
"""Of a slider with its margins, in pixels, so that what is below it does not move when it appears."""
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
"""Where Jupyter has no widget to show it writes "Loading widget..." until a kernel has come, and then an error, as a
text without an element around it; where it knows a widget whose kernel has gone it shows it, but it does nothing. Our
sentence stands there instead: at once, or where a widget may still come, later."""


class _Move(NamedTuple):
    """The last move of a slider: of which, when, and the passes with which what it made is compared."""

    slider: ipywidgets.FloatSlider | None
    at: float
    before: dict[Off, Run]


def _nowhere(line: str) -> None:
    """Show nothing."""


def sliders(whatif: WhatIf, player: Player, show: ShowLine = _nowhere) -> list[ipywidgets.FloatSlider]:
    """One slider for each range of ``whatif``; a move records everything again and gives it to ``player``.

    ``show`` shows how far that is, where it takes long.
    """
    made = [_slider(name, bounds, whatif.values[name]) for name, bounds in whatif.ranges.items()]
    last = _Move(None, 0.0, {})

    def moved(change: Bunch) -> None:
        nonlocal last
        going_on = change.owner is last.slider and time.monotonic() - last.at < DRAG
        with show_progress_with(show):
            whatif.change(**{change.owner.description: change.new})
            if going_on:
                whatif.before = last.before
            player.show(whatif.content())
        last = _Move(change.owner, time.monotonic(), whatif.before)

    for slider in made:
        slider.observe(moved, "value")
    return made


def _slider(name: str, bounds: Range, value: float) -> ipywidgets.FloatSlider:
    low, high = bounds
    step = float(f"{(high - low) / _STEPS:.1g}")
    return ipywidgets.FloatSlider(value, min=low, max=high, step=step, description=name, readout_format=".4g")


def show(whatif: WhatIf) -> None:
    """Show the sliders above the player in Jupyter, where they live as long as their kernel.

    The player is one that needs no kernel, for the time after; the living one takes its place.
    """
    content = whatif.content()
    player = Player.showing(content)
    player.twin = uuid.uuid4().hex
    again = say("whatif.again")
    line = ipywidgets.Label()  # beside the sliders, so that it moves nothing
    moved = sliders(whatif, player, lambda text: setattr(line, "value", text))
    box = ipywidgets.VBox([ipywidgets.HBox([ipywidgets.VBox(moved), line]), player])
    view = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}  # as each release of ipywidgets sends it
    live = {"application/vnd.jupyter.widget-view+json": view, "text/html": f"<p>{again}</p>"}
    css = _CSS % {"height": _HEIGHT * len(whatif.ranges), "again": json.dumps(again, ensure_ascii=False)}
    twin = (
        f'<div class="hv-again"><style>{css}</style><div data-twin="{player.twin}">{render_output(content)}</div></div>'
    )
    _close_earlier(box)
    for shown in (live, {"text/html": twin, "text/plain": repr(whatif)}):
        display(shown, raw=True)  # type: ignore[no-untyped-call]


_shown: dict[str, tuple[str, list[ipywidgets.Widget]]] = {}
"""Id of a cell → its last run, and the boxes that it has shown."""


def _close_earlier(box: ipywidgets.Widget) -> None:
    """Close what earlier runs of this cell have shown, since Jupyter has removed their output but keeps the widgets."""
    message = _message()
    cell, run = message.get("metadata", {}).get("cellId"), message.get("header", {}).get("msg_id", "")
    if cell is None:  # not every front end says which cell it runs
        return
    last, boxes = _shown.get(cell, ("", []))
    if last != run:
        for earlier in boxes:
            close(earlier)
        boxes = []
    _shown[cell] = run, [*boxes, box]


def _message() -> dict[str, Any]:
    """The message that made the kernel run this cell; an empty one outside of Jupyter."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    return dict(kernel.get_parent()) if hasattr(kernel, "get_parent") else {}


def close(widget: ipywidgets.Widget) -> None:
    """Close ``widget`` with all that is in it, and the models of their layouts and styles."""
    for child in getattr(widget, "children", ()):
        close(child)
    widget.close()
    for part in (getattr(widget, name, None) for name in ("layout", "style")):
        if isinstance(part, ipywidgets.Widget):
            part.close()
