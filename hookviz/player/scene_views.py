"""Views: a scene as data for the browser, with its SVG and what each step highlights and writes in it."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from hookviz.picture import element_ids as ids
from hookviz.picture.figure import draw_final, draw_for_player
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, Views
from hookviz.picture.grouping.activity import PassActivity, merge_consecutive
from hookviz.picture.primitives import Pin
from hookviz.picture.scene import Scene
from hookviz.picture.silent_pins import add_silent_pins
from hookviz.picture.svg import FilledTemplate
from hookviz.picture.visible_graph import VisibleGraph, leave_nodes_out, make_visible_graph
from hookviz.player.compression import pack
from hookviz.player.payload import HookPin, Packed, PictureText, SharedPicture, View
from hookviz.player.search_index import Entry, search_entries
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.sentences import format_pass_number

MAX_LAYER_BOXES = 60
"""The most boxes of a picture with layers: larger pictures with layers would not fit a screen."""

Texts = Mapping[str, Mapping[int, str]]
"""Id of a text element → step → its content from that step on."""


def make_view(
    scene: Scene,
    svg: int | SharedPicture,
    hooks: Mapping[int, int],
    reasons: Mapping[int, str],
) -> View:
    """Make the view of ``scene`` with the picture ``svg``.

    Args:
        scene: the scene.
        svg: its picture.
        hooks: hook row → index in ``Content.hooks``.
        reasons: unfired row → why the hook did not fire.
    """
    texts = step_texts(scene)
    steps = steps_by_element(scene)
    return {
        "svg": svg,
        "steps": steps,
        "clicks": _click_steps(scene, texts, steps),
        "texts": _number_texts(scene, texts),
        "related": {str(index): [*mark.related] for index, mark in scene.marks.items() if mark.related},
        "pins": {pin.id: _hook_pin(pin, hooks, reasons) for pin in scene.list_pins()},
        "arrows": {arrow.id: (arrow.start, arrow.end) for arrow in scene.all_arrows if not arrow.is_forward},
        "spans": {box.id: box.spans for box in scene.group_boxes},
        "links": {},
        "stacks": {},
        "visible_steps": merge_consecutive(sorted(scene.marks)),
        "breadcrumbs": [],
    }


def make_pass_view(
    scene: Scene, name: str, svg: int | SharedPicture, hooks: Mapping[int, int], reasons: Mapping[int, str]
) -> View:
    """Make the view ``name`` of a pass that has a single picture; the rest as in ``make_view``."""
    view = make_view(scene, svg, hooks, reasons)
    view["breadcrumbs"] = [(name, pass_title(scene.trace, scene.pass_id))]
    return view


def list_pass_entries(graph: VisibleGraph, view_name: str) -> Iterator[Entry]:
    """Yield the search entries of a pass that has a single picture, the view ``view_name``."""
    views = Views(graph)
    for entry in search_entries(graph.trace, views, PassActivity(views.tree)):
        yield entry._replace(view=view_name)


def step_texts(scene: Scene) -> dict[str, dict[int, str]]:
    """Return the texts that steps write in the picture and in its layer of tensors."""
    texts = scene.collect_texts()
    for box in scene.group_boxes:
        texts.update(box.texts)
    return texts


def _number_texts(scene: Scene, texts: Texts) -> dict[str, list[PictureText]]:
    """Return what the steps write at each text element, sorted by step, with the numbers in it."""

    def numbers(step: int, spot: str) -> list[str]:
        return [*scene.marks[step].numbers.get(spot, ())] if step in scene.marks else []

    return {
        spot: [(step, text, numbers(step, spot)) for step, text in sorted(steps.items())]
        for spot, steps in texts.items()
    }


def final_texts(texts: Texts) -> dict[str, str]:
    """Return the id of each text element → its content after the last step."""
    return {spot: steps[max(steps)] for spot, steps in texts.items() if steps}


def steps_by_element(scene: Scene) -> dict[str, list[int]]:
    """Return the id of each element → the steps in which something happens to it."""
    steps_by_id: dict[str, list[int]] = {name: [step] for name, step in scene.bundle_steps.items()}
    for index, mark in scene.marks.items():
        for spot in dict.fromkeys(mark.elements):
            steps_by_id.setdefault(spot, []).append(index)
    return steps_by_id


def _click_steps(scene: Scene, texts: Texts, steps: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Return the steps of clicks: on an arrow, those that write its value; on a module's plate, those of the module."""
    clicks = {}
    for arrow in scene.all_arrows:
        sending = [step for step in steps.get(arrow.id, ()) if step in texts.get(ids.part_id("value", arrow.id), {})]
        if sending and sending != steps[arrow.id]:
            clicks[arrow.id] = sending
    for call in scene.calls.values():
        plates = [ids.part_id(part, call.id) for part in ("header", "output_plate", "input_plate")]
        clicks |= {plate: steps[call.id] for plate in plates if call.id in steps}
    return clicks


def _hook_pin(pin: Pin, hooks: Mapping[int, int], reasons: Mapping[int, str]) -> HookPin:
    hook: HookPin = {"hook": -1 if pin.hook is None else hooks.get(pin.hook, -1), "value": ids.part_id("value", pin.id)}
    if pin.unfired is not None:
        hook["reason"] = reasons[pin.unfired]
    return hook


def final_picture(scene: Scene) -> str:
    """Return the SVG of ``scene`` in its final state, with room for the longest texts."""
    return draw_final(scene, final_texts(step_texts(scene)))


def pack_layers(scenes: Iterable[Scene]) -> Packed:
    """Return the pictures with the tensors; packed, since they are rarely needed."""
    drawn = list(scenes)
    if sum(scene.box_count for scene in drawn) > MAX_LAYER_BOXES:
        return ""
    return pack([draw_for_player(scene, tensors=True).svg for scene in drawn])


def own_picture(picture: FilledTemplate) -> SharedPicture:
    """Return a picture that others may share: its pieces, between them the indices of the fillings, and these."""
    pieces: list[str | int] = [picture.pieces[0]]
    for index, piece in enumerate(picture.pieces[1:]):
        pieces += [index, piece]
    return {"pieces": pieces, "fill": picture.fill}


class SceneViews:
    """The pictures of a small trace: one for each pass, with all its boxes. ``0/`` is that of pass 0."""

    leave_nodes_out = False
    """These pictures show all nodes of their passes."""

    def __init__(self, trace: TraceData, reasons: Mapping[int, str]) -> None:
        self._trace, self._reasons = trace, reasons
        self._graphs: dict[int, VisibleGraph] = {}

    @property
    def are_small(self) -> bool:
        """Whether nobody has to take in too many boxes at once in any of the pictures."""
        graphs = (self._graph(pass_id) for pass_id in self._trace.lookup.passes)
        return all(graph.box_count + len(graph.joined) <= MAX_VISIBLE_BOXES for graph in graphs)

    def _graph(self, pass_id: int) -> VisibleGraph:
        """Return the graph of a pass, without most of the nodes that it did not reach."""
        if pass_id not in self._graphs:
            self._graphs[pass_id] = make_visible_graph(self._trace, pass_id)
        return self._graphs[pass_id]

    @cached_property
    def _scenes(self) -> dict[str, Scene]:
        return {f"{pass_id}/": self._make_scene(self._whole_graph(pass_id)) for pass_id in self._trace.lookup.passes}

    def _whole_graph(self, pass_id: int) -> VisibleGraph:
        """Return the graph of a pass with all nodes, as its picture shows it."""
        graph = self._graph(pass_id)
        is_whole = not leave_nodes_out(self._trace, [*graph.nodes, *graph.boxes])
        return graph if is_whole else make_visible_graph(self._trace, pass_id, whole=True)

    def _make_scene(self, graph: VisibleGraph) -> Scene:
        scene = Scene.from_graph(graph)
        add_silent_pins(scene, self._reasons)
        return scene

    @property
    def top_views(self) -> list[str]:
        """The name of the picture of each pass."""
        return [f"{pass_id}/" for pass_id in self._trace.lookup.passes]

    initial_views = top_views
    """The names of the pictures that are sent first."""

    @cached_property
    def svgs(self) -> list[str]:
        """The SVGs of these pictures in their final state."""
        return [final_picture(scene) for scene in self._scenes.values()]

    @cached_property
    def layers(self) -> Packed:
        """The SVGs with each layer, packed."""
        return pack_layers(self._scenes.values())

    def view(self, name: str, hooks: Mapping[int, int]) -> View:
        """Return a picture and what it shows at each step.

        Raises:
            KeyError: there is no picture ``name``.
        """
        return make_pass_view(self._scenes[name], name, self.top_views.index(name), hooks, self._reasons)

    def views_of(self, pass_id: int) -> list[str]:
        """Return the name of the picture of one pass."""
        return [f"{pass_id}/"]

    def entries(self, pass_id: int) -> Iterator[Entry]:
        """Yield the search entries of one pass."""
        return list_pass_entries(self._graph(pass_id), f"{pass_id}/")


def pass_title(trace: TraceData, pass_id: int) -> str:
    """Return the title of a pass: its number, unless it is the only one that ran."""
    if len(trace.lookup.passes) > 1 or trace.lacks_passes:
        return _("Pass {number}").format(number=format_pass_number(trace, pass_id))
    return _("the whole pass")
