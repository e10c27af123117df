"""Scenes as views: what the browser is given of a picture, and of what each step marks and writes in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from hookviz.picture import element_ids as ids
from hookviz.picture.dot_source import dot
from hookviz.picture.grouping import Views
from hookviz.picture.grouping.activity import Activity, spans
from hookviz.picture.inline_svg import finished
from hookviz.picture.scene import Scene
from hookviz.picture.tensor_layer import grads
from hookviz.player.compression import pack
from hookviz.player.payload import HookPin, Packed, SharedPicture, View
from hookviz.player.search_index import Entry, search_entries
from hookviz.player.wording import Wording
from hookviz.support.messages import say
from hookviz.support.messages.text import Message
from hookviz.trace import TraceData

MAX_LAYER_BOXES = 60
"""The layers of tensors and nodes are drawn of no more boxes than this: beyond, one would only scroll."""

Texts = Mapping[str, Mapping[int, str]]
"""Id of a text → step → what it says from then on."""


def make_view(scene: Scene, svg: int | str | SharedPicture, hooks: Mapping[int, int], wording: Wording) -> View:
    """What is shown in the picture of ``scene``; ``hooks`` gives the place of a hook's row in ``Content.hooks``."""
    texts = step_texts(scene)
    steps = steps_by_element(scene)
    return {
        "svg": svg,
        "steps": steps,
        "clicks": _click_steps(scene, texts, steps),
        "texts": text_messages(texts, wording),
        "related": {str(index): [*mark.near] for index, mark in scene.marks.items() if mark.near},
        "pins": {pin.id: _hook_pin(pin.id, pin.hook, hooks) for pin in scene.pins()},
        "spans": {box.id: spans(box.steps) for box in scene.folds},
        "links": {},
        "visible_steps": spans(sorted(scene.marks)),
        "breadcrumbs": [],
    }


def step_texts(scene: Scene) -> dict[str, dict[int, str]]:
    """What steps write in the picture, and in the layer of tensors."""
    texts = scene.texts()
    for box in scene.folds:
        texts.update(box.texts)
    for index, mark in scene.marks.items():
        for spot, text in grads(mark.texts).items():
            texts.setdefault(spot, {})[index] = text
    return texts


def text_messages(texts: Texts, wording: Wording) -> dict[str, list[tuple[int, Message]]]:
    """The texts as they travel."""
    return {spot: [(step, wording(text)) for step, text in sorted(there.items())] for spot, there in texts.items()}


def final_texts(texts: Texts) -> dict[str, str]:
    """Id of a text → what it says in the end."""
    return {spot: there[max(there)] for spot, there in texts.items() if there}


def steps_by_element(scene: Scene) -> dict[str, list[int]]:
    """Id of what is seen → the steps that are about it."""
    found: dict[str, list[int]] = {name: [step] for name, step in scene.sent.items()}
    for index, mark in scene.marks.items():
        for spot in dict.fromkeys(mark.on):
            found.setdefault(spot, []).append(index)
    return found


def _click_steps(scene: Scene, texts: Texts, steps: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """A click on an arrow leads to the steps that put a value on it; one on a module's plate to those of the module."""
    clicks = {}
    for arrow in scene.ways:
        sending = [step for step in steps.get(arrow.id, ()) if step in texts.get(ids.value(arrow.id), {})]
        if sending and sending != steps[arrow.id]:
            clicks[arrow.id] = sending
    for call in scene.calls.values():
        plates = (ids.upper_plate(call.id), ids.lower_plate(call.id))
        clicks |= {plate: steps[call.id] for plate in plates if call.id in steps}
    return clicks


def _hook_pin(name: str, hook: int | None, hooks: Mapping[int, int]) -> HookPin:
    return {"hook": -1 if hook is None else hooks.get(hook, -1), "value": ids.value(name)}


def final_picture(scene: Scene) -> str:
    """The picture for the player, with all texts at their longest, as the pass leaves them."""
    return finished(dot(scene, None, final=True).svg(), final_texts(step_texts(scene)))


def pack_layers(scenes: Iterable[Scene]) -> Packed:
    """All pictures with the lists of pre-hooks, and with the tensors besides: packed, since few ask for them."""
    drawn = list(scenes)
    if sum(scene.shown for scene in drawn) > MAX_LAYER_BOXES:
        return ""
    both = [{"nodes": True}, {"tensors": True}]
    return pack([[dot(scene, None, final=True, **layer).svg() for scene in drawn] for layer in both])


class SceneViews:
    """The pictures of a trace of few boxes: one for each pass, with all that is in it."""

    overview = ""
    """There is no picture of all passes."""
    group_names: Sequence[str] = ()
    """Passes are not grouped."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self._scenes = {f"{pass_id}/": Scene.of(trace, pass_id) for pass_id in trace.lookup.passes}

    @property
    def tops(self) -> list[str]:
        """The names of the outermost pictures, one for each pass: there are no others."""
        return [*self._scenes]

    opening = tops
    """The names of the pictures that are there from the start."""

    @cached_property
    def svgs(self) -> list[str]:
        """The pictures that are there from the start."""
        return [final_picture(scene) for scene in self._scenes.values()]

    @cached_property
    def layers(self) -> Packed:
        """The same with what can be switched on in them."""
        return pack_layers(self._scenes.values())

    def view(self, name: str, hooks: Mapping[int, int], wording: Wording) -> View:
        """One picture, and what is shown in it.

        Raises:
            KeyError: there is none of that name.
        """
        scene = self._scenes[name]
        view = make_view(scene, self.tops.index(name), hooks, wording)
        view["breadcrumbs"] = [(name, wording(pass_title(scene.pass_id, len(self._scenes))))]
        return view

    def views_of(self, pass_id: int) -> list[str]:
        """The names of the pictures of one pass."""
        return [f"{pass_id}/"]

    def entries(self, pass_id: int) -> Iterator[Entry]:
        """What can be searched for in one pass: all of it is in one picture."""
        own = Views(self._trace, pass_id)
        for entry in search_entries(self._trace, own, Activity(own.tree)):
            yield entry._replace(view=f"{pass_id}/")


def pass_title(pass_id: int, count: int) -> str:
    """What one of ``count`` passes is called."""
    return say("fold.pass", number=f"{pass_id + 1:,}") if count > 1 else say("fold.whole")
