"""Pictures in their panes, on screens of every size: whole or with a map; moving, zooming, full screen, larger text."""

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

import hookviz as hv
from tests.browser.helpers import FIT, Opener, is_at, player_of, press

LETTERS = """pane => {
  const svg = pane.querySelector("svg");
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim() && text.checkVisibility());
  return Math.min(...texts.map((text) => parseFloat(text.getAttribute("font-size") ?? 16) * scale));
}"""
"""The size of the smallest letters of a picture in pixels."""
PLACE = "pane => { const { x, y, width } = pane.querySelector('svg').getBoundingClientRect(); return [x, y, width]; }"


def unrolled() -> hv.Trace:
    torch.manual_seed(0)
    cell, state = nn.RNNCell(4, 8), torch.zeros(2, 8)
    with hv.record(cell) as trace:
        for _ in range(8):
            state = cell(torch.randn(2, 4), state)
        state.register_hook(lambda grad: grad * 2)
        state.sum().backward()
    return trace


ENCODER_HOOKS = 4
"""The firings of hooks in the trace of the encoder."""


def encoder() -> hv.Trace:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    net = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    for module in (*net.layers, net.layers[1].linear1):
        module.register_full_backward_hook(lambda _module, _grad_input, _grad_output: None)
    with hv.record(net) as trace:
        net(torch.randn(2, 5, 16, requires_grad=True)).square().mean().backward()
    return trace


PAGES = {"unrolled": unrolled, "encoder": encoder}


def open_at(open_file: Opener, name: str, width: int, height: int) -> Page:
    """Open a page at the size of a screen; nothing glides, so that what is measured rests."""
    page = open_file(name, width, height, reduced_motion="reduce")
    player_of(page)
    return page


def pane_of(page: Page) -> Locator:
    return page.locator(".hv-live .hv-graph").last


def flaws_after(page: Page, *presses: str, pause: int = 60) -> dict[str, list[str]]:
    """Press keys, which blanks separate, and list what is cut or out of sight after each of the presses."""
    flaws = {}
    for keys in presses:
        press(page, *keys.split())
        page.wait_for_timeout(pause)  # pictures of groups are unpacked first
        if found := page.locator(".hv-live .hv-player").evaluate(FIT):
            flaws[keys] = found
    return flaws


@pytest.mark.parametrize(("name", "width", "height"), [("unrolled", 390, 844), ("whatif", 1280, 720)])
def test_nothing_is_cut_without_a_sign_and_the_step_is_in_sight(
    open_file: Opener, name: str, width: int, height: int
) -> None:
    page = open_at(open_file, name, width, height)
    assert flaws_after(page, "", "ArrowRight ArrowRight", "] ]", "z", "ArrowRight", "End") == {}


def test_z_and_its_button_show_the_whole_picture_with_a_lens_and_the_readable_part_again(open_file: Opener) -> None:
    page = open_at(open_file, "unrolled", 1000, 640)
    pane, lens = pane_of(page), page.locator(".hv-lens")
    press(page, "End", "z")
    assert pane.evaluate(LETTERS) < 9
    expect(page.locator(".hv-map")).to_be_hidden()
    expect(lens).to_be_visible()
    assert lens.locator("text").all_text_contents() == pane.locator(".hv-node.hv-now text").all_text_contents() != []
    page.get_by_role("button", name="Readable size").click()
    assert pane.evaluate(LETTERS) == pytest.approx(13, rel=1e-3)
    expect(lens).to_be_hidden()
    press(page, "+")
    expect(page.locator(".hv-map")).to_be_visible()


def test_mouse_drags_the_picture_scrolls_the_page_and_zooms_with_ctrl(open_file: Opener) -> None:
    page = open_at(open_file, "unrolled", 1280, 720)
    pane = pane_of(page)
    x, y, width = pane.evaluate(PLACE)  # the picture opens at its right end, where the gradient enters
    page.mouse.move(300, 300)
    page.mouse.down()
    page.mouse.move(340, 330, steps=4)
    page.mouse.up()
    assert pane.evaluate(PLACE)[:2] != [x, y]
    is_at(page, 1, 123)
    page.mouse.wheel(0, 120)
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") > 0 and pane.evaluate(PLACE)[2] == width
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    page.wait_for_timeout(300)
    assert pane.evaluate(PLACE)[2] > width + 10


def test_full_screen_larger_text_and_tensors_leave_nothing_off_the_screen(open_file: Opener) -> None:
    page = open_at(open_file, "index", 1280, 720)
    page.bring_to_front()  # full screen is granted to the page in front only
    assert flaws_after(page, "f", "l", "t", "]", "l", "t", pause=250) == {}
    assert pane_of(page).evaluate(LETTERS) >= 0.022 * 720
    panel, frame = (page.locator(part).bounding_box() for part in (".hv-panel", ".hv-frame"))
    assert panel and frame and panel["width"] <= 0.3 * frame["width"] + 1


HOOK_IN_SIGHT = """player => {
  const room = player.querySelector(".hv-graph").getBoundingClientRect();
  const pin = player.querySelector(".hv-pin.hv-now");
  return [".hv-pin-label", ".hv-pin-value"].map((name) => pin.querySelector(name)).flatMap((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    const isInside = left >= room.left && right <= room.right && top >= room.top && bottom <= room.bottom;
    const corners = [[left + 1, top + 2], [right - 1, top + 2], [left + 1, bottom - 2], [right - 1, bottom - 2]];
    const isOnTop = corners.every(([x, y]) => document.elementFromPoint(x, y)?.closest(".hv-pin") === pin);
    return isInside && isOnTop ? [] : [text.textContent];
  });
}"""
"""The texts of the hook of the step that are cut, or under something else."""


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=["screen", "phone"])
def test_name_and_value_of_each_hook_are_in_sight_at_its_step(open_file: Opener, size: tuple[int, int]) -> None:
    page = open_at(open_file, "encoder", *size)
    hidden = []
    # Back again, too: a picture that was shown before comes back with another step.
    for key in [*ENCODER_HOOKS * "]", *ENCODER_HOOKS * "["]:
        press(page, key)
        page.wait_for_timeout(100)  # the picture of a layer is unpacked first
        hidden += page.locator(".hv-player").evaluate(HOOK_IN_SIGHT)
    assert hidden == []
