"""``graphviz.Digraph`` that draws itself with the Graphviz library of pygraphviz: no ``dot`` program is needed.

If Graphviz dies of the curves of a graph, such as torchviz's, it is drawn with straight arrows.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import graphviz

from hookviz.picture.graphviz_client import Answer, Job, NoWorkerError, WorkerDiedError, draw_in_worker
from hookviz.picture.rasterizer import render_png
from hookviz.picture.svg import prepare_for_notebook
from hookviz.support.atomic_files import to_path, write_atomically
from hookviz.support.messages import N_, _
from hookviz.support.printable import describe_type

_UNKNOWN_FORMAT = N_("There is no format {format!r} here: choose one of {formats}.")

_UNREADABLE_GRAPH = N_("Graphviz could not read this graph: {why}")

_GRAPHVIZ_FAULTS = {
    "system": N_("There is no picture: Graphviz could not be run on this graph ({why})."),
    "import": N_("There is no picture: pygraphviz could not be loaded ({why})."),
}
"""Fault in the worker → the sentence; a worker that cannot start has sentences of its own."""

FORMATS = ("svg", "png", "dot", "json", "plain", "xdot")
"""The formats of a picture: Graphviz writes all but ``png``, which is made from its SVG."""

STRAIGHT_ARROWS = {"splines": "line", "nslimit": "1", "mclimit": "0.1"}
"""Attributes of a graph that Graphviz draws in less time and memory."""


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
        """What a notebook shows: the picture; if Graphviz fails, the sentence that says so."""
        try:
            svg: str = self.pipe("svg", encoding="utf-8")
        except NoPictureError as error:
            return {"text/plain": str(error)}
        return {"image/svg+xml": prepare_for_notebook(svg), "text/plain": repr(self)}

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


class NoPictureError(RuntimeError):
    """Graphviz cannot draw this graph, or cannot run here at all; the text says why."""


def draw_source(source: str, format: str, engine: str = "dot") -> bytes:
    """Draw DOT source, and return the picture in the given format.

    Raises:
        ValueError: the format does not exist, or Graphviz cannot read the source.
        NoPictureError: Graphviz died of the source, also with straight arrows, or cannot run here.
    """
    if format not in FORMATS:
        raise ValueError(_(_UNKNOWN_FORMAT).format(format=format, formats=", ".join(FORMATS)))
    job = Job(source, format, engine)
    for tried in (job, replace(job, attributes=STRAIGHT_ARROWS)):
        try:
            return _read_answer(job, draw_in_worker(tried))
        except NoWorkerError as error:
            raise NoPictureError(str(error)) from None
        except WorkerDiedError:
            continue
    raise NoPictureError(_("There is no picture: Graphviz crashed on this graph, ran out of memory or took too long."))


def _read_answer(job: Job, answer: Answer) -> bytes:
    """Return the picture in the worker's answer, or raise its error as a sentence."""
    message = answer.content.decode(errors="replace") if answer.error else ""
    match answer.error:
        case "":
            return answer.content
        case "read":
            raise ValueError(_(_UNREADABLE_GRAPH).format(why=message))
        case "engine":
            why = _("there is no layout engine {engine}").format(engine=job.engine)
            raise ValueError(_(_UNREADABLE_GRAPH).format(why=why))
        case "format":
            raise ValueError(_(_UNKNOWN_FORMAT).format(format=job.format, formats=", ".join(FORMATS)))
        case _:
            raise NoPictureError(_(_GRAPHVIZ_FAULTS[answer.error]).format(why=message))
