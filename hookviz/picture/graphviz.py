"""Drawings that draw themselves through the Graphviz library that pygraphviz carries: no ``dot`` program is needed."""

import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path
from typing import Any

import graphviz

from hookviz.picture import element_ids as ids
from hookviz.picture.inline_svg import prepare_for_notebook
from hookviz.picture.layout import NoPictureError, draw_source, sentence_svg
from hookviz.support.atomic_files import path_of, write_atomically
from hookviz.support.messages import say
from hookviz.support.printable import kind_of

_SVG = "http://www.w3.org/2000/svg"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"

FONT = "Helvetica, Arial, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"
"""Shown in SVG; the layout measures with a wider one (``dot.py``), so that labels have room in any of these."""


class Rendered(graphviz.Digraph):
    """A ``graphviz.Digraph`` that draws itself without a system Graphviz: in Jupyter, to bytes and to files."""

    def pipe(self, format: str | None = None, *, engine: str | None = None, encoding: str | None = None) -> Any:  # type: ignore[override]
        """The picture as bytes, or as text when ``encoding`` is given.

        Raises:
            ValueError: there is no such format, or Graphviz cannot read the graph.
            NoPictureError: Graphviz crashed on the graph, however it was drawn, or cannot run here.
        """
        picture = draw_source(self.source, format or self.format, engine or self.engine)
        if (format or self.format) == "svg":
            picture = self.finish(picture)
        return picture.decode(encoding) if encoding else picture

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, bytes | str]:
        return {"image/svg+xml": prepare_for_notebook(self.svg()), "text/plain": repr(self)}

    def svg(self) -> str:
        """The picture for a page or a notebook; where Graphviz fails, a sentence in its place that says so."""
        try:
            return str(self.pipe("svg", encoding="utf-8"))
        except NoPictureError as error:
            return sentence_svg(str(error))

    def finish(self, svg: bytes) -> bytes:
        """A last touch to the SVG that Graphviz made."""
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

        A file that is there stays as it is if this fails.

        Raises:
            OSError: the file cannot be written; the message says why.
            ValueError: there is no such format, Graphviz cannot read the graph, or the name contains a null character.
            NoPictureError: Graphviz crashed on the graph, however it was drawn, or cannot run here.
        """
        name = path_of(outfile or filename or self.name or "hookviz")
        path = path_of(path_of(directory or "") / name)
        suffix = format or path.suffix[1:] or self.format
        if path.suffix[1:] != suffix:
            path = path.with_name(f"{path.name}.{suffix}")
        picture = self.pipe(suffix, engine=engine)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(picture, path)
        return str(path)


def render(drawing: graphviz.Digraph) -> Rendered:
    """Any ``graphviz.Digraph``, such as ``torchviz.make_dot`` gives, made to draw itself without a system Graphviz.

    Raises:
        TypeError: ``drawing`` is no ``graphviz.Digraph``.

    >>> drawing = graphviz.Digraph()
    >>> drawing.edge("loss", "weight")
    >>> b"weight" in render(drawing).pipe("svg")
    True
    """
    if not isinstance(drawing, graphviz.Digraph):
        raise TypeError(say("error.render.type", kind=kind_of(drawing)))
    rendered: Rendered = Rendered(drawing.name, comment=drawing.comment, format="svg", body=list(drawing.body))
    rendered.strict, rendered.engine = drawing.strict, drawing.engine
    for attributes in ("graph_attr", "node_attr", "edge_attr"):
        getattr(rendered, attributes).update(getattr(drawing, attributes))
    return rendered


def tidy_svg(svg: bytes) -> bytes:
    """Graphviz's SVG with our ids and classes: links and titles become plain groups, colours can come from CSS.

    Graphviz gives a table cell an id only when it is a link; so every cell is one, and here stops being one.
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
        element.tail = None  # nothing but line ends
    background = root.find(f"{{{_SVG}}}g/{{{_SVG}}}polygon")
    if background is not None:
        background.set("class", "hv-background")
    with suppress(KeyError):
        del root.attrib["width"], root.attrib["height"]
    return ET.tostring(root, encoding="unicode").encode()


def _drop_default_attributes(text: ET.Element) -> None:
    """Leave out what goes without saying: there are many texts, and each is in every page."""
    for name in ("font-family", _SPACE):
        text.attrib.pop(name, None)
    if text.get("text-anchor") == "start":
        del text.attrib["text-anchor"]
    text.set("font-size", text.get("font-size", "14").removesuffix(".00"))


def _drop_elements(root: ET.Element, tag: str, **attributes: str) -> None:
    for parent in root.iter():
        for child in parent.findall(f"{{{_SVG}}}{tag}"):
            if attributes.items() <= child.attrib.items():
                parent.remove(child)


def _unwrap_link(group: ET.Element) -> None:
    """``<g id="a_n3-p0"><a>…</a></g>`` becomes ``<g id="n3-p0">…</g>``."""
    name = group.get("id", "")
    link = group.find(f"{{{_SVG}}}a")
    if name.startswith("a_") and link is not None:
        group.set("id", name.removeprefix("a_"))
        group.remove(link)
        group.extend(list(link))


def _raise_plates(root: ET.Element) -> None:
    """The plates of module calls lie above the arrows, which pass behind them as through a gate."""
    drawing = root.find(f"{{{_SVG}}}g")
    if drawing is None:
        return
    for group in drawing.findall(f"{{{_SVG}}}g"):
        for plate in [part for part in group if ids.PLATE.fullmatch(part.get("id", ""))]:
            group.remove(plate)
            drawing.append(plate)
        if not len(group):
            drawing.remove(group)


def _merge_equal_paths(group: ET.Element) -> None:
    """A filled and outlined cell is drawn twice, under and over what is in it; once is enough."""
    first: dict[str | None, ET.Element] = {}
    for path in group.findall(f"{{{_SVG}}}path"):
        under = first.setdefault(path.get("d"), path)
        if under is not path:
            under.attrib.update({k: v for k, v in path.attrib.items() if k.startswith("stroke")})
            group.remove(path)


def _set_classes(group: ET.Element) -> None:
    name = group.get("id", "")
    if ids.ARROW.fullmatch(name):
        _set_class(group.find(f"{{{_SVG}}}path"), "hv-line")
        _set_class(group.find(f"{{{_SVG}}}polygon"), "hv-head")
    elif ids.BOX.fullmatch(name):
        _set_class(group.find(f"{{{_SVG}}}path"), "hv-box")
    elif ids.PLATE.fullmatch(name):
        group.set("class", "hv-plate")
        _set_class(group.find(f"{{{_SVG}}}path"), "hv-plate-box")
    elif ids.PIN.fullmatch(name):
        retain = " hv-retain" if ids.is_retain_pin(name) else ""
        group.set("class", f"hv-pin{retain}")
        _set_class(group.find(f"{{{_SVG}}}path"), "hv-pin-box")
        _set_class(group.find(f"{{{_SVG}}}polygon"), "hv-pin-box")
    elif ids.is_tensor_fact(name):
        group.set("class", "hv-fact")
    else:
        _set_text_classes(group, name)


def _set_text_classes(group: ET.Element, name: str) -> None:
    """The texts of a cell get the class of their kind; those that steps write keep an id."""
    kind = ids.text_kind(name)
    if kind is None:
        return
    del group.attrib["id"]
    texts = group.findall(f"{{{_SVG}}}text")
    for text in texts:
        text.set("class", kind.css_class)
    if kind.css_class == "hv-name" and len(texts) > 1:  # what a tensor holds stands behind its name
        texts[1].set("class", "hv-data")
        texts[1].set("id", ids.tensor_value_id_beside(name))
    if texts and kind.has_id:
        texts[0].set("id", name)


def _set_class(element: ET.Element | None, css_class: str) -> None:
    if element is not None:
        element.set("class", css_class)
