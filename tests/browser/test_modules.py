"""Modules in the player: their calls, their hooks, and clicks on their frames."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from scenes import SumNet, leaf

import hookviz as hv
from tests.browser.accessibility import SERIOUS, violations


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with the network of lesson 03."""
    net = SumNet()
    net.register_forward_pre_hook(lambda module, args: (args[0] + 10, args[1]))
    net.register_forward_hook(lambda module, args, output: output + 100)
    one, two, three = (leaf(number) for number in (1.0, 2.0, 3.0))
    with hv.record(net) as trace:
        net(one, two, c=three).backward()
    path = tmp_path_factory.mktemp("modules")
    trace.to_html(path / "index.html")
    return path


@pytest.fixture
def page(open_file: Callable[..., Page]) -> Page:
    return open_file()


@pytest.fixture
def player(page: Page) -> Locator:
    return page.locator(".hv-player")


def go(player: Locator, steps: int) -> None:
    for _ in range(steps):
        player.press("ArrowRight")


def test_forward_pre_hook_shows_the_inputs_before_and_after(player: Locator) -> None:
    go(player, 1)
    expect(player.locator(".hv-panel")).to_contain_text("changed a from 1 to 11")
    expect(player.locator(".hv-plate .hv-pin.hv-now")).to_contain_text("(1, 2) → (11, 2)")


def test_nodes_created_by_a_call_are_marked_only_at_its_step(player: Locator) -> None:
    go(player, 2)
    expect(player.locator(".hv-module.hv-now")).to_have_count(1)
    expect(player.locator(".hv-node.hv-near")).to_have_count(4)  # three additions, and that of the last hook
    go(player, 1)
    expect(player.locator(".hv-node.hv-near")).to_have_count(0)


def test_activations_and_gradients_differ_in_colour(player: Locator) -> None:
    def color() -> str:
        return str(player.locator(".hv-panel .hv-value").first.evaluate("e => getComputedStyle(e).color"))

    forward = color()
    player.press("End")
    assert color() != forward


def test_click_on_a_module_frame_goes_to_a_step_of_the_module(player: Locator) -> None:
    player.press("End")
    player.locator(".hv-plate .hv-name").first.click()
    expect(player.locator(".hv-count")).to_have_text("Step 1 of 18")


def test_legend_explains_the_glyph_of_modules(player: Locator) -> None:
    expect(player.locator(".hv-timeline .hv-glyph-module")).to_have_count(2)
    expect(player.locator(".hv-legend")).to_contain_text("module")


def test_axe_reports_no_serious_violation(page: Page, player: Locator) -> None:
    go(player, 1)
    assert violations(page, inside=".hv-player", impacts=SERIOUS) == []
    assert page.errors == []  # type: ignore[attr-defined]
