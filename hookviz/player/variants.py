"""Several passes of one program as the player shows them: one timeline, one picture where the graphs are alike."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from hookviz.compare.together import ABSENT
from hookviz.picture.dot import dot
from hookviz.picture.scene import Scene
from hookviz.player.frames import LONGEST, firing_of, frame_of, glyph_of, hook_of
from hookviz.sentences import title
from hookviz.trace import HOOK_KINDS, Step, Trace
from hookviz.words import section

_STRUCK = " "
"""Stands between an old number, struck through, and the new one."""


def variants(traces: Sequence[Trace], missing: Sequence[str]) -> dict[str, Any]:
    """All that the player needs of ``traces``, which are in common numbers, as plain data.

    Frames that several traces share are there once: each trace has the list of the numbers of its own. ``missing`` says
    for each trace why a step of another one is not in it.
    """
    steps = [list(trace.steps[:LONGEST]) for trace in traces]
    pictures = _Pictures(traces)
    hooks = sorted({step.row.hook for theirs in steps for step in theirs if step.row.hook is not None})
    pool = _Pool()
    shown = []
    for number, (trace, theirs) in enumerate(zip(traces, steps, strict=True)):
        marks = pictures.marks(number)
        frames = [
            _absent(_shown_there(steps, step.index), missing[number], marks)
            if step.kind == ABSENT
            else frame_of(step, theirs, marks, hooks)
            for step in theirs
        ]
        numbered = [
            pool.add({**one, "picture": pictures.of(number, step)}) for one, step in zip(frames, theirs, strict=True)
        ]
        firings = [firing_of(step) for step in theirs if step.kind in HOOK_KINDS]
        shown.append({"frames": numbered, "firings": firings, "notes": list(trace.notes)})
    return {
        "svgs": pictures.svgs(),
        "frames": pool.frames,
        "hooks": [{**hook_of(traces[0], index), "row": index} for index in hooks],
        "variants": shown,
        "words": section("player"),
    }


def _shown_there(steps: Iterable[Sequence[Step]], index: int) -> Step:
    """The step that another trace has in a place."""
    return next(theirs[index] for theirs in steps if theirs[index].kind != ABSENT)


def _absent(there: Step, missing: str, marks: dict[int, Any]) -> dict[str, Any]:
    """The frame of a step that does not happen."""
    mark = marks.get(there.index)
    return {
        "kind": ABSENT,
        "glyph": glyph_of(there),
        "forward": False,
        "title": title(there),
        "sentence": missing,
        "before": None,
        "after": None,
        "before_label": "",
        "after_label": "",
        "parts": [],
        "hook": None,
        "kept": "",
        "next": "",
        "on": [] if mark is None else mark.on,
        "near": (),
        "texts": {} if mark is None else mark.texts,
    }


class _Pool:
    """Frames, each there once."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self._known: dict[str, int] = {}

    def add(self, made: dict[str, Any]) -> int:
        """The number of a frame."""
        text = json.dumps(made, sort_keys=True)
        if text not in self._known:
            self._known[text] = len(self.frames)
            self.frames.append(made)
        return self._known[text]


class _Pictures:
    """One picture for each pass of each graph; passes of several traces over graphs that look alike share theirs."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._scenes: list[dict[int, Scene]] = []
        self._shared: dict[Any, list[Scene]] = {}
        for trace in traces:
            passes = sorted({row.pass_id for row in trace.rows[:LONGEST]})
            scenes = {pass_id: Scene.of(trace, pass_id) for pass_id in passes}
            self._scenes.append(scenes)
            for scene in scenes.values():
                self._shared.setdefault(scene.likeness, []).append(scene)
        self._numbers = {likeness: number for number, likeness in enumerate(self._shared)}

    def marks(self, number: int) -> dict[int, Any]:
        """What each step of a trace marks."""
        return {index: mark for scene in self._scenes[number].values() for index, mark in scene.marks.items()}

    def of(self, number: int, step: Step) -> int:
        """Which picture a step is shown in."""
        return self._numbers[self._scenes[number][step.pass_id].likeness]

    def svgs(self) -> list[str]:
        """The pictures, with room for the texts of all that share them, beside each other where they differ."""
        for first, *others in self._shared.values():
            first.make_room(others, _STRUCK)
        return [dot(scenes[0], None, final=True).pipe("svg", encoding="utf-8") for scenes in self._shared.values()]
