"""The player as an anywidget: a trace's frames go to the browser once, and stepping needs no kernel."""

from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from hookviz.picture import figure
from hookviz.picture.notebook import shown
from hookviz.player.frames import state
from hookviz.trace import Trace

SCRIPTS = ("logic.js", "dom.js", "graph.js", "why.js", "panel.js", "timeline.js", "controls.js", "widget.js")
"""Joined in this order into the one module that anywidget loads; node's tests import the same files."""


@cache
def script() -> str:
    """The player's JavaScript as one module: it is saved with every player, so imports and comments stay behind."""
    lines = (line for name in SCRIPTS for line in _read(name).splitlines())
    return "\n".join(line.removeprefix("export ") if _plain(line) else line for line in lines if not _left_out(line))


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
    ``ipywidgets.jslink((player, "step"), (slider, "value"))``.

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
    words = traitlets.Dict().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    steps = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    speed = traitlets.Float(1.0).tag(sync=True)

    @classmethod
    def of(cls, trace: Trace) -> "Player":
        """The player of ``trace``."""
        shown = state(trace)
        return cls(_esm=script(), _css=_read("player.css"), steps=len(shown["frames"]), **shown)

    @traitlets.validate("step")
    def _in_range(self, proposal: Any) -> int:
        return max(0, min(int(proposal["value"]), max(self.steps - 1, 0)))


def bundle(trace: Trace) -> dict[str, Any]:
    """What Jupyter shows for a trace: the player; where no widget runs, the picture of its last step."""
    if not trace.rows:
        return {"text/plain": repr(trace)}
    picture = shown(figure(trace, len(trace.rows) - 1).pipe("svg", encoding="utf-8"))
    widget: Any = Player.of(trace)._repr_mimebundle_() or {}
    data = dict(widget[0] if isinstance(widget, tuple) else widget)
    return {**data, "image/svg+xml": picture, "text/plain": repr(trace)}
