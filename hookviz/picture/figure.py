"""The picture of a scene for a notebook, a file, or the player."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import graphviz

from hookviz.picture import element_ids as ids
from hookviz.picture.boxes import CallBox
from hookviz.picture.drawing import Drawing, find_direction
from hookviz.picture.rasterizer import render_png
from hookviz.picture.saved_rows import describe_saved
from hookviz.picture.scene import Scene
from hookviz.picture.styles import Style
from hookviz.picture.svg import FilledTemplate, prepare_for_notebook
from hookviz.support.atomic_files import to_path, write_atomically
from hookviz.support.messages import _

FORMATS = ("svg", "png")


class Figure:
    """The picture of a graph, or of one step of a trace: it shows itself in a notebook, and goes into files.

    Args:
        scene: boxes, arrows and marks of a pass.
        step: highlight this step, and show the texts up to it; None shows the texts of all steps.
        tensors: whether each named tensor stands above its node, with its facts.
    """

    def __init__(self, scene: Scene, step: int | None, *, tensors: bool = False) -> None:
        self._scene, self._step, self._tensors = scene, step, tensors

    @cached_property
    def _svg(self) -> str:
        return Drawing(self._scene, Style(self._scene, self._step), tensors=self._tensors).write().svg

    def svg(self) -> str:
        """Return the picture as SVG."""
        return self._svg

    def pipe(self, format: str = "svg") -> bytes:
        """Return the picture as bytes: ``"svg"``, or ``"png"``.

        Raises:
            ValueError: the format is another one.
            ImportError: a PNG needs resvg, which is not installed.
        """
        if format not in FORMATS:
            raise ValueError(
                _("There is no format {format!r} here: choose one of {formats}.").format(
                    format=format, formats=", ".join(FORMATS)
                )
            )
        return render_png(self._svg) if format == "png" else self._svg.encode()

    def render(self, path: str | Path) -> str:
        """Write the picture to a file, whose suffix names the format, and return the file's name.

        An existing file stays unchanged if this fails.

        Raises:
            OSError: the file cannot be written; the message says why.
            ValueError: there is no such format, or the name has a null character.
            ImportError: a PNG needs resvg, which is not installed.
        """
        file = to_path(path)
        if not file.suffix:
            file = file.with_name(f"{file.name}.svg")
        picture = self.pipe(file.suffix[1:])
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(picture, file)
        return str(file)

    @property
    def digraph(self) -> graphviz.Digraph:
        """What is drawn as a ``graphviz.Digraph``, to go on from: boxes with their texts, frames and arrows."""
        return _make_digraph(self._scene, Style(self._scene, self._step))

    def __repr__(self) -> str:
        return _('A picture: Jupyter shows it, and .render("picture.svg") writes it.')

    def _repr_mimebundle_(self, *_ignored: Any, **__: Any) -> dict[str, str]:
        return {"image/svg+xml": prepare_for_notebook(self._svg), "text/plain": repr(self)}


def draw_for_player(scene: Scene, *, tensors: bool = False) -> FilledTemplate:
    """Draw ``scene`` with room for the texts of all steps; the player writes them."""
    return Drawing(scene, Style(scene, None, for_player=True), tensors=tensors).write()


def draw_final(scene: Scene, texts: Mapping[str, str]) -> str:
    """Draw ``scene`` with the given texts (id → text), as it stands at the end where scripts are blocked."""
    style = Style(scene, None, for_player=True)
    style.texts.update(texts)
    return Drawing(scene, style).write().svg


def _make_digraph(scene: Scene, style: Style) -> graphviz.Digraph:
    """Make a graph of the boxes, frames and arrows of a scene, with the texts of the step."""
    rank_direction = "RL" if find_direction(scene) == "left" else "TB"
    graph: graphviz.Digraph = graphviz.Digraph("hookviz", graph_attr={"rankdir": rank_direction})
    graph.attr("node", shape="box", style="rounded")
    for box in scene.calls.values():
        if box.parent not in scene.calls:
            _add_cluster(graph, scene, style, box)
    for box_id in scene.boxes_outside_calls:
        graph.node(box_id, _label(scene, style, box_id))
    for arrow in scene.all_arrows:
        graph.edge(arrow.start, arrow.end, _value_at(style, arrow.id), color=style.outline_color(arrow.id))
    return graph


def _add_cluster(graph: graphviz.Digraph, scene: Scene, style: Style, box: CallBox) -> None:
    with graph.subgraph(name=f"cluster_{box.id}") as inside:
        hooks = [f"{pin.label} {_value_at(style, pin.id)}" for pin in box.pins]
        inside.attr(label=graphviz.escape("\n".join([f"{box.name} {box.kind}", *hooks])), style="rounded")
        for box_id in box.box_ids:
            inside.node(box_id, _label(scene, style, box_id))
        for child in box.children:
            _add_cluster(inside, scene, style, child)


def _value_at(style: Style, owner: str) -> str:
    return style.texts.get(ids.part_id("value", owner), "")


def _label(scene: Scene, style: Style, box_id: str) -> str:
    """Return the texts of a box, one on a line."""
    group = next((group for group in scene.group_boxes if group.id == box_id), None)
    if group is not None:
        return graphviz.escape(f"{group.name}\n{group.description}")
    optimizer = next((box for box in scene.optimizer_boxes.values() if box.id == box_id), None)
    if optimizer is not None:
        return graphviz.escape(
            "\n".join([f"{optimizer.name} {optimizer.kind}", *(pin.label for pin in optimizer.pins)])
        )
    box = scene.boxes[int(box_id[1:])]
    pins = [f"{pin.label} {_value_at(style, pin.id)}" for pin in box.pins]
    lines = [
        *(f"{name}{value}" for name, value in box.names),
        box.op,
        *pins,
        *(f"{saved.name} {describe_saved(scene, saved)}" for saved in box.saved),
        style.texts.get(ids.part_id("gradient", box.id), ""),
    ]
    return graphviz.escape("\n".join(filter(None, lines)))
