"""Scenes as views: what the browser is given of a picture, and of what each step marks and writes in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from hookviz.picture import element_ids as ids
from hookviz.picture.dot_source import build_figure
from hookviz.picture.grouping import Views
from hookviz.picture.grouping.activity import PassActivity, merge_consecutive
from hookviz.picture.inline_svg import fill_texts
from hookviz.picture.scene import Scene
from hookviz.picture.tensor_layer import extract_grads
from hookviz.player.compression import pack
from hookviz.player.payload import Packed, Pin, SharedPicture, View
from hookviz.player.search_index import Entry, entries
from hookviz.player.wording import Wording
from hookviz.support.messages import say
from hookviz.support.messages.text import Message
from hookviz.trace import TraceData

LARGEST = 60
"""The layers of tensors and nodes are drawn of no more boxes than this: beyond, one would only scroll."""

Texts = Mapping[str, Mapping[int, str]]
"""Id of a text → step → what it says from then on."""


def view_of(scene: Scene, svg: int | str | SharedPicture, hooks: Mapping[int, int], wording: Wording) -> View:
    """What is shown in the picture of ``scene``; ``hooks`` gives the place of a hook's row in ``Content.hooks``."""
    texts = written(scene)
    steps = marked_steps(scene)
    return {
        "svg": svg,
        "steps": steps,
        "clicks": _clicks(scene, texts, steps),
        "texts": sent_texts(texts, wording),
        "near": {str(index): [*mark.related] for index, mark in scene.marks.items() if mark.related},
        "pins": {pin.id: _pin(pin.id, pin.hook, hooks) for pin in scene.list_pins()},
        "spans": {box.id: merge_consecutive(box.steps) for box in scene.group_boxes},
        "doors": {},
        "own": merge_consecutive(sorted(scene.marks)),
        "trail": [],
    }


def written(scene: Scene) -> dict[str, dict[int, str]]:
    """What steps write in the picture, and in the layer of tensors."""
    texts = scene.collect_texts()
    for box in scene.group_boxes:
        texts.update(box.texts)
    for index, mark in scene.marks.items():
        for spot, text in extract_grads(mark.texts).items():
            texts.setdefault(spot, {})[index] = text
    return texts


def sent_texts(texts: Texts, wording: Wording) -> dict[str, list[tuple[int, Message]]]:
    """The texts as they travel."""
    return {spot: [(step, wording(text)) for step, text in sorted(there.items())] for spot, there in texts.items()}


def ends(texts: Texts) -> dict[str, str]:
    """Id of a text → what it says in the end."""
    return {spot: there[max(there)] for spot, there in texts.items() if there}


def marked_steps(scene: Scene) -> dict[str, list[int]]:
    """Id of what is seen → the steps that are about it."""
    found: dict[str, list[int]] = {name: [step] for name, step in scene.bundle_steps.items()}
    for index, mark in scene.marks.items():
        for spot in dict.fromkeys(mark.elements):
            found.setdefault(spot, []).append(index)
    return found


def _clicks(scene: Scene, texts: Texts, steps: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """A click on an arrow leads to the steps that put a value on it; one on a module's plate to those of the module."""
    clicks = {}
    for arrow in scene.all_arrows:
        sending = [step for step in steps.get(arrow.id, ()) if step in texts.get(ids.value_id(arrow.id), {})]
        if sending and sending != steps[arrow.id]:
            clicks[arrow.id] = sending
    for call in scene.calls.values():
        plates = (ids.upper_plate_id(call.id), ids.lower_plate_id(call.id))
        clicks |= {plate: steps[call.id] for plate in plates if call.id in steps}
    return clicks


def _pin(name: str, hook: int | None, hooks: Mapping[int, int]) -> Pin:
    return {"hook": -1 if hook is None else hooks.get(hook, -1), "value": ids.value_id(name)}


def final_picture(scene: Scene) -> str:
    """The picture for the player, with all texts at their longest, as the pass leaves them."""
    return fill_texts(build_figure(scene, None, for_player=True).svg(), ends(written(scene)))


def layers(scenes: Iterable[Scene]) -> Packed:
    """All pictures with the lists of pre-hooks, and with the tensors besides: packed, since few ask for them."""
    drawn = list(scenes)
    if sum(scene.box_count for scene in drawn) > LARGEST:
        return ""
    both = [{"pre_hooks": True}, {"tensors": True}]
    return pack([[build_figure(scene, None, for_player=True, **layer).svg() for scene in drawn] for layer in both])


class SceneViews:
    """The pictures of a trace of few boxes: one for each pass, with all that is in it."""

    overview = ""
    """There is no picture of all passes."""
    group_names: Sequence[str] = ()
    """Passes are not grouped."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self._scenes = {f"{pass_id}/": Scene.from_trace(trace, pass_id) for pass_id in trace.lookup.passes}

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
        return layers(self._scenes.values())

    def view(self, name: str, hooks: Mapping[int, int], wording: Wording) -> View:
        """One picture, and what is shown in it.

        Raises:
            KeyError: there is none of that name.
        """
        scene = self._scenes[name]
        view = view_of(scene, self.tops.index(name), hooks, wording)
        view["trail"] = [(name, wording(pass_title(scene.pass_id, len(self._scenes))))]
        return view

    def views_of(self, pass_id: int) -> list[str]:
        """The names of the pictures of one pass."""
        return [f"{pass_id}/"]

    def entries(self, pass_id: int) -> Iterator[Entry]:
        """What can be searched for in one pass: all of it is in one picture."""
        own = Views(self._trace, pass_id)
        for entry in entries(self._trace, own, PassActivity(own.tree)):
            yield entry._replace(view=f"{pass_id}/")


def pass_title(pass_id: int, count: int) -> str:
    """What one of ``count`` passes is called."""
    return say("fold.pass", number=f"{pass_id + 1:,}") if count > 1 else say("fold.whole")
