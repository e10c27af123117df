"""The player in JupyterLab: keys and mouse, separation from the notebook's keys, and a linked slider."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from hookviz.player.labels import screen_labels
from tests.browser.helpers import is_at, press

HAS_FOCUS = "part => document.activeElement.closest(part) !== null"


@pytest.fixture(scope="module")
def page(open_page: Callable[..., Page]) -> Page:
    return open_page("a_to_e.ipynb")


@pytest.fixture
def player(page: Page) -> Locator:
    found = page.locator(".hv-player").first
    found.scroll_into_view_if_needed()
    found.focus()
    page.keyboard.press("Home")
    return found


def test_arrow_keys_step_to_c_hook_and_show_its_values(page: Page, player: Locator) -> None:
    press(page, *["ArrowRight"] * 8)
    panel = player.locator(".hv-panel")
    expect(panel).to_contain_text("Step 9 of 16")
    expect(panel).to_contain_text("c_hook changed the gradient from 8 to 10")
    expect(panel.locator(".hv-card")).to_have_text(["before8", "after10"])
    expect(panel).to_contain_text(re.compile(r"In \[\d+\], line 1"))
    expect(player.locator(".hv-program [aria-current]")).to_contain_text("return grad + 2")


def test_clicks_on_a_pin_and_on_a_table_row_go_to_the_step_of_their_hook(player: Locator) -> None:
    player.locator(".hv-pin", has_text="c_hook").first.click()
    expect(player.locator(".hv-panel")).to_contain_text("c_hook changed the gradient")
    player.locator(".hv-firings button", has_text="10").click()
    expect(player.locator(".hv-panel")).to_contain_text("only looked at the gradient")


def test_notebook_does_not_receive_keys_of_the_player(page: Page, player: Locator) -> None:
    cells, prompts = page.locator(".jp-Notebook .jp-Cell"), page.locator(".jp-InputPrompt")
    count, first = cells.count(), prompts.all_inner_texts()[:4]  # the fifth may still be on its way
    press(page, "d", "d", "j", "k", "m", "z", "a", "b", "x", "0", "0", "Enter", "Escape")
    press(page, "]", "Escape", "b", "Escape", "d", "d", "b")  # a key after one Escape is the player's, too
    page.wait_for_timeout(300)
    assert cells.count() == count
    assert prompts.all_inner_texts()[:4] == first
    assert page.locator(".jp-MarkdownCell").count() == 0
    player.locator(".hv-sentence").click()
    page.evaluate("document.activeElement.blur()")  # as when the focused part of the player vanishes
    press(page, "d", "d", "a", "]")
    assert page.evaluate(HAS_FOCUS, ".hv-player")
    assert cells.count() == count


def test_two_escapes_return_the_focus_to_the_notebook_with_a_hint(page: Page, player: Locator) -> None:
    press(page, "ArrowRight", "Escape", "Escape")
    assert page.evaluate(HAS_FOCUS, ".jp-Notebook") and not page.evaluate(HAS_FOCUS, ".hv-player")
    expect(player.locator(".hv-keys")).to_have_text(screen_labels()["esc_leaves"])
    press(page, "ArrowRight")
    is_at(player, 2)
    for _ in range(20):  # from the cell below, Shift+Tab goes up into the player
        press(page, "Shift+Tab")
        if page.evaluate(HAS_FOCUS, ".hv-player"):
            break
    expect(player.locator(".hv-keys")).to_be_hidden()
    press(page, "ArrowRight")
    is_at(player, 3)


def test_shift_enter_runs_the_cell_below_the_player(page: Page, player: Locator) -> None:
    player.evaluate("player => player.scrollIntoView({block: 'start'})")
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt")
    own, following = (prompts.nth(number).text_content() or "" for number in (3, 4))
    player.locator(".hv-sentence").click()
    player.focus()
    press(page, "Shift+Enter")
    expect(prompts.nth(4)).not_to_have_text(following)
    expect(prompts.nth(3)).to_have_text(own)
    page.mouse.wheel(0, -2000)  # JupyterLab, which goes on to the next cell, may hide that of the player
    expect(player).to_be_visible()


def test_linked_slider_and_player_move_each_other(page: Page) -> None:
    linked_player = page.locator(".hv-player").nth(1)
    readout, handle = page.locator(".widget-readout"), page.locator(".widget-slider .noUi-handle")
    readout.scroll_into_view_if_needed()  # the slider is drawn after the player
    for key in ("Home", "ArrowRight", "ArrowRight"):
        linked_player.press(key)
    expect(readout).to_have_text("2")
    handle.press("ArrowRight")
    is_at(linked_player, 4)
    for key in ("Home", "p"):
        linked_player.press(key)
    handle.press("End")
    expect(linked_player.locator(".hv-question")).to_contain_text("is about to run on e")
    is_at(linked_player, 1)
    expect(readout).to_have_text("0")
    linked_player.focus()
    press(page, "p", "Home")
