"""The player as an anywidget. Its content is sent to the browser once, and stepping needs no kernel."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import anywidget
import ipywidgets
import traitlets

from hookviz.player import read_bundle
from hookviz.player.compression import pack
from hookviz.player.editions import offer_languages
from hookviz.player.labels import screen_labels
from hookviz.player.payload import (
    INITIAL,
    Chunk,
    ChunkReply,
    ChunkRequest,
    Content,
    HookText,
    LanguageRequest,
    empty_content,
)
from hookviz.player.trace_content import TraceContent, name_plots
from hookviz.support.messages.languages import find_language, speaking
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
    hooks_only = traitlets.Bool(INITIAL["hooks_only"]).tag(sync=True)
    """Whether it goes from hook to hook when it plays."""
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
    _listener: Callable[..., None] | None = None
    """Replies to the browser's requests: for chunks of a large trace, and for another language."""

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
        if self._listener is not None:
            self.on_msg(self._listener, remove=True)
            self._listener = None
        if self._own_layout is not None:
            self._own_layout.close()

    @classmethod
    def of(cls, trace: TraceData) -> "Player":
        """Make the player of ``trace``. If the trace is large, the player requests chunks when it needs them."""
        if not trace.rows:
            return cls.showing({**empty_content(screen_labels()), "notes": list(trace.notes)})
        shown: TraceContent

        def make_content() -> Content:
            nonlocal shown
            shown = TraceContent.of(trace)
            # The kernel draws the plots when they are opened, if it can.
            return {**shown.content(), "plots": name_plots(trace) if find_spec("matplotlib") else []}

        return cls.showing(make_content(), make_content, lambda name: shown.chunk(name))

    @classmethod
    def showing(
        cls,
        content: Content,
        make_content: Callable[[], Content] | None = None,
        make_chunk: Callable[[str], Chunk] | None = None,
    ) -> "Player":
        """Make the player of a content that ``trace_content`` or ``several_runs`` made.

        Args:
            content: what it shows.
            make_content: makes the content anew, in the language in which hookviz speaks then. If None, the player has
                no switch for the language.
            make_chunk: makes a chunk by its name; None if the content has all of them.
        """
        code = {"_esm": read_bundle("player.js"), "_css": read_bundle("player.css")}
        offered = offer_languages(content) if make_content else content
        player = cls(**code, content=offered, steps=_step_count(content), **content["initial_state"])
        if make_content or make_chunk:
            player._listener = lambda _, request, __: player.answer(request, make_content, make_chunk)
            player.on_msg(player._listener)
        return player

    def answer(
        self,
        request: ChunkRequest | LanguageRequest,
        make_content: Callable[[], Content] | None,
        make_chunk: Callable[[str], Chunk] | None,
    ) -> None:
        """Send the browser the chunk that it requests, or show the content in the language that it requests."""
        asked: Mapping[str, Any] = request
        language = find_language(str(asked.get("language", "")))
        if language:
            if make_content:
                with speaking(language):
                    self.show(offer_languages(make_content()))
            return
        name = str(asked.get("chunk"))
        reply: ChunkReply = {"chunk": name, "packed": None}
        with suppress(KeyError, IndexError, ValueError):  # the player says that the chunk does not exist
            if make_chunk:
                reply["packed"] = pack(make_chunk(name))
        self.send(reply)

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
            if content["chunks"] != before["chunks"] and content["language"] == before["language"]:
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
