"""The player as an anywidget: its content goes to the browser once, and stepping needs no kernel."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import anywidget
import ipywidgets
import traitlets

from hookviz.player.bundles import read_bundle
from hookviz.player.compression import pack
from hookviz.player.payload import INITIAL, ChunkReply, ChunkRequest, Content, HookText, empty_content
from hookviz.player.trace_content import TraceContent
from hookviz.player.wording import screen_words
from hookviz.trace import TraceData


class Player(anywidget.AnyWidget):
    """Steps through a trace.

    ``step`` is counted from 0; ``playing`` and ``speed`` (steps per 1.2 s) can be set and linked like it:
    ``ipywidgets.jslink((player, "step"), (slider, "value"))``. So can ``predict``, with ``right`` and ``asked``, the
    score; ``breakpoints``, by the places of hooks in ``hooks``; and what is shown: ``large``, ``tensors``, ``nodes``,
    and ``norms``, by which boxes are coloured.

    >>> from hookviz import Trace
    >>> Player.of(Trace()).steps
    0
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    content = traitlets.Dict().tag(sync=True)
    """All that is shown: a ``payload.Content``."""
    steps = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(INITIAL["step"]).tag(sync=True)
    playing = traitlets.Bool(INITIAL["playing"]).tag(sync=True)
    speed = traitlets.Float(INITIAL["speed"]).tag(sync=True)
    predict = traitlets.Bool(INITIAL["predict"]).tag(sync=True)
    answered = traitlets.Dict(default_value=INITIAL["answered"]).tag(sync=True)
    asked = traitlets.Int(INITIAL["asked"]).tag(sync=True)
    right = traitlets.Int(INITIAL["right"]).tag(sync=True)
    breakpoints = traitlets.List(traitlets.Int(), default_value=INITIAL["breakpoints"]).tag(sync=True)
    large = traitlets.Bool(INITIAL["large"]).tag(sync=True)
    tensors = traitlets.Bool(INITIAL["tensors"]).tag(sync=True)
    nodes = traitlets.Bool(INITIAL["nodes"]).tag(sync=True)
    norms = traitlets.Bool(INITIAL["norms"]).tag(sync=True)
    shown = traitlets.Int(INITIAL["shown"]).tag(sync=True)
    flipped = traitlets.Bool(INITIAL["flipped"]).tag(sync=True)
    split = traitlets.Bool(INITIAL["split"]).tag(sync=True)
    twin = traitlets.Unicode(INITIAL["twin"]).tag(sync=True)

    _own_layout: ipywidgets.Layout | None = None
    """The layout that was made for this player alone."""
    _chunk_listener: Callable[..., None] | None = None
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
        self.set_trait("content", {})
        if self._chunk_listener is not None:
            self.on_msg(self._chunk_listener, remove=True)
            self._chunk_listener = None
        if self._own_layout is not None:
            self._own_layout.close()

    @classmethod
    def of(cls, trace: TraceData) -> "Player":
        """The player of ``trace``; of a large one it asks for what it does not have yet."""
        if not trace.rows:
            return cls.showing({**empty_content(screen_words()), "notes": list(trace.notes)})
        made = TraceContent(trace)
        player = cls.showing(made.content())
        if made.is_large:
            player._chunk_listener = lambda _, request, __: player.answer(made, request)
            player.on_msg(player._chunk_listener)
        return player

    def answer(self, made: TraceContent, request: ChunkRequest) -> None:
        """Send the browser the part that it asks for."""
        name = str(request.get("chunk"))
        reply: ChunkReply = {"chunk": name, "packed": None}
        with suppress(KeyError, ValueError):  # where there is no such part, the player says so
            reply["packed"] = pack(made.chunk(name))
        self.send(reply)

    @classmethod
    def showing(cls, content: Content) -> "Player":
        """The player of what ``trace_content`` or ``several_runs`` has made."""
        code = {"_esm": read_bundle("player.js"), "_css": read_bundle("player.css")}
        return cls(**code, content=content, steps=_step_count(content), **content["initial_state"])

    @property
    def hooks(self) -> list[HookText]:
        """The hooks that ``breakpoints`` names by their places."""
        hooks: list[HookText] = self.content.get("hooks", [])
        return hooks

    def show(self, content: Content) -> None:
        """Show something else, at the same step; with the same hooks off and the same breakpoints, if it has such.

        Its questions are others: the score begins anew.
        """
        before: Mapping[str, Any] = self.content
        with self.hold_sync():
            if content["chunks"] != before["chunks"]:
                self.answered, self.asked, self.right = {}, 0, 0
            if content["switches"] != before["switches"]:
                self.shown = 0
            if content["hooks"] != before["hooks"]:
                self.breakpoints = []
            self.steps, self.flipped = _step_count(content), False
            self.content = dict(content)
            self.step = min(self.step, max(self.steps - 1, 0))

    @traitlets.validate("step")
    def _in_range(self, proposal: Any) -> int:
        return max(0, min(int(proposal["value"]), max(self.steps - 1, 0)))


def _step_count(content: Content) -> int:
    """How many steps the timeline has."""
    return content["runs"][0]["steps"] if content["runs"] else 0
