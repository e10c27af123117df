"""SVG in a notebook: it fits the page if possible, stays readable, and follows the dark theme."""

import xml.etree.ElementTree as ET
from typing import Any

import graphviz
import pytest
import torchviz
from scenes import recorded, scene

import hookviz as hv

OUTPUT_WIDTH, MIN_FONT_SIZE, PIXELS_PER_POINT = 820, 11.5, 1.2


def shown_picture(thing: Any) -> ET.Element:
    """The picture that a notebook shows for ``thing``."""
    bundle = thing._repr_mimebundle_()
    assert set(bundle) - {"text/html"} == {"image/svg+xml", "text/plain"}
    return ET.fromstring(bundle["image/svg+xml"])


@pytest.mark.parametrize(
    ("width", "shown"),
    [(9.0, "fixed"), (10.0, "page"), (12.0, "page"), (13.5, "scrolled")],
)
def test_text_is_readable_at_any_width(width: float, shown: str) -> None:
    """``width`` is that of a box in inches, whose text has 13 points."""
    drawing = graphviz.Digraph(node_attr={"shape": "box", "width": str(width), "fontsize": "13", "label": "a"})
    drawing.node("a")
    root = shown_picture(hv.render(drawing))
    points, height = (float(number) for number in root.get("viewBox", "").split()[2:])
    if shown == "page":
        assert (root.get("width"), root.get("height")) == ("100%", None)
        assert points * PIXELS_PER_POINT > OUTPUT_WIDTH and 13 * OUTPUT_WIDTH / points >= MIN_FONT_SIZE
    else:
        zoom = PIXELS_PER_POINT if shown == "fixed" else MIN_FONT_SIZE / 13
        assert (root.get("width"), root.get("height")) == (f"{points * zoom:.0f}px", f"{height * zoom:.0f}px")
        assert (points * zoom <= OUTPUT_WIDTH) == (shown == "fixed")


@pytest.mark.filterwarnings("ignore:distutils Version classes")
def test_every_figure_is_prepared_for_jupyter() -> None:
    tensors = scene()
    trace = recorded()
    for figure in (hv.draw(tensors.e), trace.figure(8), hv.render(torchviz.make_dot(tensors.e)), trace):
        root = shown_picture(figure)
        assert str(root.get("width")).endswith(("px", "100%"))
        assert "prefers-color-scheme: dark" in (root[0].text or "")


def test_files_and_the_player_get_svg_without_size_and_style() -> None:
    """A <style> in the player's SVG would apply to the whole page."""
    trace = recorded()
    for svg in (trace.figure().svg(), trace.player().content["svgs"][0]):
        root = ET.fromstring(svg)
        assert "<style" not in svg and (root.get("width"), root.get("height")) == (None, None)
