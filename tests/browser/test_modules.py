"""Modules in the player: their calls, their hooks, and clicks on their frames."""

from playwright.sync_api import expect
from scenes import SumNet, leaf

import hookviz as hv
from tests.browser.helpers import Opener, is_at, player_of, press


def network() -> hv.Trace:
    """The network of lesson 03."""
    net = SumNet()
    net.register_forward_pre_hook(lambda module, args: (args[0] + 10, args[1]))
    net.register_forward_hook(lambda module, args, output: output + 100)
    with hv.record(net) as trace:
        net(leaf(1.0), leaf(2.0), c=leaf(3.0)).backward()
    return trace


PAGES = {"network": network}


def test_forward_pre_hook_shows_the_inputs_before_and_after_and_a_click_on_the_frame_goes_back(
    open_file: Opener,
) -> None:
    player = player_of(open_file("network"))
    press(player.page, "ArrowRight")
    expect(player.locator(".hv-panel")).to_contain_text("changed a from 1 to 11")
    expect(player.locator(".hv-plate .hv-pin.hv-now")).to_contain_text("(1, 2) → (11, 2)")
    press(player.page, "End")
    player.locator(".hv-plate .hv-name").first.click()
    is_at(player, 1, 18)
    expect(player.locator(".hv-timeline .hv-glyph-module")).to_have_count(2)
    expect(player.locator(".hv-legend")).to_contain_text("module")


def test_nodes_created_by_a_call_are_marked_only_at_its_step(open_file: Opener) -> None:
    player = player_of(open_file("network"))
    press(player.page, "ArrowRight", "ArrowRight")
    expect(player.locator(".hv-module.hv-now")).to_have_count(1)
    expect(player.locator(".hv-node.hv-near")).to_have_count(4)  # three additions, and that of the last hook
    press(player.page, "ArrowRight")
    expect(player.locator(".hv-node.hv-near")).to_have_count(0)
