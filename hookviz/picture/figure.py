"""The picture of a scene for a notebook, a file, or the player."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from hookviz.picture.drawing import Drawing
from hookviz.picture.inline_svg import prepare_for_notebook
from hookviz.picture.rasterizer import render_png
from hookviz.picture.scene import Scene
from hookviz.picture.styles import Style
from hookviz.picture.svg_writer import FilledTemplate
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
