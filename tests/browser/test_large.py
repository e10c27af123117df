"""Pages of large traces: collapsed boxes, the timeline, colours and the search."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import FloatRect, Locator, Page, expect
from torch import nn

import hookviz as hv
from tests.browser.accessibility import SERIOUS, violations
from tests.browser.conftest import count_mutations, press

Opener = Callable[..., Page]
FLAWS = Path(__file__).with_name("flaws.js").read_text(encoding="utf-8")
LAYERS = 60


def sixty_layers() -> hv.Trace:
    """A model of sixty layers, with hooks in two of them."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(LAYERS)))
    model[5][0].weight.register_hook(lambda grad: grad * 2)
    model[7].register_forward_hook(lambda module, args, output: None)
    with hv.record(model) as trace:
        model(torch.ones(2, 4)).sum().backward()
    return trace


def unequal_layers() -> hv.Trace:
    """Twelve layers of two kinds in turn: none of them are stacked."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), (nn.Tanh, nn.Sigmoid)[at % 2]()) for at in range(12)))
    with hv.record(model) as trace:
        model(torch.ones(2, 4)).sum().backward()
    return trace


def chain_with_nan() -> hv.Trace:
    """5,000 ops one after the other, and a NaN in the middle."""
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for i in range(5000):
        y = y * (float("nan") if i == 2500 else 1.0001)
    with hv.record() as trace:
        y.backward()
    return trace


def chain_with_zero() -> hv.Trace:
    """500 ops, one of which sends only zeros."""
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for i in range(500):
        y = y * (0.0 if i == 250 else 1.0001)
    with hv.record() as trace:
        y.backward()
    return trace


def sixty_passes() -> hv.Trace:
    """A small model that is trained for sixty passes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 1), nn.Tanh())
    model[0].bias.register_hook(lambda grad: None)
    with hv.record(model) as trace:
        for _ in range(60):
            model(torch.ones(1, 2)).sum().backward()
    return trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder_path = tmp_path_factory.mktemp("large")
    sixty_layers().to_html(folder_path / "encoder.html")
    unequal_layers().to_html(folder_path / "unequal.html")
    chain_with_nan().to_html(folder_path / "chain.html")
    chain_with_zero().to_html(folder_path / "zero.html")
    sixty_passes().to_html(folder_path / "passes.html")
    return folder_path


@pytest.fixture
def player(open_file: Opener) -> Locator:
    page = open_file("encoder", reduced_motion="reduce")
    result = page.locator(".hv-live .hv-player")
    expect(result.locator(".hv-picture")).to_be_visible()
    result.focus()
    return result


def click_timeline(player: Locator, track: FloatRect, place: float) -> None:
    """Click the timeline at a place from 0 to 1, and wait until the player is at another step."""
    count = player.locator(".hv-count").inner_text()
    player.page.mouse.click(track["x"] + track["width"] * place, track["y"] + 20)
    expect(player.locator(".hv-count")).not_to_have_text(count)


def timeline_box(player: Locator) -> FloatRect:
    """The bounding box of the timeline on the screen."""
    track = player.locator(".hv-long .hv-track")
    track.scroll_into_view_if_needed()
    box = track.bounding_box()
    assert box
    return box


def current_location(player: Locator) -> Locator:
    return player.locator(".hv-here")


def pass_menu(player: Locator) -> Locator:
    """The menu of passes; its value counts from 0."""
    return player.locator(".hv-passes")


def boxes(player: Locator) -> Locator:
    return player.locator(".hv-fold")


def test_large_trace_opens_as_a_few_labelled_boxes(player: Locator) -> None:
    expect(current_location(player)).to_have_text("the whole pass")
    expect(boxes(player)).to_have_count(1)
    expect(boxes(player)).to_contain_text(f"model 0 – {LAYERS - 1} × {LAYERS}")
    expect(boxes(player)).to_contain_text("Sequential")


def test_each_of_many_passes_is_reached_by_the_timeline_the_hooks_and_the_search(open_file: Opener) -> None:
    page = open_file("passes", reduced_motion="reduce")
    player = page.locator(".hv-live .hv-player")
    expect(pass_menu(player)).to_have_value("0")
    click_timeline(player, timeline_box(player), 0.51)
    expect(pass_menu(player)).to_have_value("30")
    expect(player.locator(":is(.hv-node, .hv-module).hv-now").first).to_be_visible()
    player.focus()
    press(page, "]", "]")
    expect(pass_menu(player)).to_have_value("31")
    press(page, "End")
    expect(pass_menu(player)).to_have_value("59")
    search_for(player, "pass 7")
    expect(search_results(player).first).to_contain_text("Pass 7")
    press(page, "Enter")
    expect(pass_menu(player)).to_have_value("6")
    assert page.errors == []  # type: ignore[attr-defined]


def test_the_menu_of_passes_goes_to_a_pass_by_the_keyboard_and_keeps_the_focus(open_file: Opener) -> None:
    page = open_file("passes", reduced_motion="reduce")
    player = page.locator(".hv-live .hv-player")
    pass_menu(player).focus()
    press(page, "ArrowDown", "ArrowDown")
    expect(player.locator(".hv-count")).to_contain_text("pass 3 of 60")
    expect(pass_menu(player)).to_be_focused()
    expect(pass_menu(player).locator("option").nth(2)).to_have_text(re.compile(r"Pass 3 · loss \S+"))


def test_a_click_below_the_bars_of_the_timeline_goes_to_the_first_step_of_a_pass(open_file: Opener) -> None:
    player = open_file("passes", reduced_motion="reduce").locator(".hv-live .hv-player")
    track = timeline_box(player)
    steps = len(sixty_passes().steps) // 60
    for passes, number in ((32.5, 33), (30.5, 30)):  # beside a title, and on the title of pass 30
        player.page.mouse.click(track["x"] + passes / 60 * track["width"], track["y"] + track["height"] - 5)
        expect(pass_menu(player)).to_have_value(str(number - 1))
        expect(player.locator(".hv-count")).to_contain_text(f"{steps * (number - 1) + 1} of")


def test_click_opens_a_box_and_the_breadcrumb_closes_it(player: Locator) -> None:
    first = boxes(player).first
    first.click()
    expect(current_location(player)).to_have_text(re.compile(r"model\.\d+"))
    expect(player.locator(".hv-module")).to_have_count(4)
    player.locator(".hv-trail button").first.click()
    expect(current_location(player)).to_have_text("the whole pass")


def test_next_hook_search_and_end_open_the_box_of_the_step_and_steps_leave_it(player: Locator) -> None:
    page = player.page
    press(page, "]", "]")
    expect(player.locator(".hv-sentence")).to_contain_text("multiplied the gradient")
    expect(player.locator(".hv-pin.hv-now")).to_have_count(1)
    press(page, "End")
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    press(page, "Home")
    expect(current_location(player)).to_have_text("the whole pass")
    search_for(player, "model.5.0.weight")
    press(page, "Enter")
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    # From step to step the picture is one that shows the step, itself or in a closed box.
    for _ in range(12):
        press(page, "ArrowRight")
        expect(player.locator(".hv-elsewhere")).to_be_empty()
        expect(player.locator(":is(.hv-node, .hv-fold, .hv-module).hv-now").first).to_be_visible()


def press_end_and_leave_all_boxes(player: Locator) -> None:
    """Go to the last step, and show it in the picture of the whole pass."""
    press(player.page, "End")
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    while current_location(player).inner_text() != "the whole pass":
        around = player.locator(".hv-trail button").last.inner_text()
        press(player.page, "u")
        expect(current_location(player)).to_have_text(around)


RED_PIXELS = """(canvas, y) => {
  const pen = canvas.getContext("2d"), { data, width } = pen.getImageData(0, y, canvas.width, 1);
  const red = [...Array(width).keys()].filter((x) => data[4 * x + 3] && data[4 * x] > 1.5 * data[4 * x + 2]);
  return [red.length, red[0] / width, red.at(-1) / width];
}"""


def test_timeline_shows_nan_gradients_as_dashed_red_bars(open_file: Opener) -> None:
    page = open_file("chain")
    canvas = page.locator(".hv-long canvas")
    expect(page.locator(".hv-scale")).to_contain_text("norm")
    count, first, last = canvas.evaluate(RED_PIXELS, 2)
    assert count > 100 and 0.48 < first < 0.52 and last > 0.98
    assert canvas.evaluate(RED_PIXELS, 5)[0] == 0, "no other bar has gaps"


# -- colours


FILLS = """player => [...player.querySelectorAll(".hv-fold")].map((box) => {
  const { fill } = getComputedStyle(box.querySelector(":scope > .hv-box"));
  const blend = /#([\\w-]+)/.exec(fill);
  if (!blend) return fill;
  return [...document.getElementById(blend[1]).children].map((stop) => getComputedStyle(stop).stopColor).join();
})"""


def fills(player: Locator) -> list[str]:
    """The colour of each collapsed box, or both colours if it has two."""
    result: list[str] = player.evaluate(FILLS)
    return result


def test_boxes_are_coloured_by_gradient_norm_as_gradients_arrive(open_file: Opener) -> None:
    player = open_file("unequal", reduced_motion="reduce").locator(".hv-live .hv-player")
    expect(player.locator(".hv-picture")).to_be_visible()
    player.focus()
    plain = set(fills(player))
    assert len(plain) == 1
    press_end_and_leave_all_boxes(player)
    expect(player.locator(".hv-fold.hv-now")).to_have_count(1)
    coloured = fills(player)
    # The gradient vanishes, so each layer has a different colour.
    assert len(set(coloured)) == len(coloured) >= 5 and not plain & set(coloured)
    press(player.page, "c")
    assert len(set(fills(player))) <= 2  # done and now
    expect(player.locator(".hv-ramp")).not_to_be_visible()
    press(player.page, "c")
    assert fills(player) == coloured


def test_boxes_with_nan_and_with_zero_gradients_have_distinct_outlines(open_file: Opener) -> None:
    player = open_file("chain").locator(".hv-live .hv-player")
    player.focus()
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-bad").first).to_contain_text("NaN")
    widths = player.locator(".hv-bad > .hv-box").evaluate_all(
        "boxes => boxes.map(box => getComputedStyle(box).strokeWidth)"  # at once: the picture may be drawn again
    )
    assert widths and {*widths} <= {"4px", "7px"}  # a leaf has a thicker outline anyway
    player = open_file("zero").locator(".hv-live .hv-player")
    player.focus()
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-zero").first).to_contain_text("norm 0")
    dashed = player.locator(".hv-zero > .hv-box").first.evaluate("e => getComputedStyle(e).strokeDasharray")
    assert dashed != "none"


# -- the timeline


def test_step_in_a_large_trace_causes_few_dom_mutations(open_file: Opener) -> None:
    page = open_file("chain")
    page.locator(".hv-live .hv-picture").wait_for()
    counts = count_mutations(page.locator(".hv-live .hv-player"))
    assert min(counts) > 0 and max(counts) < 40


def search_results(player: Locator) -> Locator:
    return player.get_by_role("listbox").get_by_role("option")


def search_for(player: Locator, query: str) -> None:
    """Open the search by its key, and type ``query``."""
    press(player.page, "/")
    expect(player.get_by_role("combobox", name="Search")).to_be_focused()
    player.page.keyboard.type(query)


def test_search_finds_and_opens_a_module_by_keyboard(player: Locator) -> None:
    search_for(player, "tanh")
    expect(player.get_by_role("status")).to_contain_text("found; here are the first 12")
    expect(search_results(player)).to_have_count(12)
    press(player.page, "Escape")
    search_for(player, "model.41")
    expect(search_results(player).first).to_have_text(re.compile(r"module\s+model\.41\s+Sequential\s+step \d+"))
    expect(search_results(player).first).to_have_attribute("aria-selected", "true")
    press(player.page, "ArrowDown")
    expect(search_results(player).nth(1)).to_contain_text("model.41.0")
    expect(search_results(player).nth(1)).to_have_attribute("aria-selected", "true")
    active = player.get_by_role("combobox", name="Search").get_attribute("aria-activedescendant")
    assert active == search_results(player).nth(1).get_attribute("id")
    press(player.page, "ArrowUp", "ArrowDown", "Enter")
    expect(player.get_by_role("combobox", name="Search")).to_be_hidden()
    expect(current_location(player)).to_have_text("model.41")
    expect(player).to_be_focused()
    expect(player.locator(".hv-trail button")).to_have_count(1)
    expect(player.locator(".hv-title")).to_have_text("model.41.0 is called")


def test_escape_closes_the_search_and_restores_the_focus(player: Locator) -> None:
    count = player.locator(".hv-count").inner_text()
    search_for(player, "xyzzy")
    expect(player.get_by_role("status")).to_have_text("Nothing found.")
    press(player.page, "Enter", "ArrowDown", "Escape")
    expect(player).to_be_focused()
    button = player.get_by_role("button", name="Search")
    button.focus()
    press(player.page, "Enter")
    expect(player.get_by_role("combobox", name="Search")).to_be_focused()
    press(player.page, "Escape")
    expect(button).to_be_focused()
    expect(player.locator(".hv-count")).to_have_text(count)


@pytest.mark.parametrize(("width", "theme", "keys"), [(1280, "light", "/ w e i g h t"), (390, "dark", "End e")])
def test_search_and_open_box_have_no_layout_flaws_and_no_serious_axe_violation(
    open_file: Opener, width: int, theme: str, keys: str
) -> None:
    page = open_file("encoder", width, color_scheme=theme, reduced_motion="reduce")
    page.locator(".hv-live .hv-player").focus()
    press(page, *keys.split())
    page.wait_for_timeout(300)
    assert page.evaluate(FLAWS) == []
    assert violations(page, impacts=SERIOUS) == []
    assert page.errors == []  # type: ignore[attr-defined]
