"""``graphviz.Digraph`` that draws itself with the Graphviz library of pygraphviz: no ``dot`` program is needed."""

from pathlib import Path
from typing import Any

import graphviz

from hookviz.picture.graphviz_drawing import NoPictureError, draw_source, make_sentence_svg
from hookviz.picture.inline_svg import prepare_for_notebook
from hookviz.picture.rasterizer import render_png
from hookviz.support.atomic_files import to_path, write_atomically
from hookviz.support.messages import _
from hookviz.support.printable import describe_type


class Rendered(graphviz.Digraph):
    """A ``graphviz.Digraph`` that draws itself without a system Graphviz: in Jupyter, to bytes and to files."""

    def pipe(self, format: str | None = None, *, engine: str | None = None, encoding: str | None = None) -> Any:  # type: ignore[override]
        """Return the picture as bytes, or as text if ``encoding`` is given.

        Raises:
            ValueError: the format does not exist, or Graphviz cannot read the graph.
            NoPictureError: Graphviz died of the graph, or cannot run here.
            ImportError: a PNG needs resvg, which is not installed.
        """
        chosen = format or self.format
        if chosen == "png":
            return render_png(draw_source(self.source, "svg", engine or self.engine).decode())
        picture = draw_source(self.source, chosen, engine or self.engine)
        return picture.decode(encoding) if encoding else picture

    def _repr_mimebundle_(self, *_ignored: Any, **__: Any) -> dict[str, bytes | str]:
        return {"image/svg+xml": prepare_for_notebook(self.svg()), "text/plain": repr(self)}

    def svg(self) -> str:
        """Return the picture for a page or a notebook; if Graphviz fails, an SVG with a sentence that says so."""
        try:
            return str(self.pipe("svg", encoding="utf-8"))
        except NoPictureError as error:
            return make_sentence_svg(str(error))

    def render(
        self,
        filename: str | Path | None = None,
        directory: str | Path | None = None,
        *,
        format: str | None = None,
        outfile: str | Path | None = None,
        engine: str | None = None,
    ) -> str:
        """Write the picture to a file and return its name: ``render("c.png")`` or ``render("c", format="svg")``.

        An existing file stays unchanged if this fails.

        Raises:
            OSError: the file cannot be written; the message says why.
            ValueError: the format does not exist, Graphviz cannot read the graph, or the name has a null character.
            NoPictureError: Graphviz died of the graph, or cannot run here.
            ImportError: a PNG needs resvg, which is not installed.
        """
        name = to_path(outfile or filename or self.name or "hookviz")
        path = to_path(to_path(directory or "") / name)
        suffix = format or path.suffix[1:] or self.format
        if path.suffix[1:] != suffix:
            path = path.with_name(f"{path.name}.{suffix}")
        picture = self.pipe(suffix, engine=engine)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(picture, path)
        return str(path)


def render(drawing: graphviz.Digraph) -> Rendered:
    """Convert a ``graphviz.Digraph``, such as that of ``torchviz.make_dot``, so that it needs no system Graphviz.

    Raises:
        TypeError: ``drawing`` is not a ``graphviz.Digraph``.

    >>> import graphviz, hookviz as hv
    >>> drawing = graphviz.Digraph()
    >>> drawing.edge("loss", "weight")
    >>> b"weight" in hv.render(drawing).pipe("svg")
    True
    """
    if not isinstance(drawing, graphviz.Digraph):
        raise TypeError(
            _("render() takes a graphviz.Digraph, such as torchviz.make_dot(loss) gives; this is {kind}.").format(
                kind=describe_type(drawing)
            )
        )
    rendered: Rendered = Rendered(drawing.name, comment=drawing.comment, format="svg", body=list(drawing.body))
    rendered.strict, rendered.engine = drawing.strict, drawing.engine
    for attributes in ("graph_attr", "node_attr", "edge_attr"):
        getattr(rendered, attributes).update(getattr(drawing, attributes))
    return rendered
