"""The content of a player of several runs of one program: one timeline, and shared pictures where graphs look alike."""

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hookviz.analysis.alignment import ABSENT, align_with_hooks
from hookviz.analysis.findings.hooks.silent_hooks import list_silent_hooks
from hookviz.analysis.formulas.reasons import Explainer
from hookviz.analysis.hook_effects import HookEffects
from hookviz.analysis.questions.switched_off import ask_about_switched_off
from hookviz.analysis.step_lines import StepLines
from hookviz.picture.element_ids import part_id
from hookviz.picture.figure import draw_final
from hookviz.picture.primitives import SPACE, Box, Parameter, format_values
from hookviz.picture.scene import Scene
from hookviz.picture.silent_pins import mark_silent_pins
from hookviz.picture.visible_graph import make_visible_graph
from hookviz.player.code_texts import CodeTexts, describe_program
from hookviz.player.hook_texts import describe_hooks, hook_text, list_reasons
from hookviz.player.labels import screen_labels
from hookviz.player.payload import (
    CHUNK_SIZE,
    Chunk,
    Content,
    Overview,
    Packed,
    RunContent,
    StepWords,
    Switch,
    View,
    empty_content,
)
from hookviz.player.scene_views import (
    final_texts,
    list_pass_entries,
    make_pass_view,
    pack_layers,
    pass_title,
    step_texts,
)
from hookviz.player.search_index import Entry, index_chunk
from hookviz.player.step_words import QuestionPool, StepTexts, describe_content, make_overview
from hookviz.player.trace_content import SEARCH_INDEX
from hookviz.support.messages import _
from hookviz.support.progress import progress
from hookviz.trace import Hook, Step, TraceData
from hookviz.trace.sentences import make_title

MAX_STEPS = 2_000
"""The most steps of a player of several runs: all are sent at once, and each takes about 0.5 KB."""


class Variant(NamedTuple):
    """One of several runs of the same program."""

    trace: TraceData
    label: str
    """The name of the run."""
    absent_step_text: str
    """Why a step of another variant does not happen in this one."""
    absent_hook_text: str = ""
    """What its pictures show at hooks that only other variants have. If empty, they omit these hooks."""
    baseline: int | None = None
    """The index of the variant with which it is compared."""
    hook_ids: Mapping[int, Any] = {}
    """Hook row → an id that the same hook has in all variants, for hooks that can be identified."""
    is_shown: bool = True
    """Whether the player shows it. If not, it only serves as a baseline."""
    off_hooks: Sequence[str] | None = None
    """The names of the hooks that are off in it; None if the player asks no questions about it."""


def several_runs(
    variants: Sequence[Variant], switches: Mapping[Hashable, Hook] | None = None, *, shown: int = 0
) -> Content:
    """Make the content of a player of several variants; ``switches`` are the hooks that can be switched off.

    The player shows ``variants[shown]`` first. Variants in which a step has the same words share them.
    """
    apart = not any(variant.absent_hook_text for variant in variants)
    aligned = align_with_hooks(
        [variant.trace for variant in variants], [variant.hook_ids for variant in variants], own_hooks=apart
    )
    return _SeveralRuns(variants, aligned, switches or {}, shown).content()


class _SeveralRuns:
    """Makes the content of several variants, whose traces are aligned to common step, node and hook numbers."""

    def __init__(
        self,
        variants: Sequence[Variant],
        aligned: Sequence[tuple[TraceData, Mapping[int, Hashable]]],
        switches: Mapping[Hashable, Hook],
        shown: int,
    ) -> None:
        self._variants, self._aligned, self._switches, self._shown = variants, aligned, switches, shown
        self._traces = [trace for trace, _ignored in aligned]
        self._steps: list[list[Step]] = [list(trace.steps[:MAX_STEPS]) for trace in self._traces]
        switched = {row for _ignored, ids in aligned for row, hook_id in ids.items() if hook_id in switches}
        rows = sorted(switched.union(*(trace.lookup.hooks_that_ran for trace in self._traces)))
        self._hooks = {row: index for index, row in enumerate(rows)}
        self._scenes = [
            _scenes(trace, ids, variant.absent_hook_text)
            for (trace, ids), variant in zip(aligned, variants, strict=True)
        ]
        are_shown = [variant.is_shown for variant in variants]
        self._pictures = _SharedPictures(self._scenes, are_shown, shown)
        self._reasons = list_reasons(list_silent_hooks(self._traces[0]))
        for scene in self._scenes[0].values():
            # A new pin would be missing in the other runs, and the first could not share its picture with them.
            mark_silent_pins(scene, self._reasons)
        self._pool, self._code = _WordPool(), CodeTexts()
        self._questions = QuestionPool()
        self._shared_questions: dict[str, list[int]] = {}
        """The questions about the first variant, which all others share."""

    def content(self) -> Content:
        """Make the content."""
        runs = []
        chunks: dict[str, Chunk | Packed] = {}
        with progress(
            _("Preparing the player: {n} of {total}").format(n="{n}", total="{total}"), len(self._variants)
        ) as tick:
            for number in range(len(self._variants)):
                runs.append(self._run(number))
                chunks.update(self._views(number))
                tick()
        pool = self._pool.words
        for start in range(0, len(pool), CHUNK_SIZE):
            chunks[f"steps{start // CHUNK_SIZE}"] = {"steps": pool[start : start + CHUNK_SIZE]}
        chunks[SEARCH_INDEX] = index_chunk(self._entries())
        first = self._traces[0]
        return {
            **empty_content(screen_labels()),
            "runs": runs,
            "chunks": chunks,
            "svgs": self._pictures.svgs,
            "layers": self._pictures.layers(),
            "about": self._describe(first),
            "title": describe_program(first),
            "hooks": [hook_text(first, row) for row in self._hooks],
            "questions": self._questions.questions,
            "sources": self._code.texts(),
            "switches": [self._switch(hook_id, hook) for hook_id, hook in self._switches.items()],
            "no_finding": _(
                "This player compares several recordings: open the player of one of them to see what is "
                "wrong with its gradients."
            ),
            "notes": list(_length_note(first)),
            "initial_state": {"shown": self._shown},
        }

    def _run(self, number: int) -> RunContent:
        trace, variant, steps = self._traces[number], self._variants[number], self._steps[number]
        effects = HookEffects(trace)
        texts = StepTexts(Explainer(trace), effects, self._code.add(StepLines(trace)))
        word_indices = [
            self._pool.add(self._absent(step, variant) if step.kind == ABSENT else texts.words(step)) for step in steps
        ]
        hooks = describe_hooks(effects, steps, trace, self._reasons if number == 0 else {})
        last_pass = max(self._scenes[number])
        return {
            "label": variant.label,
            "baseline": variant.baseline,
            "notes": list(variant.trace.notes),
            "steps": len(steps),
            "overview": self._overview(number, self._ask(number)),
            "word_indices": word_indices,
            **hooks,
            "final_svg": self._pictures.indices_of(number)[-1],
            "last_pass": pass_title(trace, last_pass) if len(self._scenes[number]) > 1 else "",
        }

    def _absent(self, step: Step, variant: Variant) -> StepWords:
        """Return the words of a step that does not happen in ``variant``; another variant supplies the title."""
        return {
            "title": make_title(self._elsewhere(step)),
            "sentence": variant.absent_step_text,
            "forward": False,
            "cards": [],
            "before": None,
            "after": None,
            "gradients": [],
            "registration": "",
            "next_hook": "",
        }

    def _elsewhere(self, step: Step) -> Step:
        """Return ``step``, or if it is absent here, the same step of a variant in which it happens."""
        if step.kind != ABSENT:
            return step
        same_steps = (steps[step.index] for steps in self._steps)
        return next(other for other in same_steps if other.kind != ABSENT)

    def _describe(self, first: TraceData) -> str:
        """Return what the player shows, as a phrase."""
        is_what_if = bool(self._switches) or len(self._variants) == 1
        return (_("what-if, {about}") if is_what_if else _("two runs compared, {about}")).format(
            about=describe_content(first)
        )

    def _ask(self, number: int) -> dict[str, list[int]]:
        """Return step → the indices of the questions before it.

        The first variant has the questions about every hook. They are asked in each other variant, too, which would
        give their answers away; after them it has questions about what its switches change.
        """
        labels = self._variants[number].off_hooks
        if labels is None:
            return {}
        if number == 0:
            self._shared_questions = self._questions.add_all(self._steps[0], None, self._hooks)
        asked = {step: [*shared] for step, shared in self._shared_questions.items()}
        own = ask_about_switched_off(self._steps[number], self._steps[0], labels) if labels else {}
        for step, questions in own.items():
            asked.setdefault(str(step), []).extend(self._questions.add(question, number) for question in questions)
        return asked

    def _overview(self, number: int, questions: dict[str, list[int]]) -> Overview:
        steps = self._steps[number]
        views = {pass_id: _view_name(number, pass_id) for pass_id in self._scenes[number]}
        kinds = [self._elsewhere(step).kind for step in steps]
        rows = [step.row for step in steps]
        return make_overview(self._traces[number], rows, views, self._hooks, questions, kinds)

    def _views(self, number: int) -> Iterator[tuple[str, View]]:
        """Yield (name, view) for the picture of each pass of a variant."""
        scenes = self._scenes[number]
        for scene, svg in zip(scenes.values(), self._pictures.indices_of(number), strict=True):
            name = _view_name(number, scene.pass_id)
            yield name, make_pass_view(scene, name, svg, self._hooks, self._reasons)

    def _entries(self) -> Iterable[Entry]:
        """Yield the search entries of the first variant."""
        for pass_id in self._scenes[0]:
            yield from list_pass_entries(make_visible_graph(self._traces[0], pass_id), _view_name(0, pass_id))

    def _switch(self, hook_id: Hashable, hook: Hook) -> Switch:
        rows = {row for _ignored, ids in self._aligned for row, other in ids.items() if other == hook_id}
        return {
            "label": hook.label,
            "on": hook.on,
            "hooks": sorted(self._hooks[row] for row in rows),
        }


def _view_name(number: int, pass_id: int) -> str:
    """Return the name of the picture of one pass of a variant."""
    return f"run{number}/{pass_id}"


def _length_note(trace: TraceData) -> Iterable[str]:
    """Yield a note if ``trace`` has more steps than the player shows."""
    if len(trace.rows) > MAX_STEPS:
        yield _("This trace has {steps} steps; the player shows the first {shown}. trace.steps has them all.").format(
            steps=f"{len(trace.rows):,}", shown=f"{MAX_STEPS:,}"
        )


def _scenes(trace: TraceData, own_hooks: Collection[int], absent_text: str) -> dict[int, Scene]:
    """Return pass id → scene. Hooks that only other variants have show ``absent_text``."""
    pass_ids = sorted({row.pass_id for row in trace.rows[:MAX_STEPS]})
    scenes = {pass_id: Scene.from_trace(trace, pass_id) for pass_id in pass_ids}
    others = {hook for hook in range(len(trace.hook_rows)) if hook not in own_hooks}
    for scene in scenes.values():
        scene.replace_silent_texts(others, absent_text)
    return scenes


class _WordPool:
    """The words of steps without duplicates."""

    def __init__(self) -> None:
        self.words: list[StepWords] = []
        self._indices: dict[str, int] = {}

    def add(self, words: StepWords) -> int:
        """Return the index of ``words``, which are added unless they are there."""
        text = json.dumps(words, sort_keys=True)
        if text not in self._indices:
            self._indices[text] = len(self.words)
            self.words.append(words)
        return self._indices[text]


class _SharedPictures:
    """The pictures of all variants. Passes whose graphs look alike share one picture."""

    def __init__(self, scenes: Sequence[dict[int, Scene]], shown: Sequence[bool], first: int) -> None:
        all_scenes = [scene for by_pass in scenes for scene in by_pass.values()]
        _write_differing_values(all_scenes)
        shared: dict[Any, Scene] = {}
        for by_pass, is_shown in zip(scenes, shown, strict=True):
            for scene in by_pass.values() if is_shown else ():
                shared.setdefault(key_of_look(scene), scene)
        for scene in shared.values():
            scene.reserve_room([other for other in all_scenes if other.pass_id == scene.pass_id])
        self._drawn = [*shared.values()]
        by_look = {look: index for index, look in enumerate(shared)}
        by_shape = {key_of_shape(scene): index for index, scene in enumerate(self._drawn)}
        self._indices = [
            [by_look.get(key_of_look(scene), by_shape.get(key_of_shape(scene), -1)) for scene in by_pass.values()]
            for by_pass in scenes
        ]
        self._first = dict(zip(self._indices[first], scenes[first].values(), strict=True))

    def indices_of(self, number: int) -> list[int]:
        """Return for each pass of a variant the index of its picture, or of one with the same shape; -1 for none."""
        return self._indices[number]

    @property
    def svgs(self) -> list[str]:
        """The SVGs with the final texts of the first variant, and room for the texts of all other passes."""
        return [*map(self.draw, range(len(self._drawn)))]

    def draw(self, index: int) -> str:
        """Draw one of these pictures."""
        texts = final_texts(step_texts(self._first[index])) if index in self._first else {}
        return draw_final(self._drawn[index], texts)

    def layers(self) -> Packed:
        """The SVGs with each layer, packed."""
        return pack_layers(self._drawn)


def _write_differing_values(scenes: Sequence[Scene]) -> None:
    """Make each variant write the tensor values that differ between the variants, unless its steps write there."""
    held = [(scene, _list_tensor_values(scene)) for scene in scenes]
    variants: dict[tuple[int, str], set[str]] = {}
    for scene, texts in held:
        for spot, text in texts.items():
            variants.setdefault((scene.pass_id, spot), set()).add(text)
    for scene, texts in held:
        differing = {spot: text for spot, text in texts.items() if len(variants[scene.pass_id, spot]) > 1}
        if scene.marks:
            first = scene.marks[min(scene.marks)]
            first.texts = {**differing, **first.texts}


def _list_tensor_values(scene: Scene) -> dict[str, str]:
    """List the values of the named tensors: id of the text behind a name, or of a tensor's fact → the value."""
    after_names = {
        part_id("tensor_value", box.id, index): value
        for box in scene.boxes.values()
        for index, (_ignored, value) in enumerate(box.names)
    }
    after_names |= {part_id("tensor_value", row.id, 0): row.value for row in scene.parameters.values()}
    rows = [(box.id, row) for box in scene.boxes.values() for row in box.tensors if row.name]
    return after_names | {
        part_id("data", box, row.output): format_values(scene.trace.value(row.data)) + SPACE for box, row in rows
    }


def key_of_shape(scene: Scene) -> Hashable:
    """Return the boxes, pins and arrows of a scene: two scenes with equal keys have the same ids."""
    boxes = sorted((box.id, box.op, *_list_parts(box)) for box in scene.boxes.values())
    calls = sorted((box.id, *(pin.id for pin in box.pins), *box.nodes) for box in scene.calls.values())
    optimizers = sorted((box.id, *(pin.id for pin in box.pins)) for box in scene.optimizer_boxes.values())
    arrows = [*scene.arrows.values(), *scene.forward_arrows]
    return scene.pass_id, tuple(boxes), tuple(calls), tuple(optimizers), tuple(sorted(arrow.id for arrow in arrows))


def key_of_look(scene: Scene) -> Hashable:
    """Return the shape of a scene and all its names: two scenes with equal keys can share one picture."""
    names = ((node, *_list_element_names(box)) for node, box in sorted(scene.boxes.items()))
    return key_of_shape(scene), tuple(names)


def _list_parts(box: Box) -> Iterator[str]:
    """Yield the ids of the pins and parameters of a box."""
    holders: list[Box | Parameter] = [box, *box.parameters]
    for holder in holders:
        yield from (holder.id, *(pin.id for pin in holder.pins))


def _list_element_names(box: Box) -> Iterator[str]:
    """Yield the names of the tensors and parameters of a box."""
    yield from (name for name, _value in box.names)
    yield from (parameter.name for parameter in box.parameters)
