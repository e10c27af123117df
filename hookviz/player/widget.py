"""The player as an anywidget: a trace's frames go to the browser once, and stepping needs no kernel."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from hookviz.player.frames import state
from hookviz.trace import Trace

SCRIPTS = ("logic.js", "dom.js", "graph.js", "panel.js", "timeline.js", "controls.js", "widget.js")
"""Joined in this order into the one module that anywidget loads; node's tests import the same files."""


@cache
def script() -> str:
    """The player's JavaScript as one module: it is saved with every player, so imports and comments stay behind."""
    return compact("\n".join(_read(name) for name in SCRIPTS))


@cache
def style() -> str:
    """The player's CSS, without what only its readers need."""
    return compact(_read("player.css"))


def compact(code: str) -> str:
    """``code`` of ours, JavaScript or CSS, without comments, imports, exports by name, indents and empty lines.

    Every line stands for itself: no text in these files goes on in a second line.
    """
    code = re.sub(r"^\s*/\*.*?\*/$", "", code, flags=re.DOTALL | re.MULTILINE)
    lines = (re.sub(r"^export (?=function|const|class|async)", "", line.strip()) for line in code.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("import ", "//")))


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
        return cls(_esm=script(), _css=style(), steps=len(shown["frames"]), **shown)

    @traitlets.validate("step")
    def _in_range(self, proposal: Any) -> int:
        return max(0, min(int(proposal["value"]), max(self.steps - 1, 0)))
