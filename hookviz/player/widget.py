"""The player as an anywidget: a trace's frames go to the browser once, and stepping needs no kernel."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from hookviz.picture import figure
from hookviz.picture.notebook import shown
from hookviz.player.frames import state
from hookviz.trace import Trace

SCRIPTS = (
    "logic.js",
    "dom.js",
    "variants.js",
    "graph.js",
    "why.js",
    "panel.js",
    "timeline.js",
    "asking.js",
    "predict.js",
    "stops.js",
    "switches.js",
    "graphs.js",
    "view.js",
    "controls.js",
    "widget.js",
)
"""Joined in this order into the one module that anywidget loads; node's tests import the same files."""


@cache
def script() -> str:
    """The player's JavaScript as one module, saved with every player: imports, comments and indents stay behind."""
    lines = (line.rstrip() for name in SCRIPTS for line in _read(name).splitlines())
    return "\n".join(
        (line.removeprefix("export ") if _plain(line) else line).lstrip() for line in lines if not _left_out(line)
    )


def _left_out(line: str) -> bool:
    return not line.strip() or line.startswith("import ") or line.lstrip().startswith(("//", "/*", "* ", "*/"))


def _plain(line: str) -> bool:
    return line.startswith(("export function ", "export const ", "export class ", "export async "))


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


class Player(anywidget.AnyWidget):
    """Steps through a trace.

    ``step`` is counted from 0; ``playing`` and ``speed`` (steps per 1.2 s) can be set and linked like it:
    ``ipywidgets.jslink((player, "step"), (slider, "value"))``. So can ``predict``, with ``right`` and ``asked``, the
    score; ``breakpoints``, by the places of hooks in ``hooks``; and what is shown: ``large``, ``tensors``, ``nodes``.

    >>> from hookviz.trace import Trace
    >>> Player.of(Trace()).steps
    0
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    svgs = traitlets.List(traitlets.Unicode()).tag(sync=True)
    frames = traitlets.List(traitlets.Dict()).tag(sync=True)
    hooks = traitlets.List(traitlets.Dict()).tag(sync=True)
    firings = traitlets.List(traitlets.Dict()).tag(sync=True)
    notes = traitlets.List(traitlets.Unicode()).tag(sync=True)
    layers = traitlets.Unicode().tag(sync=True)
    words = traitlets.Dict().tag(sync=True)
    variants = traitlets.List(traitlets.Dict()).tag(sync=True)
    switches = traitlets.List(traitlets.Dict()).tag(sync=True)
    combinations = traitlets.Dict().tag(sync=True)
    shown = traitlets.Int(0).tag(sync=True)
    flipped = traitlets.Bool(False).tag(sync=True)
    split = traitlets.Bool(False).tag(sync=True)
    mark = traitlets.Int(-1).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    steps = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    speed = traitlets.Float(1.0).tag(sync=True)
    predict = traitlets.Bool(False).tag(sync=True)
    answered = traitlets.Dict().tag(sync=True)
    asked = traitlets.Int(0).tag(sync=True)
    right = traitlets.Int(0).tag(sync=True)
    breakpoints = traitlets.List(traitlets.Int()).tag(sync=True)
    large = traitlets.Bool(False).tag(sync=True)
    tensors = traitlets.Bool(False).tag(sync=True)
    nodes = traitlets.Bool(False).tag(sync=True)

    @classmethod
    def of(cls, trace: Trace) -> "Player":
        """The player of ``trace``."""
        return cls.showing(state(trace))

    @classmethod
    def showing(cls, state: Mapping[str, Any]) -> "Player":
        """The player of what ``frames`` or ``variants`` has made."""
        return cls(_esm=script(), _css=_read("player.css"), steps=_length(state), **state)

    def show(self, state: Mapping[str, Any]) -> None:
        """Show something else, at the same step."""
        with self.hold_sync():
            self.steps, self.flipped = _length(state), False
            for name, value in state.items():
                setattr(self, name, value)
            self.step = min(self.step, max(self.steps - 1, 0))

    @traitlets.validate("step")
    def _in_range(self, proposal: Any) -> int:
        return max(0, min(int(proposal["value"]), max(self.steps - 1, 0)))


def _length(state: Mapping[str, Any]) -> int:
    """How many steps the timeline has."""
    return len(state["variants"][0]["frames"] if "variants" in state else state["frames"])


def bundle(trace: Trace) -> dict[str, Any]:
    """What Jupyter shows for a trace: the player; where no widget runs, the picture of its last step."""
    if not trace.rows:
        return {"text/plain": repr(trace)}
    picture = shown(figure(trace, len(trace.rows) - 1).pipe("svg", encoding="utf-8"))
    widget: Any = Player.of(trace)._repr_mimebundle_() or {}
    data = dict(widget[0] if isinstance(widget, tuple) else widget)
    return {**data, "image/svg+xml": picture, "text/plain": repr(trace)}
