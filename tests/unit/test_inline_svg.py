"""SVG in a notebook: it fits the page if possible, stays readable, and follows the dark theme."""

import re
import xml.etree.ElementTree as ET

import pytest
import torch
import torchviz
from scenes import leaf, recorded, scene

import hookviz as hv
from hookviz.picture.inline_svg import MIN_FONT_SIZE, OUTPUT_WIDTH, PIXELS_PER_POINT, prepare_for_notebook


def make_svg(width: float, height: float = 100, font_size: float = 13) -> str:
    texts = f'<text font-size="19.00">a</text><text font-size="{font_size:.2f}">b</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0.00 0.00 {width:.2f} {height:.2f}">{texts}</svg>'


def svg_size(svg: str) -> tuple[str | None, str | None]:
    root = ET.fromstring(svg)
    return root.get("width"), root.get("height")


def test_a_picture_that_fits_has_a_fixed_size() -> None:
    assert svg_size(prepare_for_notebook(make_svg(500, 200))) == (
        f"{500 * PIXELS_PER_POINT:.0f}px",
        f"{200 * PIXELS_PER_POINT:.0f}px",
    )


def test_a_slightly_too_wide_picture_is_as_wide_as_the_page() -> None:
    assert svg_size(prepare_for_notebook(make_svg(OUTPUT_WIDTH))) == ("100%", None)


def test_a_wide_picture_keeps_a_readable_size() -> None:
    width, height = svg_size(prepare_for_notebook(make_svg(5000, 300)))
    assert (width, height) == (f"{5000 * MIN_FONT_SIZE / 13:.0f}px", f"{300 * MIN_FONT_SIZE / 13:.0f}px")


@pytest.mark.parametrize("width", [100, 680, 690, 900, 930, 1300, 9000])
@pytest.mark.parametrize("font_size", [8, 10, 13, 20])
def test_text_is_readable_at_any_width(width: float, font_size: float) -> None:
    shown_width, _ = svg_size(prepare_for_notebook(make_svg(width, font_size=font_size)))
    pixels = OUTPUT_WIDTH if shown_width == "100%" else float(str(shown_width).removesuffix("px"))
    assert font_size * pixels / width >= min(MIN_FONT_SIZE, font_size * PIXELS_PER_POINT) - 0.02


def test_colours_adapt_to_a_dark_page() -> None:
    root = ET.fromstring(prepare_for_notebook(make_svg(500)))
    assert "prefers-color-scheme: dark" in (root[0].text or "")


def test_an_existing_size_is_replaced() -> None:
    head = '<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg width="300pt" height="100pt"'
    svg = f'{head}\n viewBox="0.00 0.00 300.00 100.00"></svg>'
    assert svg_size(prepare_for_notebook(svg)) == ("360px", "120px")


def test_an_attribute_that_only_ends_in_width_is_kept() -> None:
    svg = '<svg stroke-width="3" viewBox="0 0 300 100"></svg>'
    assert ET.fromstring(prepare_for_notebook(svg)).get("stroke-width") == "3"


@pytest.mark.filterwarnings("ignore:distutils Version classes")
def test_every_figure_is_prepared_for_jupyter() -> None:
    tensors = scene()
    for figure in (hv.draw(tensors.e), recorded().figure(8), hv.render(torchviz.make_dot(tensors.e))):
        bundle = figure._repr_mimebundle_()
        assert set(bundle) == {"image/svg+xml", "text/plain"}
        assert re.fullmatch(r"\d+px", str(svg_size(str(bundle["image/svg+xml"]))[0]))
        assert "<style>" in str(bundle["image/svg+xml"])


def test_files_and_the_player_get_svg_without_size_and_style() -> None:
    """A <style> in the player's SVG would apply to the whole page."""
    trace = recorded()
    for svg in (trace.figure().pipe("svg", encoding="utf-8"), trace.player().content["svgs"][0]):
        assert "<style" not in svg
        assert svg_size(svg) == (None, None)


def test_the_fallback_picture_of_the_player_has_size_and_style() -> None:
    svg = recorded()._repr_mimebundle_()["image/svg+xml"]
    assert svg_size(svg)[0] and "<style>" in svg


def test_the_lesson_graph_with_tensors_fits_the_page() -> None:
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    c = a * b
    e = c * d
    for tensor in (c, d, e):
        tensor.register_hook(lambda grad: grad * 2)
    c.register_hook(torch.neg)
    width, _ = svg_size(str(hv.draw(e, tensors=True)._repr_mimebundle_()["image/svg+xml"]))
    assert width == "100%" or float(str(width).removesuffix("px")) <= OUTPUT_WIDTH
