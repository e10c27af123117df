"""Several runs of one program as a player shows them: one timeline, and one picture where the graphs are alike."""

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hookviz.analysis.comparison.alignment import ABSENT, joined
from hookviz.picture.dot_source import dot
from hookviz.picture.grouping import Views
from hookviz.picture.grouping.activity import Activity, of_pass
from hookviz.picture.inline_svg import finished
from hookviz.picture.scene import Scene
from hookviz.player.hook_texts import firing_rows, hook_text, hooks_in
from hookviz.player.payload import CHUNK_SIZE, Chunk, Content, Outline, Packed, RunContent, StepWords, Switch, ViewChunk
from hookviz.player.scene_views import final_texts, make_view, pack_layers, pass_title, step_texts
from hookviz.player.search_index import Entry, index_chunk, search_entries
from hookviz.player.step_words import StepTexts, glyph_of
from hookviz.player.trace_content import SEARCH_INDEX
from hookviz.player.wording import Wording, screen_words
from hookviz.support.messages import say
from hookviz.support.progress import progress
from hookviz.trace import Hook, Step, TraceData
from hookviz.trace.sentences import title

MAX_STEPS = 2_000
"""A player of several runs has no more steps than this: each is some 0.5 KB, and all are sent at once."""


class Variant(NamedTuple):
    """One of several runs of the same program."""

    trace: TraceData
    label: str
    """Which one it is."""
    missing: str
    """Why a step of another one is not in it."""
    gone: str = ""
    """What stands on a hook of another one that it has not; without it, its pictures have its own hooks only."""
    beside: int | None = None
    """The place of the variant with which its numbers are compared."""
    known: Mapping[int, Any] = {}
    """Which hook each of its hooks is, where that is known."""
    shown: bool = True
    """Whether it is shown itself, rather than only compared with."""
    asks: bool = False
    """Whether there are questions about it."""


def several_runs(
    given: Sequence[Variant], switches: Mapping[Hashable, Hook] | None = None, *, shown: int = 0
) -> Content:
    """The content of a player of several variants; ``switches`` are the hooks that can be switched off.

    It opens with the variant in the place ``shown``. The words of a step that several variants share are there once.
    """
    apart = not any(variant.gone for variant in given)
    found = joined([variant.trace for variant in given], [variant.known for variant in given], apart=apart)
    return _SeveralRuns(given, found, switches or {}, shown).content()


class _SeveralRuns:
    """Several variants in common numbers, on their way into one content."""

    def __init__(
        self,
        given: Sequence[Variant],
        found: Sequence[tuple[TraceData, Mapping[int, Hashable]]],
        switches: Mapping[Hashable, Hook],
        shown: int,
    ) -> None:
        self._given, self._found, self._switches, self._shown = given, found, switches, shown
        self._traces = [trace for trace, _ in found]
        self._steps: list[list[Step]] = [list(trace.steps[:MAX_STEPS]) for trace in self._traces]
        switched = {row for _, own in found for row, sign in own.items() if sign in switches}
        rows = sorted(switched.union(*map(hooks_in, self._traces)))
        self._hooks = {row: place for place, row in enumerate(rows)}
        self._scenes = [_scenes(*one, variant.gone) for one, variant in zip(found, given, strict=True)]
        self._pictures = _SharedPictures(self._scenes, [variant.shown for variant in given], shown)
        self._wording, self._pool = Wording(), _WordPool()

    def content(self) -> Content:
        """What the player is given."""
        runs = []
        chunks: dict[str, Chunk | Packed] = {}
        with progress(say("progress.preparing", n="{n}", total="{total}"), len(self._given)) as tick:
            for number in range(len(self._given)):
                runs.append(self._run(number))
                chunks.update(self._views(number))
                tick()
        pool = self._pool.words
        for at in range(0, len(pool), CHUNK_SIZE):
            chunks[f"steps{at // CHUNK_SIZE}"] = {"steps": pool[at : at + CHUNK_SIZE], "words": {}}
        chunks[SEARCH_INDEX] = index_chunk(self._entries(), self._wording)
        first = self._traces[0]
        return {
            "runs": runs,
            "chunk_size": CHUNK_SIZE,
            "chunks": chunks,
            "svgs": self._pictures.svgs,
            "grouped": False,
            "layers": self._pictures.layers(),
            "hooks": [hook_text(first, row, self._wording) for row in self._hooks],
            "switches": [self._switch(sign, hook) for sign, hook in self._switches.items()],
            "combinations": {},
            "first_difference": -1,
            "findings": [],
            "no_finding": self._wording(say("player.found_elsewhere")),
            "notes": [self._wording(note) for note in _length_note(first)],
            "words": screen_words() | self._wording.words,
            "initial_state": {"shown": self._shown},
        }

    def _run(self, number: int) -> RunContent:
        variant, steps = self._given[number], self._steps[number]
        texts = StepTexts(self._traces[number], steps, asks=variant.asks)
        told = [
            self._pool.put(self._absent(step, variant) if step.kind == ABSENT else texts.words(step, self._wording))
            for step in steps
        ]
        return {
            "label": self._wording(variant.label),
            "baseline": variant.beside,
            "notes": self._wording.messages(variant.trace.notes),
            "steps": len(steps),
            "outline": self._outline(number, texts),
            "word_indices": told,
            "firings": firing_rows(steps, self._wording),
            "pictures": self._pictures.of(number),
        }

    def _absent(self, step: Step, variant: Variant) -> StepWords:
        """The words of a step that does not happen here: the title is that of another variant, in which it does."""
        return {
            "title": self._wording(title(self._elsewhere(step))),
            "sentence": self._wording(variant.missing),
            "forward": False,
            "before": None,
            "after": None,
            "before_label": "",
            "after_label": "",
            "gradients": [],
            "registration": "",
            "next_hook": "",
        }

    def _elsewhere(self, step: Step) -> Step:
        """The step of another variant, where there is one, in the place of one that does not happen here."""
        if step.kind != ABSENT:
            return step
        there = (theirs[step.index] for theirs in self._steps)
        return next(other for other in there if other.kind != ABSENT)

    def _outline(self, number: int, texts: StepTexts) -> Outline:
        steps, trace = self._steps[number], self._traces[number]
        places = {pass_id: place for place, pass_id in enumerate(self._scenes[number])}
        arrivals = (arrival for pass_id in places for arrival in of_pass(trace, pass_id).arrived)
        norms = {arrival.step: arrival.told for arrival in arrivals}
        return {
            "kind": [step.kind for step in steps],
            "glyph": [glyph_of(self._elsewhere(step).kind) for step in steps],
            "picture": [places[step.pass_id] for step in steps],
            "hook": [-1 if step.row.hook is None else self._hooks[step.row.hook] for step in steps],
            "norm": [norms.get(step.index) for step in steps],
            "questions": texts.questions(self._wording),
            "views": [_view_name(number, pass_id) for pass_id in places],
            "overview": "",
        }

    def _views(self, number: int) -> Iterator[tuple[str, ViewChunk]]:
        """The pictures of one variant by name."""
        scenes = self._scenes[number]
        for scene, svg in zip(scenes.values(), self._pictures.of(number), strict=True):
            view = make_view(scene, svg, self._hooks, self._wording)
            name = _view_name(number, scene.pass_id)
            view["breadcrumbs"] = [(name, self._wording(pass_title(scene.pass_id, len(scenes))))]
            yield name, {**view, "words": {}}

    def _entries(self) -> Iterable[Entry]:
        """What can be searched for, as the first variant has it."""
        for pass_id in self._scenes[0]:
            own = Views(self._traces[0], pass_id)
            for entry in search_entries(self._traces[0], own, Activity(own.tree)):
                yield entry._replace(view=_view_name(0, pass_id))

    def _switch(self, sign: Hashable, hook: Hook) -> Switch:
        rows = {row for _, own in self._found for row, known in own.items() if known == sign}
        return {
            "label": hook.label,
            "on": self._wording(hook.on),
            "hooks": sorted(self._hooks[row] for row in rows),
        }


def _view_name(number: int, pass_id: int) -> str:
    """What the picture of a variant's pass is called."""
    return f"run{number}/{pass_id}"


def _length_note(trace: TraceData) -> Iterable[str]:
    if len(trace.rows) > MAX_STEPS:
        yield say("trace.long", steps=f"{len(trace.rows):,}", shown=f"{MAX_STEPS:,}")


def _scenes(trace: TraceData, own: Collection[int], gone: str) -> dict[int, Scene]:
    """The scene of each pass. A hook that only other variants have is ``gone``, rather than one that did not fire."""
    shown = sorted({row.pass_id for row in trace.rows[:MAX_STEPS]})
    scenes = {pass_id: Scene.of(trace, pass_id) for pass_id in shown}
    others = {hook for hook in range(len(trace.hook_rows)) if hook not in own}
    for scene in scenes.values():
        scene.replace_silence(others, gone)
    return scenes


class _WordPool:
    """The words of steps, each there once."""

    def __init__(self) -> None:
        self.words: list[StepWords] = []
        self._places: dict[str, int] = {}

    def put(self, words: StepWords) -> int:
        """The place of ``words``."""
        text = json.dumps(words, sort_keys=True)
        if text not in self._places:
            self._places[text] = len(self.words)
            self.words.append(words)
        return self._places[text]


class _SharedPictures:
    """One picture for each pass of each graph; passes of several variants over graphs that look alike share theirs."""

    def __init__(self, scenes: Sequence[dict[int, Scene]], shown: Sequence[bool], first: int) -> None:
        _write_differing_values([scene for theirs in scenes for scene in theirs.values()])
        shared: dict[Any, Scene] = {}
        for theirs, is_drawn in zip(scenes, shown, strict=True):
            for scene in theirs.values() if is_drawn else ():
                shared.setdefault(scene.look, scene)
        every = [scene for theirs in scenes for scene in theirs.values()]
        for scene in shared.values():
            scene.make_room([other for other in every if other.pass_id == scene.pass_id])
        self._drawn = [*shared.values()]
        places = {look: place for place, look in enumerate(shared)}
        alike = {scene.shape: place for place, scene in enumerate(self._drawn)}
        self._places = [
            [places.get(scene.look, alike.get(scene.shape, -1)) for scene in theirs.values()] for theirs in scenes
        ]
        self._first = dict(zip(self._places[first], scenes[first].values(), strict=True))

    def of(self, number: int) -> list[int]:
        """The places of the pictures of a variant's passes, or of pictures that they could be shown in; -1 for none."""
        return self._places[number]

    @property
    def svgs(self) -> list[str]:
        """The pictures, with room for the texts of all that have their shape, as the first variant leaves them."""
        drawn = []
        for place, scene in enumerate(self._drawn):
            texts = final_texts(step_texts(self._first[place])) if place in self._first else {}
            drawn.append(finished(dot(scene, None, final=True).svg(), texts))
        return drawn

    def layers(self) -> Packed:
        """The same with the layers, packed."""
        return pack_layers(self._drawn)


def _write_differing_values(scenes: Sequence[Scene]) -> None:
    """Where tensors of the same place hold other values in another variant, each variant writes its own."""
    held = [(scene, scene.holds()) for scene in scenes]
    found: dict[tuple[int, str], set[str]] = {}
    for scene, texts in held:
        for spot, text in texts.items():
            found.setdefault((scene.pass_id, spot), set()).add(text)
    for scene, texts in held:
        scene.tell({spot: text for spot, text in texts.items() if len(found[scene.pass_id, spot]) > 1})
