"""No label is cut off, overlapped or low in contrast, in both themes, and on a phone."""

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

SETTINGS = ((1280, 800, "light"), (1280, 800, "dark"), (390, 844, "light"))
"""Width, height and theme; both themes are tried at one size, since they differ in colours only."""
VIEWS = {
    "a hook": ("a_to_e", "] ] b"),
    "a number asked for": ("a_to_e", "p ArrowRight 1 Enter"),
    "a hook asked for": ("a_to_e", "p ArrowRight 2 Enter ArrowRight ArrowRight ArrowRight 1"),
    "both layers": ("a_to_e", "t n End"),
    "larger text": ("a_to_e", "l ] ]"),
    "a hook off, in tensors": ("whatif", "t End 1 3"),
    "a hook off beside it": ("whatif", "s End 1"),
    "two passes": ("diff", "]"),
    "a hook of a module off": ("modules", "] ] 2 s"),
    "long names": ("names", "1 End"),
    "Chinese": ("modules.zh", "1 End"),
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


def chain() -> hv.Trace:
    """A graph that is much higher than wide."""
    with hv.record() as trace:
        value = leaf(0.5)
        for _ in range(12):
            value = value.tanh()
        value.backward()
    return trace


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("looks")
    shown = {
        "a_to_e": recorded(),
        "whatif": hv.whatif(a_to_e),
        "modules": hv.whatif(modules),
        "names": hv.whatif(names),
        "chain": chain(),
        "diff": run_with_hook(None).diff(run_with_hook(c_hook)),
    }
    for name, what in shown.items():
        what.to_html(folder / f"{name}.html")
    shown["modules"].to_html(folder / "modules.zh.html", languages="zh")
    return folder


@pytest.mark.parametrize("view", VIEWS)
def test_view_has_no_layout_or_contrast_flaws(new_offline_page: Callable[..., Page], pages: Path, view: str) -> None:
    name, keys = VIEWS[view]
    page = new_offline_page(reduced_motion="reduce")
    note_errors(page)
    page.goto((pages / f"{name}.html").as_uri())
    page.wait_for_selector(".hv-live .hv-player")
    press(page, *keys.split())
    flaws_by_setting: dict[str, list[str]] = {}
    for width, height, theme in SETTINGS:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        if flaws := page.evaluate(FLAWS):
            flaws_by_setting[f"{width} {theme}"] = flaws
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


def test_print_keeps_all_columns_and_does_not_shrink_a_tall_picture(page: Callable[..., Page]) -> None:
    opened_page = page("names", 760, 1100)
    opened_page.emulate_media(media="print")
    box = opened_page.locator(".hv-still table").bounding_box()
    assert box and box["x"] + box["width"] <= 760
    opened_page = page("chain", 760, 1100)
    opened_page.emulate_media(media="print")
    picture_box = opened_page.locator(".hv-still svg").first.bounding_box()
    assert picture_box and picture_box["height"] > 900
