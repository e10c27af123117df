"""No label is cut off, overlapped or low in contrast, in both themes, and on a phone."""

import pytest
import torch
from scenes import Net, leaf

import hookviz as hv
from tests.browser.helpers import FLAWS, Opener, errors_of, press

SETTINGS = ((1280, 800, "light"), (1280, 800, "dark"), (390, 844, "light"))
"""Width, height and theme; both themes are tried at one size, since they differ in colours only."""
VIEWS = {
    "a number asked for": ("index", "p ArrowRight 1 Enter"),
    "both layers": ("index", "t n End"),
    "larger text": ("index", "l ] ]"),
    "a hook off beside it": ("whatif", "s End 1"),
    "two passes": ("diff", "]"),
    "a hook of a module off": ("modules", "] ] 2 s"),
    "long names": ("names", "1 End"),
}
"""View → the page, and the keys that lead to the view."""


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


PAGES = {
    "modules": lambda: hv.whatif(modules),
    "names": lambda: hv.whatif(names),
    "chain": chain,
}


@pytest.mark.parametrize("view", VIEWS)
def test_view_has_no_layout_or_contrast_flaws(open_file: Opener, view: str) -> None:
    name, keys = VIEWS[view]
    page = open_file(name, reduced_motion="reduce")
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
    assert errors_of(page) == []


def test_print_keeps_all_columns_and_does_not_shrink_a_tall_picture(open_file: Opener) -> None:
    page = open_file("names", 760, 1100)
    page.emulate_media(media="print")
    box = page.locator(".hv-still table").bounding_box()
    assert box and box["x"] + box["width"] <= 760
    page = open_file("chain", 760, 1100)
    page.emulate_media(media="print")
    picture_box = page.locator(".hv-still svg").first.bounding_box()
    assert picture_box and picture_box["height"] > 900
