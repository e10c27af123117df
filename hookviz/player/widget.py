"""The player as an anywidget. Its content is sent to the browser once, and stepping needs no kernel."""

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
    """The widget that steps through a trace.

    Its traits can be set, observed, and linked to other widgets:
    ``ipywidgets.jslink((player, "step"), (slider, "value"))``.

    >>> import torch, hookviz as hv
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with hv.record() as trace:
    ...     (x * x).backward()
    >>> player = trace.player()
    >>> player.step = 3
    >>> player.step, player.steps
    (3, 4)
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    content = traitlets.Dict().tag(sync=True)
    """What the player shows: a ``payload.Content``."""
    steps = traitlets.Int(0).tag(sync=True)
    """The number of steps."""
    step = traitlets.Int(INITIAL["step"]).tag(sync=True)
    """The step that is shown, counted from 0."""
    playing = traitlets.Bool(INITIAL["playing"]).tag(sync=True)
    """Whether the player goes on by itself."""
    speed = traitlets.Float(INITIAL["speed"]).tag(sync=True)
    """How fast it plays, in steps per 1.2 seconds."""
    predict = traitlets.Bool(INITIAL["predict"]).tag(sync=True)
    """Whether the player asks what a hook does before it shows it."""
    answered = traitlets.Dict(default_value=INITIAL["answered"]).tag(sync=True)
    asked = traitlets.Int(INITIAL["asked"]).tag(sync=True)
    """The number of questions that were answered or skipped."""
    right = traitlets.Int(INITIAL["right"]).tag(sync=True)
    """The number of questions that were answered right: the score."""
    breakpoints = traitlets.List(traitlets.Int(), default_value=INITIAL["breakpoints"]).tag(sync=True)
    """The hooks at which playing stops, as indexes of ``hooks``."""
    large = traitlets.Bool(INITIAL["large"]).tag(sync=True)
    """Whether the text is larger, for a projector."""
    tensors = traitlets.Bool(INITIAL["tensors"]).tag(sync=True)
    """Whether the Python tensors are shown on their nodes."""
    nodes = traitlets.Bool(INITIAL["nodes"]).tag(sync=True)
    """Whether the nodes show their lists of pre-hooks."""
    norms = traitlets.Bool(INITIAL["norms"]).tag(sync=True)
    """Whether the colours of the boxes show the norms of their gradients."""
    shown = traitlets.Int(INITIAL["shown"]).tag(sync=True)
    """In a what-if or a comparison: which run is shown, counted from 0."""
    flipped = traitlets.Bool(INITIAL["flipped"]).tag(sync=True)
    split = traitlets.Bool(INITIAL["split"]).tag(sync=True)
    """In a what-if or a comparison: whether two runs are shown side by side."""
    twin = traitlets.Unicode(INITIAL["twin"]).tag(sync=True)

    _own_layout: ipywidgets.Layout | None = None
    """The layout, if it was made for this player alone."""
    _chunk_listener: Callable[..., None] | None = None
    """Replies to the browser's requests for chunks of a large trace."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        if "layout" not in traits:
            self._own_layout = self.layout

    def close(self) -> None:
        """Remove the player from the page, and free its content and the model of its layout.

        Jupyter keeps the model of a widget until it is closed or the kernel ends, even if its cell runs again.
        """
        super().close()
        # A variable or Jupyter's ``Out`` may keep a closed player alive. Its connection is closed, so nothing is sent.
        self.set_trait("content", {})
        if self._chunk_listener is not None:
            self.on_msg(self._chunk_listener, remove=True)
            self._chunk_listener = None
        if self._own_layout is not None:
            self._own_layout.close()

    @classmethod
    def of(cls, trace: TraceData) -> "Player":
        """Make the player of ``trace``. If the trace is large, the player requests chunks when it needs them."""
        if not trace.rows:
            return cls.showing({**empty_content(screen_words()), "notes": list(trace.notes)})
        trace_content = TraceContent(trace)
        player = cls.showing(trace_content.content())
        if trace_content.is_large:
            player._chunk_listener = lambda _, request, __: player.answer(trace_content, request)
            player.on_msg(player._chunk_listener)
        return player

    def answer(self, trace_content: TraceContent, request: ChunkRequest) -> None:
        """Send the browser the chunk that it requests."""
        name = str(request.get("chunk"))
        reply: ChunkReply = {"chunk": name, "packed": None}
        with suppress(KeyError, ValueError):  # the player says that the chunk does not exist
            reply["packed"] = pack(trace_content.chunk(name))
        self.send(reply)

    @classmethod
    def showing(cls, content: Content) -> "Player":
        """Make the player of a content that ``trace_content`` or ``several_runs`` made."""
        code = {"_esm": read_bundle("player.js"), "_css": read_bundle("player.css")}
        return cls(**code, content=content, steps=_step_count(content), **content["initial_state"])

    @property
    def hooks(self) -> list[HookText]:
        """The hooks; ``breakpoints`` are indices of this list."""
        hooks: list[HookText] = self.content.get("hooks", [])
        return hooks

    def show(self, content: Content) -> None:
        """Show another content at the same step.

        Switches and breakpoints stay if the hooks are the same. New steps have new questions, so the score is reset.
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
    """Return the number of steps of the timeline."""
    return content["runs"][0]["steps"] if content["runs"] else 0
