"""No label is cut, in another's way or hard to see: in three fonts, light and dark, on a projector and on a phone."""

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
"""Font → its sister for code. Those that are not installed are left out, and the test says less."""
THEMES = ("light", "dark")
SIZES = ((1280, 800), (900, 720), (390, 844))
WIDE = 1280
"""The width at which it is looked at in both themes: they differ in colours only."""
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
"""What is looked at: a page, and the keys that lead there."""

FLAWS = Path(__file__).with_name("flaws.js").read_text(encoding="utf-8")
"""What is wrong in what is seen, in words."""


def a_hook_with_a_name_that_goes_on_and_on(grad: torch.Tensor) -> torch.Tensor:
    return grad / 3


def modules() -> None:
    net = Net()
    net.l1.register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    net.l1.register_full_backward_hook(lambda module, grad_input, grad_output: tuple(g * 2 for g in grad_input))
    net.l2.weight.register_hook(lambda grad: grad * 0.1)
    net(leaf(3.0)).backward()


def names() -> None:
    """Long ones, from right to left, and of wide letters; and vectors."""
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
    recorded().to_html(folder / "a_to_e.html")
    hv.whatif(a_to_e).to_html(folder / "whatif.html")
    hv.whatif(modules).to_html(folder / "modules.html")
    hv.whatif(names).to_html(folder / "names.html")
    run_with_hook(None).diff(run_with_hook(c_hook)).to_html(folder / "diff.html")
    return folder


def put_on(page: Page, font: str) -> None:
    """Set everything in ``font``."""
    css = (
        f".hv-live .hv-player {{ --hv-font: '{font}' !important; --hv-code-font: '{FONTS[font]}' !important; }}"
        f".hv-live .hv-graph svg {{ font-family: '{font}'; }}"
    )
    # Not an element, which the page's policy would refuse.
    page.evaluate(
        "css => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css); document.adoptedStyleSheets = [sheet]; }",
        css,
    )


INSTALLED = """(font) => {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  const width = (family) => { context.font = `40px ${family}`; return context.measureText("mmmiiill.结果").width; };
  return ["serif", "monospace"].every((other) => width(`"${font}", ${other}`) !== width(other));
}"""
"""Whether the browser has a font: instead of one that it lacks it takes the next."""


def installed(page: Page) -> list[str]:
    """The fonts that it can be looked at in; the first, where there is none of them."""
    return [font for font in FONTS if page.evaluate(INSTALLED, font)] or [*FONTS][:1]


@pytest.mark.parametrize("view", VIEWS)
def test_no_label_is_cut_or_in_the_way_of_another(blank: Callable[..., Page], pages: Path, view: str) -> None:
    name, keys = VIEWS[view]
    page = blank(reduced_motion="reduce")
    note_errors(page)
    page.goto((pages / f"{name}.html").as_uri())
    page.wait_for_selector(".hv-live .hv-player")
    press(page, *keys.split())
    wrong: dict[str, list[str]] = {}
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for font in installed(page):
            put_on(page, font)
            for theme in THEMES if width == WIDE else THEMES[:1]:
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
                if flaws := page.evaluate(FLAWS):
                    wrong[f"{width} {font} {theme}"] = flaws
    assert wrong == {}
    assert page.errors == []  # type: ignore[attr-defined]


@pytest.fixture
def page(blank: Callable[..., Page], pages: Path) -> Callable[..., Page]:
    """Opens a page in a window of a size."""

    def open_it(name: str, width: int, height: int) -> Page:
        opened = blank(reduced_motion="reduce")
        opened.set_viewport_size({"width": width, "height": height})
        opened.goto((pages / f"{name}.html").as_uri())
        opened.wait_for_selector(".hv-live .hv-player")
        return opened

    return open_it


def test_the_first_what_if_is_seen_whole_beside_its_words(page: Callable[..., Page]) -> None:
    whole = "graph => graph.scrollWidth <= graph.clientWidth && graph.scrollHeight <= graph.clientHeight"
    assert page("whatif", 900, 760).locator(".hv-live .hv-graph").evaluate(whole)


def test_between_two_passes_the_source_of_the_hook_is_there_at_once(page: Callable[..., Page]) -> None:
    opened = page("diff", 1280, 800)
    press(opened, "]")
    code, panel = (opened.locator(f".hv-live .hv-{part}").bounding_box() for part in ("code", "panel"))
    assert code and panel and code["y"] + code["height"] <= panel["y"] + panel["height"]


def test_the_list_of_keys_has_the_width_of_a_phone(page: Callable[..., Page]) -> None:
    opened = page("a_to_e", 390, 844)
    press(opened, "?")
    box = opened.locator("dialog").bounding_box()
    assert box and box["width"] >= 340 and box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_on_paper_no_column_is_lost_and_a_tall_picture_has_a_page(page: Callable[..., Page]) -> None:
    opened = page("names", 760, 1100)
    opened.emulate_media(media="print")
    box = opened.locator(".hv-still table").bounding_box()
    assert box and box["x"] + box["width"] <= 760
    opened = page("modules", 760, 1100)
    opened.emulate_media(media="print")
    drawn = opened.locator(".hv-still svg").bounding_box()
    assert drawn and drawn["height"] > 900


def test_a_fact_of_a_tensor_is_told_from_its_value(page: Callable[..., Page]) -> None:
    opened = page("a_to_e", 1280, 800)
    press(opened, "t")
    texts = opened.locator(".hv-picture:not([hidden]) text")
    name, value = (texts.get_by_text(text, exact=True).first for text in ("is_leaf", "False"))
    fills = [text.evaluate("text => getComputedStyle(text).fill") for text in (name, value)]
    assert fills[0] != fills[1]
