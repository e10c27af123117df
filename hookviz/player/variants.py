"""Several passes of one program as the player shows them: one timeline, one picture where the graphs are alike."""

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hookviz.analysis.comparison.alignment import ABSENT, joined
from hookviz.picture.primitives import Mark
from hookviz.picture.scene import Scene
from hookviz.player.frames import (
    LONGEST,
    FrameBuilder,
    drawn,
    firings_in,
    glyph_of,
    hook_of,
    hooks_in,
    layers,
    marks_of,
    scenes_of,
    too_long,
)
from hookviz.support.messages import say, section
from hookviz.support.progress import progress
from hookviz.trace import Hook, Step, TraceData
from hookviz.trace.sentences import title


class Variant(NamedTuple):
    """One of several passes of the same program."""

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


def variants(given: Sequence[Variant], switches: Mapping[Hashable, Hook] | None = None) -> dict[str, Any]:
    """All that the player needs of several variants, as plain data; ``switches`` are the hooks that can be switched.

    Frames that several variants share are there once: each variant has the list of the numbers of its own.
    """
    apart = not any(variant.gone for variant in given)
    found = joined([variant.trace for variant in given], [variant.known for variant in given], apart=apart)
    traces = [trace for trace, _ in found]
    scenes = [_scenes(trace, own, variant.gone) for (trace, own), variant in zip(found, given, strict=True)]
    steps = [list(trace.steps[:LONGEST]) for trace in traces]
    pictures = _Pictures(scenes, [variant.shown for variant in given])
    hooks = hooks_in(step for theirs in steps for step in theirs)
    pool = _Pool()
    with progress(say("progress.preparing", n="{n}", total="{total}"), len(given)) as tick:
        for number, variant in enumerate(given):
            told = _Told(traces[number], steps, number, variant, pictures, hooks)
            pool.put(variant, told.frames(), firings_in(steps[number]))
            tick()
    return {
        "svgs": pictures.svgs(),
        "layers": pictures.layers(),
        "frames": pool.frames,
        "hooks": [hook_of(traces[0], index) for index in hooks],
        "variants": pool.variants,
        "switches": [_switch(sign, hook, found) for sign, hook in (switches or {}).items()],
        "notes": list(too_long(traces[0])),
        "words": section("player"),
    }


def _switch(sign: Hashable, hook: Hook, found: Iterable[tuple[TraceData, Mapping[int, Hashable]]]) -> dict[str, Any]:
    """What can be switched: its name, whose hook it is, and its numbers among the hooks."""
    numbers = {number for _, own in found for number, known in own.items() if known == sign}
    return {"label": hook.label, "on": hook.on, "rows": sorted(numbers)}


def _scenes(trace: TraceData, own: Collection[int], gone: str) -> dict[int, Scene]:
    """The scene of each pass. A hook that only other variants have is ``gone``, rather than one that did not fire."""
    scenes = {scene.pass_id: scene for scene in scenes_of(trace)}
    spots = tuple(f"-p{hook}-v" for hook in range(len(trace.hook_rows)) if hook not in own)
    for scene in scenes.values():
        scene.unsay(spots, gone)
    return scenes


class _Told:
    """The frames of one variant among others."""

    def __init__(
        self,
        trace: TraceData,
        steps: Sequence[Sequence[Step]],
        number: int,
        variant: Variant,
        pictures: "_Pictures",
        hooks: list[int],
    ) -> None:
        self._all, self._steps = steps, steps[number]
        self._number, self._missing = number, variant.missing
        self._pictures, self._marks = pictures, pictures.marks(number)
        self._telling = FrameBuilder(trace, self._steps, self._marks, hooks, asks=variant.asks)

    def frames(self) -> Iterator[dict[str, Any]]:
        """One for each place on the timeline."""
        for step in self._steps:
            frame = self._absent(step.index) if step.kind == ABSENT else self._telling.frame(step)
            yield {**frame, "picture": self._pictures.of(self._number, step)}

    def _absent(self, index: int) -> dict[str, Any]:
        """The frame of a step that does not happen here: the title is that of another variant, in which it does."""
        there = next(theirs[index] for theirs in self._all if theirs[index].kind != ABSENT)
        mark = self._marks.get(index, Mark([], {}))
        return {
            "kind": ABSENT,
            "glyph": glyph_of(there.kind),
            "forward": False,
            "title": title(there),
            "sentence": self._missing,
            **dict.fromkeys(("before", "after", "hook")),
            **dict.fromkeys(("before_label", "after_label", "kept", "next"), ""),
            "parts": [],
            "on": mark.on,
            "near": (),
            "texts": mark.texts,
        }


class _Pool:
    """Frames, each there once, and the variants that are made of them."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.variants: list[dict[str, Any]] = []
        self._known: dict[str, int] = {}

    def put(self, variant: Variant, frames: Iterable[dict[str, Any]], firings: list[dict[str, Any]]) -> None:
        """Add a variant."""
        numbers = [self._number(frame) for frame in frames]
        told = {"label": variant.label, "beside": variant.beside, "notes": list(variant.trace.notes)}
        self.variants.append({"frames": numbers, "firings": firings, **told})

    def _number(self, frame: dict[str, Any]) -> int:
        text = json.dumps(frame, sort_keys=True)
        if text not in self._known:
            self._known[text] = len(self.frames)
            self.frames.append(frame)
        return self._known[text]


class _Pictures:
    """One picture for each pass of each graph; passes of several variants over graphs that look alike share theirs."""

    def __init__(self, scenes: Sequence[dict[int, Scene]], shown: Sequence[bool]) -> None:
        self._scenes = scenes
        _tell_apart([scene for theirs in scenes for scene in theirs.values()])
        self._shared: dict[Any, Scene] = {}
        for theirs, is_drawn in zip(scenes, shown, strict=True):
            for scene in theirs.values() if is_drawn else ():
                self._shared.setdefault(scene.look, scene)
        every = [scene for scenes in self._scenes for scene in scenes.values()]
        for scene in self._shared.values():
            scene.make_room([other for other in every if other.pass_id == scene.pass_id])
        numbers = {look: number for number, look in enumerate(self._shared)}
        alike = {scene.shape: number for number, scene in enumerate(self._shared.values())}
        self._numbers = [
            {pass_id: numbers.get(scene.look, alike.get(scene.shape, -1)) for pass_id, scene in theirs.items()}
            for theirs in scenes
        ]

    def marks(self, number: int) -> dict[int, Mark]:
        """What each step of a variant marks."""
        return marks_of(self._scenes[number].values())

    def of(self, number: int, step: Step) -> int:
        """Which picture a step is shown in, or could be; -1 for none."""
        return self._numbers[number][step.pass_id]

    def svgs(self) -> list[str]:
        """The pictures, with room for the texts of all that have their shape."""
        return drawn(self._shared.values())

    def layers(self) -> str:
        """The same with the layers, packed."""
        return layers([*self._shared.values()])


def _tell_apart(scenes: Sequence[Scene]) -> None:
    """Where tensors of the same place hold other values in another variant, each variant writes its own."""
    held = [(scene, scene.holds()) for scene in scenes]
    found: dict[tuple[int, str], set[str]] = {}
    for scene, texts in held:
        for spot, text in texts.items():
            found.setdefault((scene.pass_id, spot), set()).add(text)
    for scene, texts in held:
        scene.tell({spot: text for spot, text in texts.items() if len(found[scene.pass_id, spot]) > 1})
