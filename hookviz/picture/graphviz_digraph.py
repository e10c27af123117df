"""``graphviz.Digraph`` that draws itself with the Graphviz library of pygraphviz: no ``dot`` program is needed."""

import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path
from typing import Any

import graphviz

from hookviz.picture import element_ids as ids
from hookviz.picture.inline_svg import prepare_for_notebook
from hookviz.picture.layout import NoPictureError, draw_source, make_sentence_svg
from hookviz.picture.rasterizer import render_png
from hookviz.support.atomic_files import to_path, write_atomically
from hookviz.support.messages import _
from hookviz.support.printable import describe_type

_SVG = "http://www.w3.org/2000/svg"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"

FONT = "Helvetica, Arial, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"
"""The fonts in an SVG; the layout measures with a wider one (``dot_source.LAYOUT_FONT``), so that all labels fit."""


class Rendered(graphviz.Digraph):
    """A ``graphviz.Digraph`` that draws itself without a system Graphviz: in Jupyter, to bytes and to files."""

    def pipe(self, format: str | None = None, *, engine: str | None = None, encoding: str | None = None) -> Any:  # type: ignore[override]
        """Return the picture as bytes, or as text if ``encoding`` is given.

        Raises:
            ValueError: the format does not exist, or Graphviz cannot read the graph.
            NoPictureError: Graphviz crashed on the graph with every method, or cannot run here.
            ImportError: a PNG needs resvg, which is not installed.
        """
        chosen = format or self.format
        if chosen == "png":
            return render_png(self.finish(draw_source(self.source, "svg", engine or self.engine)).decode())
        picture = draw_source(self.source, chosen, engine or self.engine)
        if chosen == "svg":
            picture = self.finish(picture)
        return picture.decode(encoding) if encoding else picture

    def _repr_mimebundle_(self, *_ignored: Any, **__: Any) -> dict[str, bytes | str]:
        return {"image/svg+xml": prepare_for_notebook(self.svg()), "text/plain": repr(self)}

    def svg(self) -> str:
        """Return the picture for a page or a notebook; if Graphviz fails, an SVG with a sentence that says so."""
        try:
            return str(self.pipe("svg", encoding="utf-8"))
        except NoPictureError as error:
            return make_sentence_svg(str(error))

    def finish(self, svg: bytes) -> bytes:
        """Return Graphviz's SVG with final changes; none here."""
        return svg

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
            NoPictureError: Graphviz crashed on the graph with every method, or cannot run here.
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


def tidy_svg(svg: bytes) -> bytes:
    """Return Graphviz's SVG with our ids and CSS classes, and without titles, links and hidden texts.

    Graphviz gives a table cell an id only if it is a link. So every cell is a link, which is unwrapped here.
    """
    ET.register_namespace("", _SVG)
    root = ET.fromstring(svg)
    root.set("class", "hv-svg")
    _drop_elements(root, "title")
    for group in list(root.iter(f"{{{_SVG}}}g")):
        _unwrap_link(group)
    _raise_plates(root)
    for group in root.iter(f"{{{_SVG}}}g"):
        _merge_equal_paths(group)
        _set_classes(group)
    _drop_elements(root, "text", fill="transparent")
    for text in root.iter(f"{{{_SVG}}}text"):
        _drop_default_attributes(text)
        text.text = (text.text or "").rstrip()
    root.set("font-family", FONT)
    for element in root.iter():
        element.tail = None  # it contains only line ends
    background = root.find(f"{{{_SVG}}}g/{{{_SVG}}}polygon")
    if background is not None:
        background.set("class", "hv-background")
    with suppress(KeyError):
        del root.attrib["width"], root.attrib["height"]
    return ET.tostring(root, encoding="unicode").encode()


def _drop_default_attributes(text: ET.Element) -> None:
    """Drop attributes that have their default value: a page has many texts, so that these would add up."""
    for name in ("font-family", _SPACE):
        text.attrib.pop(name, None)
    if text.get("text-anchor") == "start":
        del text.attrib["text-anchor"]
    text.set("font-size", text.get("font-size", "14").removesuffix(".00"))


def _drop_elements(root: ET.Element, tag: str, **attributes: str) -> None:
    """Remove all elements with this tag and these attributes."""
    for parent in root.iter():
        for child in parent.findall(f"{{{_SVG}}}{tag}"):
            if attributes.items() <= child.attrib.items():
                parent.remove(child)


def _unwrap_link(group: ET.Element) -> None:
    """Replace ``<g id="a_n3-p0"><a>…</a></g>`` by ``<g id="n3-p0">…</g>``."""
    name = group.get("id", "")
    link = group.find(f"{{{_SVG}}}a")
    if name.startswith("a_") and link is not None:
        group.set("id", name.removeprefix("a_"))
        group.remove(link)
        group.extend(list(link))


def _raise_plates(root: ET.Element) -> None:
    """Move the plates of module calls above the arrows, which pass behind them as through a gate."""
    drawing = root.find(f"{{{_SVG}}}g")
    if drawing is None:
        return
    for group in drawing.findall(f"{{{_SVG}}}g"):
        for plate in [part for part in group if ids.PLATE_ID.fullmatch(part.get("id", ""))]:
            group.remove(plate)
            drawing.append(plate)
        if not len(group):
            drawing.remove(group)


def _merge_equal_paths(group: ET.Element) -> None:
    """Merge the two paths of a filled and outlined cell, which Graphviz draws below and above its content."""
    first: dict[str | None, ET.Element] = {}
    for path in group.findall(f"{{{_SVG}}}path"):
        under = first.setdefault(path.get("d"), path)
        if under is not path:
            under.attrib.update({k: v for k, v in path.attrib.items() if k.startswith("stroke")})
            group.remove(path)


def _set_classes(group: ET.Element) -> None:
    """Set the CSS classes of an element of the picture according to its id."""
    name = group.get("id", "")
    if ids.ARROW_ID.fullmatch(name):
        _set_class(group.find(f"{{{_SVG}}}path"), "hv-line")
        _set_class(group.find(f"{{{_SVG}}}polygon"), "hv-head")
    elif ids.BOX_ID.fullmatch(name):
        _set_class(group.find(f"{{{_SVG}}}path"), "hv-box")
    elif ids.PLATE_ID.fullmatch(name):
        group.set("class", "hv-plate")
        _set_class(group.find(f"{{{_SVG}}}path"), "hv-plate-box")
    elif ids.PIN_ID.fullmatch(name):
        retain = " hv-retain" if ids.is_retain_pin(name) else ""
        group.set("class", f"hv-pin{retain}")
        _set_class(group.find(f"{{{_SVG}}}path"), "hv-pin-box")
        _set_class(group.find(f"{{{_SVG}}}polygon"), "hv-pin-box")
    elif ids.is_tensor_fact(name):
        group.set("class", "hv-fact")
    else:
        _set_text_classes(group, name)


def _set_text_classes(group: ET.Element, name: str) -> None:
    """Set the CSS classes of the texts of a cell, and move its id to its text if steps write that."""
    kind = ids.text_kind(name)
    if kind is None:
        return
    del group.attrib["id"]
    texts = group.findall(f"{{{_SVG}}}text")
    for text in texts:
        text.set("class", kind.css_class)
    if kind.css_class == "hv-name" and len(texts) > 1:  # the second text is the tensor's value
        texts[1].set("class", "hv-data")
        texts[1].set("id", ids.tensor_value_id_beside(name))
    if texts and kind.has_id:
        texts[0].set("id", name)


def _set_class(element: ET.Element | None, css_class: str) -> None:
    if element is not None:
        element.set("class", css_class)
