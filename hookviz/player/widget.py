"""The player as an anywidget: a trace's frames go to the browser once, and stepping needs no kernel."""

from collections.abc import Callable, Mapping
from typing import Any

import anywidget
import ipywidgets
import traitlets

from hookviz.player.assets import bundle, length
from hookviz.player.frames import state
from hookviz.player.large_trace import Large, is_large
from hookviz.trace import TraceData

_SHOWN = ("svgs", "frames", "hooks", "firings", "variants", "layers", "outline", "parts")
"""The traits that take memory."""


class Player(anywidget.AnyWidget):
    """Steps through a trace.

    ``step`` is counted from 0; ``playing`` and ``speed`` (steps per 1.2 s) can be set and linked like it:
    ``ipywidgets.jslink((player, "step"), (slider, "value"))``. So can ``predict``, with ``right`` and ``asked``, the
    score; ``breakpoints``, by the places of hooks in ``hooks``; and what is shown: ``large``, ``tensors``, ``nodes``,
    and ``norms``, by which the boxes of a large trace are coloured.

    >>> from hookviz import Trace
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
    outline = traitlets.Unicode().tag(sync=True)
    parts = traitlets.Dict().tag(sync=True)
    count = traitlets.Int(0).tag(sync=True)
    variants = traitlets.List(traitlets.Dict()).tag(sync=True)
    switches = traitlets.List(traitlets.Dict()).tag(sync=True)
    combinations = traitlets.Dict().tag(sync=True)
    shown = traitlets.Int(0).tag(sync=True)
    flipped = traitlets.Bool(False).tag(sync=True)
    split = traitlets.Bool(False).tag(sync=True)
    mark = traitlets.Int(-1).tag(sync=True)
    twin = traitlets.Unicode().tag(sync=True)
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
    norms = traitlets.Bool(True).tag(sync=True)

    _own_layout: ipywidgets.Layout | None = None
    """The layout that was made for this player alone."""
    _answering: Callable[..., None] | None = None
    """Answers the browser when it asks for a part of a large trace."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        if "layout" not in traits:
            self._own_layout = self.layout

    def close(self) -> None:
        """Take the player out of the page, and free what it shows: pictures, words, and the model of its layout.

        Jupyter keeps the model of a widget until it is closed or the kernel ends, even if its cell runs again.
        """
        super().close()
        # A variable, or Jupyter's ``Out``, may keep a closed player. It has no connection any more, so nothing is sent.
        for name in _SHOWN:
            self.set_trait(name, type(getattr(self, name))())
        if self._answering is not None:
            self.on_msg(self._answering, remove=True)
            self._answering = None
        if self._own_layout is not None:
            self._own_layout.close()

    @classmethod
    def of(cls, trace: TraceData) -> "Player":
        """The player of ``trace``; of a large one it asks for what it does not have yet."""
        if not is_large(trace):
            return cls.showing(state(trace))
        large = Large(trace)
        player = cls.showing(large.state())
        player._answering = lambda _, asked, __: player.answer(large, asked)
        player.on_msg(player._answering)
        return player

    def answer(self, large: Large, asked: Mapping[str, Any]) -> None:
        """Send the browser a part that it asks for: words of steps, or the picture of a box that somebody enters."""
        name = str(asked.get("part"))
        try:
            self.send({"part": name, "packed": large.part(name)})
        except (KeyError, ValueError):
            self.send({"part": name, "packed": None})

    @classmethod
    def showing(cls, state: Mapping[str, Any]) -> "Player":
        """The player of what ``frames`` or ``variants`` has made."""
        return cls(_esm=bundle("player.js"), _css=bundle("player.css"), steps=length(state), **state)

    def show(self, state: Mapping[str, Any]) -> None:
        """Show something else, at the same step; with the same hooks off and the same breakpoints, if it has such.

        Its questions are others: the score begins anew.
        """
        with self.hold_sync():
            if state["frames"] != self.frames:
                self.answered, self.asked, self.right = {}, 0, 0
            if state.get("switches", []) != self.switches:
                self.shown = 0
            if state["hooks"] != self.hooks:
                self.breakpoints = []
            self.steps, self.flipped = length(state), False
            for name, value in state.items():
                setattr(self, name, value)
            self.step = min(self.step, max(self.steps - 1, 0))

    @traitlets.validate("step")
    def _in_range(self, proposal: Any) -> int:
        return max(0, min(int(proposal["value"]), max(self.steps - 1, 0)))
