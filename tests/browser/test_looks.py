"""No label is cut off, overlapped or low in contrast, in three fonts, both themes and three window sizes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page
from scenes import Net, c_hook, leaf, recorded

import hookviz as hv
from tests.browser.conftest import note_errors, press
from tests.unit.test_variants import run_with_hook
from tests.unit.test_whatif import a_to_e

FONTS = {
    "DejaVu Sans": "DejaVu Sans Mono",
    "Liberation Sans": "Liberation Mono",
    "Noto Sans CJK SC": "Noto Sans Mono CJK SC",
}
"""Font → its monospaced counterpart. Fonts that are not installed are skipped."""
THEMES = ("light", "dark")
SIZES = ((1280, 800), (900, 720), (390, 844))
BOTH_THEMES_WIDTH = 1280
"""The width at which both themes are tested; they differ in colours only."""
VIEWS = {
    "the end": ("a_to_e", "End"),
    "a hook": ("a_to_e", "] ] b"),
    "a number asked for": ("a_to_e", "p ArrowRight 1 Enter"),
    "a hook asked for": ("a_to_e", "p ArrowRight 2 Enter ArrowRight ArrowRight ArrowRight 1"),
    "both layers": ("a_to_e", "t n End"),
    "the nodes": ("a_to_e", "n End"),
    "larger text": ("a_to_e", "l ] ]"),
    "the keys": ("a_to_e", "?"),
    "a hook off": ("whatif", "End 1"),
    "a hook off, in tensors": ("whatif", "t End 1 3"),
    "hooks off in larger text": ("whatif", "l End 1 4"),
    "a hook off beside it": ("whatif", "s End 1"),
    "two passes": ("diff", "]"),
    "the modules": ("modules", "1 End"),
    "a hook of a module off": ("modules", "] ] 2 s"),
    "long names": ("names", "1 End"),
    "long names beside each other": ("names", "s 1 3 ] ]"),
}
"""View → the page, and the keys that lead to the view."""

FLAWS = Path(__file__).with_name("flaws.js").read_text(encoding="utf-8")
"""JavaScript that lists the visible layout and contrast flaws of a player."""


def a_hook_with_a_name_that_goes_on_and_on(grad: torch.Tensor) -> torch.Tensor:
    return grad / 3


def modules() -> None:
    net = Net()
    net.l1.register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    net.l1.register_full_backward_hook(lambda module, grad_input, grad_output: tuple(g * 2 for g in grad_input))
    net.l2.weight.register_hook(lambda grad: grad * 0.1)
    net(leaf(3.0)).backward()


def names() -> None:
    """A graph with long, right-to-left and wide names, and with vectors."""
    a_tensor_with_quite_a_long_name = leaf(1.23456, -2.34567, 3.45678)
    מטריצה = leaf(2.0, 3.0, 4.0)  # noqa: N806
    结果 = מטריצה * a_tensor_with_quite_a_long_name  # noqa: N806
    结果.register_hook(a_hook_with_a_name_that_goes_on_and_on)
    מטריצה.register_hook(lambda 梯度: 梯度 * 2)  # noqa: N803
    a_tensor_with_quite_a_long_name.register_hook(
        lambda grad: torch.where(grad > 0.5, grad * 2, torch.zeros_like(grad))
    )
    (结果**2).sum().backward()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("looks")
    shown = {
        "a_to_e": recorded(),
        "whatif": hv.whatif(a_to_e),
        "modules": hv.whatif(modules),
        "names": hv.whatif(names),
        "diff": run_with_hook(None).diff(run_with_hook(c_hook)),
    }
    for name, what in shown.items():
        what.to_html(folder / f"{name}.html")
        what.to_html(folder / f"{name}.zh.html", languages="zh")
    return folder


def set_font(page: Page, font: str) -> None:
    """Set all text in ``font``."""
    css = (
        f".hv-live .hv-player {{ --hv-font: '{font}' !important; --hv-code-font: '{FONTS[font]}' !important; }}"
        f".hv-live .hv-graph svg {{ font-family: '{font}'; }}"
    )
    # The page's content security policy would refuse a style element.
    page.evaluate(
        "css => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css); document.adoptedStyleSheets = [sheet]; }",
        css,
    )


IS_FONT_INSTALLED = """(font) => {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  const width = (family) => { context.font = `40px ${family}`; return context.measureText("mmmiiill.结果").width; };
  return ["serif", "monospace"].every((other) => width(`"${font}", ${other}`) !== width(other));
}"""
"""Whether the browser has a font: without it, the fallbacks determine the width."""


def installed_fonts(page: Page) -> list[str]:
    """The installed ones of ``FONTS``, or the first if none is installed."""
    return [font for font in FONTS if page.evaluate(IS_FONT_INSTALLED, font)] or [*FONTS][:1]


@pytest.mark.parametrize("language", ["", ".zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_view_has_no_layout_or_contrast_flaws(
    new_offline_page: Callable[..., Page], pages: Path, view: str, language: str
) -> None:
    name, keys = VIEWS[view]
    page = new_offline_page(reduced_motion="reduce")
    note_errors(page)
    page.goto((pages / f"{name}{language}.html").as_uri())
    page.wait_for_selector(".hv-live .hv-player")
    press(page, *keys.split())
    flaws_by_setting: dict[str, list[str]] = {}
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        # Chinese comes from one font, whichever the Latin letters are in.
        for font in installed_fonts(page)[: 1 if language else None]:
            set_font(page, font)
            for theme in THEMES if width == BOTH_THEMES_WIDTH else THEMES[:1]:
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
                if flaws := page.evaluate(FLAWS):
                    flaws_by_setting[f"{width} {font} {theme}"] = flaws
    assert flaws_by_setting == {}
    assert page.errors == []  # type: ignore[attr-defined]


@pytest.fixture
def page(new_offline_page: Callable[..., Page], pages: Path) -> Callable[..., Page]:
    """Open a page in a window of the given size."""

    def open_it(name: str, width: int, height: int) -> Page:
        opened_page = new_offline_page(reduced_motion="reduce")
        opened_page.set_viewport_size({"width": width, "height": height})
        opened_page.goto((pages / f"{name}.html").as_uri())
        opened_page.wait_for_selector(".hv-live .hv-player")
        return opened_page

    return open_it


def test_what_if_picture_fits_without_scrolling(page: Callable[..., Page]) -> None:
    fits = "graph => graph.scrollWidth <= graph.clientWidth && graph.scrollHeight <= graph.clientHeight"
    assert page("whatif", 900, 760).locator(".hv-live .hv-graph").evaluate(fits)


def test_hook_source_is_visible_without_scrolling_in_a_comparison(page: Callable[..., Page]) -> None:
    opened_page = page("diff", 1280, 800)
    press(opened_page, "]")
    code, panel = (opened_page.locator(f".hv-live .hv-{part}").bounding_box() for part in ("code", "panel"))
    assert code and panel and code["y"] + code["height"] <= panel["y"] + panel["height"]


def test_key_list_fits_the_width_of_a_phone(page: Callable[..., Page]) -> None:
    opened_page = page("a_to_e", 390, 844)
    press(opened_page, "?")
    box = opened_page.locator("dialog").bounding_box()
    assert box and box["width"] >= 340 and box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_print_keeps_all_columns_and_does_not_shrink_a_tall_picture(page: Callable[..., Page]) -> None:
    opened_page = page("names", 760, 1100)
    opened_page.emulate_media(media="print")
    box = opened_page.locator(".hv-still table").bounding_box()
    assert box and box["x"] + box["width"] <= 760
    opened_page = page("modules", 760, 1100)
    opened_page.emulate_media(media="print")
    picture_box = opened_page.locator(".hv-still svg").first.bounding_box()
    assert picture_box and picture_box["height"] > 900


def test_name_and_value_of_a_tensor_attribute_differ_in_colour(page: Callable[..., Page]) -> None:
    opened_page = page("a_to_e", 1280, 800)
    press(opened_page, "t")
    texts = opened_page.locator(".hv-picture:not([hidden]) text")
    name, value = (texts.get_by_text(text, exact=True).first for text in ("is_leaf", "False"))
    fills = [text.evaluate("text => getComputedStyle(text).fill") for text in (name, value)]
    assert fills[0] != fills[1]
