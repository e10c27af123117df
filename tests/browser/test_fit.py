"""Pictures in their panes, on screens of every size: whole or with a map; moving, zooming, full screen, larger text."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from scenes import recorded
from torch import nn

import hookviz as hv
from tests.browser.conftest import note_errors, press

Opener = Callable[..., Page]

FIT = Path(__file__).with_name("fit.js").read_text(encoding="utf-8")
LETTERS = """pane => {
  const svg = pane.querySelector("svg");
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim() && text.checkVisibility());
  return Math.min(...texts.map((text) => parseFloat(text.getAttribute("font-size") ?? 16) * scale));
}"""
"""The size of the smallest letters of a picture in pixels."""
PLACE = "pane => { const { x, y, width } = pane.querySelector('svg').getBoundingClientRect(); return [x, y, width]; }"


def small_graph() -> hv.Trace:
    a = torch.tensor(2.0, requires_grad=True)
    b = torch.tensor(3.0, requires_grad=True)
    c = a * b
    d = torch.tensor(4.0, requires_grad=True)
    c.register_hook(lambda grad: grad + 2)
    c.retain_grad()
    d.register_hook(lambda grad: grad + 100)
    e = c * d
    e.register_hook(lambda grad: grad * 2)
    with hv.record() as trace:
        e.backward()
    return trace


def two_layers() -> hv.Trace:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 5), nn.Linear(5, 10))
    net[0].register_full_backward_hook(lambda module, grad_input, grad_output: None)
    with hv.record(net) as trace:
        (net(torch.ones(3, 2, requires_grad=True)) - 1).square().mean().backward()
    return trace


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


def two_switches() -> hv.WhatIf:
    def run() -> None:
        a = torch.tensor(2.0, requires_grad=True)
        c = a * 3
        c.register_hook(lambda grad: grad + 2)
        e = c * 4
        e.register_hook(lambda grad: grad * 2)
        e.backward()

    return hv.whatif(run)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fit")
    traces = {
        "a_to_e": recorded(),
        "small": small_graph(),
        "layers": two_layers(),
        "unrolled": unrolled(),
        "encoder": encoder(),
    }
    for name, trace in traces.items():
        trace.to_html(path / f"{name}.html")
    two_switches().to_html(path / "whatif.html")
    return path


@pytest.fixture
def open_at(new_offline_page: Callable[..., Page], folder: Path) -> Callable[[str, tuple[int, int]], Page]:
    """Open a page at the size of a screen; nothing glides, so that what is measured rests."""

    def open_it(name: str, screen: tuple[int, int]) -> Page:
        page = new_offline_page(reduced_motion="reduce")
        page.set_viewport_size({"width": screen[0], "height": screen[1]})
        note_errors(page)
        page.goto((folder / f"{name}.html").as_uri())
        page.wait_for_selector(".hv-plays .hv-picture")
        return page

    return open_it


def pane_of(page: Page) -> Locator:
    return page.locator(".hv-live .hv-graph").last


@pytest.mark.parametrize(
    ("name", "screen"),
    [
        ("small", (390, 844)),
        ("layers", (1280, 720)),
        ("layers", (390, 844)),
        ("unrolled", (1920, 1080)),
        ("unrolled", (820, 1180)),
        ("whatif", (1280, 720)),
    ],
    ids=str,
)
def test_nothing_is_cut_without_a_sign_and_the_step_is_in_sight(
    open_at: Opener, name: str, screen: tuple[int, int]
) -> None:
    page = open_at(name, screen)
    player = page.locator(".hv-live .hv-player")
    flaws = {}
    for keys in ("", "ArrowRight ArrowRight", "] ]", "z", "ArrowRight", "End"):
        press(page, *keys.split())
        page.wait_for_timeout(60)  # pictures of groups are unpacked first
        if found := player.evaluate(FIT):
            flaws[keys] = found
    assert flaws == {}


def test_z_and_its_button_show_the_whole_picture_with_a_lens_and_the_readable_part_again(open_at: Opener) -> None:
    page = open_at("unrolled", (1000, 640))
    pane, lens = pane_of(page), page.locator(".hv-lens")
    press(page, "End", "z")
    assert pane.evaluate(LETTERS) < 9
    expect(page.locator(".hv-map")).to_be_hidden()
    expect(lens).to_be_visible()
    assert lens.locator("text").all_text_contents() == pane.locator(".hv-node.hv-now text").all_text_contents() != []
    page.get_by_role("button", name="Readable size").click()
    assert pane.evaluate(LETTERS) == pytest.approx(13, rel=1e-3)
    expect(lens).to_be_hidden()
    expect(page.locator(".hv-map")).to_be_hidden()
    press(page, "+")
    expect(page.locator(".hv-map")).to_be_visible()


def test_a_graph_of_five_tensors_opens_whole_on_a_phone(open_at: Opener) -> None:
    expect(open_at("a_to_e", (390, 844)).get_by_text("The whole picture.")).to_be_visible()


def test_dragging_moves_the_picture_and_is_no_click(open_at: Opener) -> None:
    page = open_at("unrolled", (1280, 720))
    pane = pane_of(page)
    x, y, _ = pane.evaluate(PLACE)  # the picture opens at its right end, where the gradient enters
    page.mouse.move(300, 300)
    page.mouse.down()
    page.mouse.move(340, 330, steps=4)
    page.mouse.up()
    moved_x, moved_y, _ = pane.evaluate(PLACE)
    assert (moved_x, moved_y) != (x, y)
    expect(page.locator(".hv-count")).to_have_text("Step 1 of 123")


def test_wheel_scrolls_the_page_and_with_ctrl_zooms_around_the_pointer(open_at: Opener) -> None:
    page = open_at("unrolled", (1280, 720))
    pane = pane_of(page)
    width = pane.evaluate(PLACE)[2]
    page.mouse.move(300, 300)
    page.mouse.wheel(0, 120)
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") > 0 and pane.evaluate(PLACE)[2] == width
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    page.wait_for_timeout(300)
    assert pane.evaluate(PLACE)[2] > width + 10


def test_full_screen_larger_text_and_tensors_leave_nothing_off_the_screen(open_at: Opener) -> None:
    page = open_at("small", (1280, 720))
    page.bring_to_front()  # full screen is granted to the page in front only
    player = page.locator(".hv-live .hv-player")
    flaws = {}
    for keys in ("f", "l", "t", "]", "l", "t"):
        press(page, keys)
        page.wait_for_timeout(250)
        if found := player.evaluate(FIT):
            flaws[keys] = found
    assert flaws == {}
    share = pane_of(page).evaluate(LETTERS) / 720
    assert share >= 0.022
    panel, frame = (page.locator(part).bounding_box() for part in (".hv-panel", ".hv-frame"))
    assert panel and frame and panel["width"] <= 0.3 * frame["width"] + 1


def test_side_by_side_keeps_its_rows_on_the_screen(open_at: Opener) -> None:
    page = open_at("whatif", (1280, 720))
    page.bring_to_front()
    press(page, "1", "s")
    for key in ("l", "f", "t"):
        press(page, key)
        page.wait_for_timeout(300)
        assert page.locator(".hv-live .hv-player").evaluate(FIT) == [], key
        assert page.locator(".hv-live .hv-graph").count() == 2


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
def test_name_and_value_of_each_hook_are_in_sight_at_its_step(open_at: Opener, size: tuple[int, int]) -> None:
    page = open_at("encoder", size)
    hidden = []
    # Back again, too: a picture that was shown before comes back with another step.
    for key in [*ENCODER_HOOKS * "]", *ENCODER_HOOKS * "["]:
        press(page, key)
        page.wait_for_timeout(100)  # the picture of a layer is unpacked first
        hidden += page.locator(".hv-player").evaluate(HOOK_IN_SIGHT)
    assert hidden == []
