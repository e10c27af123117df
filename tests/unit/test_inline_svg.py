"""A picture in a notebook: whole where it can be, readable always, dark where the page is."""

import re
import xml.etree.ElementTree as ET

import pytest
import torch
import torchviz
from scenes import leaf, recorded, scene

import hookviz as hv
from hookviz.picture.inline_svg import MIN_FONT_SIZE, OUTPUT_WIDTH, PIXELS_PER_POINT, prepare_for_notebook


def picture(width: float, height: float = 100, smallest: float = 13) -> str:
    texts = f'<text font-size="19.00">a</text><text font-size="{smallest:.2f}">b</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0.00 0.00 {width:.2f} {height:.2f}">{texts}</svg>'


def size(svg: str) -> tuple[str | None, str | None]:
    root = ET.fromstring(svg)
    return root.get("width"), root.get("height")


def test_a_picture_that_fits_has_one_size() -> None:
    assert size(prepare_for_notebook(picture(500, 200))) == (
        f"{500 * PIXELS_PER_POINT:.0f}px",
        f"{200 * PIXELS_PER_POINT:.0f}px",
    )


def test_one_that_is_a_little_too_wide_is_as_wide_as_the_page() -> None:
    assert size(prepare_for_notebook(picture(OUTPUT_WIDTH))) == ("100%", None)


def test_a_wide_one_is_scrolled_rather_than_made_too_small_to_read() -> None:
    width, height = size(prepare_for_notebook(picture(5000, 300)))
    assert (width, height) == (f"{5000 * MIN_FONT_SIZE / 13:.0f}px", f"{300 * MIN_FONT_SIZE / 13:.0f}px")


@pytest.mark.parametrize("width", [100, 680, 690, 900, 930, 1300, 9000])
@pytest.mark.parametrize("smallest", [8, 10, 13, 20])
def test_type_is_never_too_small_on_a_narrow_page(width: float, smallest: float) -> None:
    found, _ = size(prepare_for_notebook(picture(width, smallest=smallest)))
    pixels = OUTPUT_WIDTH if found == "100%" else float(str(found).removesuffix("px"))
    assert smallest * pixels / width >= min(MIN_FONT_SIZE, smallest * PIXELS_PER_POINT) - 0.02


def test_its_colours_turn_where_the_page_is_dark() -> None:
    root = ET.fromstring(prepare_for_notebook(picture(500)))
    assert "prefers-color-scheme: dark" in (root[0].text or "")


def test_a_size_that_was_there_is_replaced() -> None:
    head = '<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg width="300pt" height="100pt"'
    given = f'{head}\n viewBox="0.00 0.00 300.00 100.00"></svg>'
    assert size(prepare_for_notebook(given)) == ("360px", "120px")


def test_an_attribute_that_only_ends_in_width_is_kept() -> None:
    given = '<svg stroke-width="3" viewBox="0 0 300 100"></svg>'
    assert ET.fromstring(prepare_for_notebook(given)).get("stroke-width") == "3"


@pytest.mark.filterwarnings("ignore:distutils Version classes")
def test_every_picture_goes_to_jupyter_like_this() -> None:
    tensors = scene()
    for figure in (hv.draw(tensors.e), recorded().figure(8), hv.render(torchviz.make_dot(tensors.e))):
        bundle = figure._repr_mimebundle_()
        assert set(bundle) == {"image/svg+xml", "text/plain"}
        assert re.fullmatch(r"\d+px", str(size(str(bundle["image/svg+xml"]))[0]))
        assert "<style>" in str(bundle["image/svg+xml"])


def test_a_file_and_the_player_have_neither_size_nor_style() -> None:
    """A style inside the page of the player would be one for the whole page."""
    trace = recorded()
    for svg in (trace.figure().pipe("svg", encoding="utf-8"), trace.player().content["svgs"][0]):
        assert "<style" not in svg
        assert size(svg) == (None, None)


def test_the_picture_in_place_of_a_player_is_sized_and_turned_too() -> None:
    svg = recorded()._repr_mimebundle_()["image/svg+xml"]
    assert size(svg)[0] and "<style>" in svg


def test_the_graph_of_the_lessons_with_its_tensors_is_whole_on_a_narrow_page() -> None:
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    c = a * b
    e = c * d
    for tensor in (c, d, e):
        tensor.register_hook(lambda grad: grad * 2)
    c.register_hook(torch.neg)
    width, _ = size(str(hv.draw(e, tensors=True)._repr_mimebundle_()["image/svg+xml"]))
    assert width == "100%" or float(str(width).removesuffix("px")) <= OUTPUT_WIDTH
