"""What a player shows of one trace: what is known of it from the start, and chunks that come when they are asked for.

A part is the words of ``CHUNK_SIZE`` steps (``steps0``, ``steps1`` …), a picture (``0/``, ``0/m3`` …; see
``grouped_views``), or ``index``, with all that can be searched for. A small trace has all its chunks in it. Of a large
one a widget asks the kernel for the others, a page has them all, and the output of a cell has the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol

from hookviz.analysis.findings import Trouble, nothing_found, troubles
from hookviz.picture.grouping import MANY
from hookviz.picture.grouping.activity import of_pass
from hookviz.picture.grouping.pass_groups import groups_passes
from hookviz.player.compression import pack
from hookviz.player.grouped_views import GroupedViews
from hookviz.player.hook_texts import firing_rows, hook_text, hooks_in
from hookviz.player.payload import (
    CHUNK_SIZE,
    Chunk,
    Content,
    FindingText,
    Outline,
    Packed,
    RunContent,
    StepsChunk,
    View,
)
from hookviz.player.scene_views import SceneViews
from hookviz.player.search_index import Entry, index_chunk
from hookviz.player.step_words import StepTexts, glyph_of
from hookviz.player.wording import Wording, screen_words
from hookviz.support.interpreter import gc_paused
from hookviz.support.messages import say
from hookviz.support.progress import progress
from hookviz.trace import TraceData
from hookviz.trace.traversal import UNREACHED, called, is_cut, makers, pictured
from hookviz.trace.traversal import chain as around

MAX_UNSPLIT_STEPS = 400
"""A trace of more steps is sent in chunks: each step is some 0.5 KB of words."""
OUTPUT_CHUNKS, OUTPUT_BOXES = 3, 10
"""An output of a notebook, which asks no kernel, has the words of so many chunks, and so many boxes' pictures."""
MAX_FIRINGS = 1_000
"""The table of hooks has no more rows than this."""
SEARCH_INDEX = "index"


def is_large(trace: TraceData) -> bool:
    """Whether ``trace`` has more steps, passes or boxes than can be sent and seen at once."""
    if len(trace.rows) > MAX_UNSPLIT_STEPS or groups_passes(trace):
        return True
    return any(_count_boxes(trace, pass_id) > MANY for pass_id in range(len(trace.roots)))


def _count_boxes(trace: TraceData, pass_id: int) -> int:
    nodes = pictured(trace, pass_id)
    calls = {*makers(trace, nodes).values(), *called(trace, pass_id)}
    return len(nodes) + len({outer for call in calls for outer in around(trace, call)})


class Pictures(Protocol):
    """The pictures of a trace, by name."""

    @property
    def overview(self) -> str:
        """The name of the picture of all passes; empty where there is none."""

    @property
    def tops(self) -> list[str]:
        """The names of the outermost pictures, one for each pass."""

    @property
    def opening(self) -> list[str]:
        """The names of the pictures that are there from the start."""

    @property
    def svgs(self) -> list[str]:
        """These pictures, as the passes leave them."""

    @property
    def layers(self) -> Packed:
        """The same with what can be switched on in them; empty where there is nothing."""

    @property
    def group_names(self) -> Sequence[str]:
        """The names of the pictures of groups of passes."""

    def views_of(self, pass_id: int) -> list[str]:
        """The names of the pictures of one pass."""

    def view(self, name: str, hooks: Mapping[int, int], wording: Wording) -> View:
        """One picture, and what is shown in it."""

    def entries(self, pass_id: int) -> Iterator[Entry]:
        """What can be searched for in one pass."""


class TraceContent:
    """Makes the content of a player, and its chunks.

    Boxes are put together into groups where there are many, or where ``grouped`` says so. ``no_finding`` is what to say
    where nothing was found, if that is not what the trace says.
    """

    def __init__(self, trace: TraceData, *, grouped: bool | None = None, no_finding: str | None = None) -> None:
        self.trace = trace
        self._no_finding = nothing_found(trace) if no_finding is None else no_finding
        self.is_large = is_large(trace) if grouped is None else grouped
        self._pictures: Pictures = GroupedViews(trace) if self.is_large else SceneViews(trace)
        self._hooks = {row: place for place, row in enumerate(hooks_in(trace))}
        fired = trace.firings
        # To find out what to ask of nodes, each must be looked at: in a long trace only hooks are asked about.
        asks = bool(fired) or len(trace.rows) <= MAX_UNSPLIT_STEPS
        self._step_texts = StepTexts(trace, trace.steps, asks=asks, fired=fired)

    @gc_paused()
    def content(self) -> Content:
        """What a widget has from the start, which can ask for the rest."""
        if not self.trace.rows:
            return self._content([])
        return self._content([*self._pictures.opening, "steps0"] if self.is_large else [*self.chunk_names()])

    def full_content(self) -> Content:
        """All of it, for where there is no kernel to ask; that may take a while, and is shown."""
        if not self.is_large:
            return self.content()
        content, index = self._content([*self._pictures.opening]), Wording()
        first, passes = [*self._step_chunk_names(), *self._pictures.group_names], self.trace.lookup.passes
        found: list[Entry] = []
        with progress(say("progress.preparing", n="{n}", total="{total}"), len(first) + len(passes)) as tick:
            for name in first:
                self._add(content, name)
                tick()
            for pass_id in passes:
                for name in self._pictures.views_of(pass_id):
                    self._add(content, name)
                found += self._pictures.entries(pass_id)
                tick()
        content["chunks"][SEARCH_INDEX] = pack(index_chunk(found, index))
        return content

    @gc_paused()
    def brief_content(self) -> Content:
        """What the output of a cell has: all of a small trace; of a large one the first steps and boxes."""
        if not self.is_large:
            return self.content()
        content, chunks, boxes = (
            self.content(),
            list(self._step_chunk_names()),
            list(islice(self._view_names(), OUTPUT_BOXES + 1)),
        )
        for name in (SEARCH_INDEX, *chunks[:OUTPUT_CHUNKS], *boxes[:OUTPUT_BOXES]):
            self._add(content, name)
        if len(chunks) > OUTPUT_CHUNKS or len(boxes) > OUTPUT_BOXES:
            wording = Wording()
            content["notes"].append(
                wording(say("trace.brief", steps=f"{OUTPUT_CHUNKS * CHUNK_SIZE:,}", boxes=OUTPUT_BOXES))
            )
            content["words"].update(wording.words)
        return content

    def chunk_names(self) -> Iterator[str]:
        """The names of all chunks."""
        yield from self._step_chunk_names()
        yield from self._view_names()
        yield SEARCH_INDEX

    def chunk(self, name: str) -> Chunk:
        """One part.

        Raises:
            KeyError, ValueError: there is no such part.
        """
        wording = Wording()
        if name.startswith("steps"):
            return self._steps_chunk(int(name.removeprefix("steps")), wording)
        if name == SEARCH_INDEX:
            passes = self.trace.lookup.passes
            return index_chunk((entry for pass_id in passes for entry in self._pictures.entries(pass_id)), wording)
        view = self._pictures.view(name, self._hooks, wording)
        return {**view, "words": wording.words}

    def _steps_chunk(self, number: int, wording: Wording) -> StepsChunk:
        steps = self.trace.steps[number * CHUNK_SIZE : (number + 1) * CHUNK_SIZE]
        if not steps:
            raise KeyError(number)
        told = [self._step_texts.words(step, wording) for step in steps]
        return {"steps": told, "words": wording.words}

    def _add(self, content: Content, name: str) -> None:
        """Add a part to ``content``, unless it is there."""
        if name not in content["chunks"]:
            part = self.chunk(name)
            content["chunks"][name] = pack(part) if self.is_large else part

    def _step_chunk_names(self) -> Iterator[str]:
        return (f"steps{number}" for number in range(-(-len(self.trace.rows) // CHUNK_SIZE)))

    def _view_names(self) -> Iterator[str]:
        yield from self._pictures.group_names
        for pass_id in self.trace.lookup.passes:
            yield from self._pictures.views_of(pass_id)

    def _content(self, names: list[str]) -> Content:
        wording = Wording()
        fired = self.trace.firings[:MAX_FIRINGS]
        outline = self._outline(wording)
        run: RunContent = {
            "label": "",
            "baseline": None,
            "notes": [],
            "steps": len(self.trace.rows),
            "outline": pack(outline) if self.is_large else outline,
            "word_indices": None,
            "firings": firing_rows(fired, wording),
            "pictures": [*range(len(self._pictures.svgs))],
        }
        content: Content = {
            "runs": [run],
            "chunk_size": CHUNK_SIZE,
            "chunks": {},
            "svgs": [*self._pictures.svgs],
            "grouped": self.is_large,
            "layers": self._pictures.layers,
            "hooks": [hook_text(self.trace, row, wording) for row in self._hooks],
            "switches": [],
            "combinations": {},
            "first_difference": -1,
            "findings": [_finding_text(found, wording) for found in troubles(self.trace)],
            "no_finding": wording(self._no_finding),
            "notes": [wording(note) for note in (*self.trace.notes, *self._limit_notes(len(fired)))],
            "words": {},
            "initial_state": {"norms": self.is_large},
        }
        content["words"] = screen_words() | wording.words
        for name in names:
            self._add(content, name)
        return content

    def _outline(self, wording: Wording) -> Outline:
        rows, passes = self.trace.rows, self.trace.lookup.passes
        places = {pass_id: place for place, pass_id in enumerate(passes)}
        norms: list[float | str | None] = [None] * len(rows)
        for pass_id in passes:
            for arrival in of_pass(self.trace, pass_id).arrived:
                norms[arrival.step] = arrival.told
        return {
            "kind": [row.kind for row in rows],
            "glyph": [glyph_of(row.kind) for row in rows],
            "picture": [places[row.pass_id] for row in rows],
            "hook": [-1 if row.hook is None else self._hooks[row.hook] for row in rows],
            "norm": norms,
            "questions": self._step_texts.questions(wording),
            "views": self._pictures.tops,
            "overview": self._pictures.overview,
        }

    def _limit_notes(self, fired: int) -> Iterator[str]:
        """What is left out, and why."""
        passes = self.trace.lookup.passes
        if fired < len(self.trace.firings):
            yield say("trace.firings", count=f"{len(self.trace.firings):,}", shown=f"{fired:,}")
        if self._pictures.overview:
            yield say("trace.passes", count=f"{len(passes):,}", most=MANY)
        pictures = (pictured(self.trace, pass_id) for pass_id in passes)
        if self.is_large and any(is_cut(self.trace.lookup.ways(nodes), nodes) for nodes in pictures):
            yield say("trace.unreached", most=UNREACHED)


def _finding_text(found: Trouble, wording: Wording) -> FindingText:
    severity = say(f"trouble.severity.{found.severity}")
    text = say("trouble.note", severity=severity, step=found.step + 1, told=found.sentence)
    return {"text": wording(text), "step": found.step}
