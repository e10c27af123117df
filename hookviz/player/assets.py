"""What a player is sent beside what it shows: its script, its style, and what it begins with.

A page and a cell's output need no widget: loading anywidget would take longer than making them.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

@cache
def bundle(name: str) -> str:
    """A file of ``hookviz/static``: the player's JavaScript and CSS as esbuild wrote them (see ``make bundle``).

    >>> bundle("player.js").endswith("};\\n")
    True
    """
    return files("hookviz").joinpath("static", name).read_text(encoding="utf-8")


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
