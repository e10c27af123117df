"""What a player is sent beside what it shows: its script, its style, and what it begins with.

A page and a cell's output need no widget: loading anywidget would take longer than making them.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from hookviz.player.minifier import compact_script, compact_style

SCRIPTS = (
    "logic.js",
    "dom.js",
    "variants.js",
    "graph.js",
    "why.js",
    "panel.js",
    "timeline.js",
    "ticks.js",
    "asking.js",
    "predict.js",
    "stops.js",
    "switches.js",
    "graphs.js",
    "view.js",
    "keyboard.js",
    "links.js",
    "controls.js",
    "parts.js",
    "norms.js",
    "tints.js",
    "zoom.js",
    "strip.js",
    "seek.js",
    "search.js",
    "views.js",
    "long.js",
    "widget.js",
)
"""Joined in this order into the one module that anywidget loads; node's tests import the same files."""
LARGE = ("parts.js", "norms.js", "tints.js", "zoom.js", "strip.js", "seek.js", "search.js", "views.js", "long.js")
"""What only a large trace needs: one of another trace leaves it out."""
SMALL = ("ticks.js", "variants.js", "switches.js", "graphs.js")
"""What a large trace has no use for: it has too many steps for a tick each, one picture at a time, and no what-if."""


@cache
def script(*, large: bool = True) -> str:
    """The player's JavaScript as one module: it is saved with every player, so imports and comments stay behind."""
    return compact_script("\n".join(_read(name) for name in SCRIPTS if name not in (SMALL if large else LARGE)))


@cache
def style(*, large: bool = True) -> str:
    """The player's CSS, without what only its readers need."""
    return "".join(compact_style(_read(name)) for name in ("player.css", *(("large.css",) if large else ())))


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


BEGIN: Mapping[str, Any] = {
    **dict.fromkeys(("svgs", "frames", "hooks", "firings", "notes", "variants", "switches", "breakpoints"), ()),
    **{name: {} for name in ("words", "parts", "combinations", "answered")},
    **dict.fromkeys(("layers", "outline", "twin"), ""),
    **dict.fromkeys(("count", "shown", "step", "steps", "asked", "right"), 0),
    **dict.fromkeys(("flipped", "split", "playing", "predict", "large", "tensors", "nodes"), False),
    "norms": True,
    "mark": -1,
    "speed": 1.0,
}
"""Name of a trait → what it is before anything is shown; a page has no widget to ask."""


def length(state: Mapping[str, Any]) -> int:
    """How many steps the timeline has."""
    if "count" in state:
        return int(state["count"])
    return len(state["variants"][0]["frames"] if "variants" in state else state["frames"])
