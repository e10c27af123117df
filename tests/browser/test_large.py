"""Pages of large traces: collapsed boxes, the timeline, colours and the search."""

import re

import pytest
import torch
from playwright.sync_api import FloatRect, Locator, expect
from scenes import leaf
from torch import nn

import hookviz as hv
from tests.browser.helpers import Opener, errors_of, player_of, press, search_for

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


def chain(factor: float) -> hv.Trace:
    """600 ops one after the other; the one in the middle multiplies by ``factor``."""
    y = leaf(1.0)
    for i in range(600):
        y = y * (factor if i == 300 else 1.0001)
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


PAGES = {
    "layers": sixty_layers,
    "unequal": unequal_layers,
    "nan": lambda: chain(float("nan")),
    "zero": lambda: chain(0.0),
    "passes": sixty_passes,
}


def open_player(open_file: Opener, name: str) -> Locator:
    """Open a page without motion; its player gets the focus."""
    return player_of(open_file(name, reduced_motion="reduce"))


@pytest.fixture
def player(open_file: Opener) -> Locator:
    return open_player(open_file, "layers")


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


def hits_of(player: Locator) -> Locator:
    """What the search has found."""
    return player.get_by_role("listbox").get_by_role("option")


# -- many passes


def test_each_of_many_passes_is_reached_by_the_timeline_the_hooks_the_search_and_a_menu(open_file: Opener) -> None:
    player = open_player(open_file, "passes")
    page = player.page
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
    expect(hits_of(player).first).to_contain_text("Pass 7")
    press(page, "Enter")
    expect(pass_menu(player)).to_have_value("6")
    pass_menu(player).focus()
    press(page, "ArrowDown")
    expect(player.locator(".hv-count")).to_contain_text("pass 8 of 60")
    expect(pass_menu(player)).to_be_focused()
    expect(pass_menu(player).locator("option").nth(2)).to_have_text(re.compile(r"Pass 3 · loss \S+"))
    assert errors_of(page) == []


# -- boxes


def test_click_opens_a_box_and_the_breadcrumb_closes_it(player: Locator) -> None:
    expect(current_location(player)).to_have_text("the whole pass")
    expect(boxes(player)).to_have_count(1)
    expect(boxes(player)).to_contain_text(f"model 0 – {LAYERS - 1} × {LAYERS}")
    boxes(player).first.click()
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


def show_the_end_of_the_whole_pass(player: Locator) -> None:
    press(player.page, "End")
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    while current_location(player).inner_text() != "the whole pass":
        around = player.locator(".hv-trail button").last.inner_text()
        press(player.page, "u")
        expect(current_location(player)).to_have_text(around)


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
    player = open_player(open_file, "unequal")
    plain = set(fills(player))
    assert len(plain) == 1
    show_the_end_of_the_whole_pass(player)
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
    player = open_player(open_file, "nan")
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-bad").first).to_contain_text("NaN")
    widths = player.locator(".hv-bad > .hv-box").evaluate_all(
        "boxes => boxes.map(box => getComputedStyle(box).strokeWidth)"  # at once: the picture may be drawn again
    )
    assert widths and {*widths} <= {"4px", "7px"}  # a leaf has a thicker outline anyway
    player = open_player(open_file, "zero")
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-zero").first).to_contain_text("norm 0")
    dashed = player.locator(".hv-zero > .hv-box").first.evaluate("e => getComputedStyle(e).strokeDasharray")
    assert dashed != "none"


# -- the search


def test_search_finds_and_opens_a_module_by_keyboard(player: Locator) -> None:
    page, field = player.page, player.get_by_role("combobox", name="Search")
    search_for(player, "tanh")
    expect(player.get_by_role("status")).to_contain_text("found; here are the first 12")
    expect(hits_of(player)).to_have_count(12)
    press(page, "Escape")
    search_for(player, "model.41")
    expect(hits_of(player).first).to_have_text(re.compile(r"module\s+model\.41\s+Sequential\s+step \d+"))
    press(page, "ArrowDown")
    expect(hits_of(player).nth(1)).to_contain_text("model.41.0")
    expect(hits_of(player).nth(1)).to_have_attribute("aria-selected", "true")
    assert field.get_attribute("aria-activedescendant") == hits_of(player).nth(1).get_attribute("id")
    press(page, "ArrowUp", "ArrowDown", "Enter")
    expect(field).to_be_hidden()
    expect(current_location(player)).to_have_text("model.41")
    expect(player).to_be_focused()
    expect(player.locator(".hv-title")).to_have_text("model.41.0 is called")
