"""The player in JupyterLab: keys and mouse, separation from the notebook's keys, and DOM mutations per step."""

import re
from collections.abc import Callable
from contextlib import suppress

import pytest
from playwright.sync_api import Locator, Page, expect

from hookviz.player.labels import screen_labels
from tests.browser.accessibility import violations
from tests.browser.conftest import count_mutations, press

Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def page(open_page: Opener) -> Page:
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


def test_clicks_on_a_pin_and_on_a_table_row_go_to_the_step_of_their_hook(page: Page, player: Locator) -> None:
    player.locator(".hv-pin", has_text="c_hook").first.click()
    expect(player.locator(".hv-panel")).to_contain_text("c_hook changed the gradient")
    player.locator(".hv-firings button", has_text="10").click()
    expect(player.locator(".hv-panel")).to_contain_text("only looked at the gradient")


def test_notebook_does_not_receive_keys_of_the_player(page: Page, player: Locator) -> None:
    cells, prompts = page.locator(".jp-Notebook .jp-Cell"), page.locator(".jp-InputPrompt")
    count, first = cells.count(), prompts.all_inner_texts()[:4]  # the fifth may still be on its way
    press(page, "d", "d", "j", "k", "m", "z", "a", "b", "x", "0", "0", "Enter", "Escape")
    page.wait_for_timeout(300)
    assert cells.count() == count
    assert prompts.all_inner_texts()[:4] == first
    assert page.locator(".jp-MarkdownCell").count() == 0
    player.locator(".hv-sentence").click()
    page.evaluate("document.activeElement.blur()")  # as when the focused part of the player vanishes
    press(page, "d", "d", "a", "]")
    assert page.evaluate("document.activeElement.closest('.hv-player') !== null")
    assert cells.count() == count


def test_player_says_that_it_has_let_go_when_a_cell_is_clicked(page: Page, player: Locator) -> None:
    player.locator(".hv-sentence").click()
    count = player.locator(".hv-count").inner_text()
    page.locator(".jp-InputPrompt").nth(1).click()
    expect(player.locator(".hv-keys")).to_have_text(screen_labels()["esc_leaves"])
    press(page, "ArrowRight")
    expect(player.locator(".hv-count")).to_have_text(count)
    player.locator(".hv-sentence").click()
    expect(player.locator(".hv-keys")).to_be_hidden()
    press(page, "ArrowRight")
    expect(player.locator(".hv-count")).not_to_have_text(count)


def test_key_after_one_escape_does_not_edit_the_notebook(page: Page, player: Locator) -> None:
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    press(page, "]", "Escape", "b", "Escape", "d", "d")
    assert player.evaluate("player => player.contains(document.activeElement)")
    expect(player.locator(".hv-told")).to_contain_text("Playing will stop wherever")
    press(page, "b")
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells


def test_two_escapes_return_the_focus_to_the_notebook_with_a_hint(page: Page, player: Locator) -> None:
    press(page, "ArrowRight", "Escape", "Escape")
    has_focus = "part => document.activeElement.closest(part) !== null"
    assert page.evaluate(has_focus, ".jp-Notebook") and not page.evaluate(has_focus, ".hv-player")
    expect(player.locator(".hv-keys")).to_have_text(screen_labels()["esc_leaves"])
    count = player.locator(".hv-count").inner_text()
    press(page, "ArrowRight")
    assert player.locator(".hv-count").inner_text() == count
    with suppress(AssertionError):  # JupyterLab may still take the focus for the cell that it selects
        player.focus()
        expect(player.locator(".hv-keys")).to_be_hidden(timeout=5_000)
    player.focus()
    expect(player.locator(".hv-keys")).to_be_hidden()


def test_shift_enter_after_two_escapes_runs_the_next_cell(page: Page, player: Locator) -> None:
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt")
    own, following = prompts.nth(3).inner_text(), prompts.nth(4).inner_text()
    press(page, "]", "Escape", "Escape")
    expect(page.locator(".jp-CodeCell").nth(4)).to_have_class(re.compile("jp-mod-active"))
    press(page, "Shift+Enter")
    expect(prompts.nth(4)).not_to_have_text(following)
    assert prompts.nth(3).inner_text() == own and player.is_visible()


def test_step_causes_few_dom_mutations(player: Locator) -> None:
    counts = count_mutations(player)
    assert min(counts) > 0 and max(counts) < 60


def test_linked_slider_and_player_move_each_other(page: Page) -> None:
    linked_player = page.locator(".hv-player").nth(1)
    readout, handle = page.locator(".widget-readout"), page.locator(".widget-slider .noUi-handle")
    readout.scroll_into_view_if_needed()  # the slider is drawn after the player
    for key in ("Home", "ArrowRight", "ArrowRight"):
        linked_player.press(key)
    expect(readout).to_have_text("2")
    handle.press("ArrowRight")
    expect(linked_player.locator(".hv-count")).to_have_text("Step 4 of 16")


def test_linked_slider_does_not_skip_a_question(page: Page) -> None:
    linked_player = page.locator(".hv-player").nth(1)
    handle = page.locator(".widget-slider .noUi-handle")
    handle.scroll_into_view_if_needed()
    linked_player.focus()
    press(page, "Home", "p")
    handle.press("End")
    expect(linked_player.locator(".hv-question")).to_contain_text("is about to run on e")
    expect(linked_player.locator(".hv-count")).to_have_text("Step 1 of 16")
    expect(page.locator(".widget-readout")).to_have_text("0")
    linked_player.focus()
    press(page, "p", "Home")


def test_nothing_is_written_to_the_console(page: Page, player: Locator) -> None:
    press(page, "End", "Home", "]", "ArrowRight")
    assert page.errors == []  # type: ignore[attr-defined]


def test_an_output_has_no_address_and_shares_the_picture_alone(page: Page, player: Locator) -> None:
    address = page.url
    press(page, "ArrowRight")
    expect(player.locator(".hv-count")).to_have_text("Step 2 of 16")
    assert page.url == address
    player.locator(".hv-share summary").click()
    expect(player.locator(".hv-share-menu .hv-button")).to_have_text(["Copy picture as PNG", "Copy picture as SVG"])
    press(page, "Escape")


def brightness_of_ink(page: Page) -> float:
    ink = page.evaluate("getComputedStyle(document.querySelector('.hv-panel')).color")
    return sum(int(part) for part in ink[ink.index("(") + 1 : -1].split(",")[:3]) / 3


def test_player_is_light_and_without_violations(page: Page, player: Locator) -> None:
    press(page, "]")
    assert brightness_of_ink(page) < 128
    assert violations(page, inside=".hv-player") == []


def test_player_follows_the_dark_theme_of_jupyterlab_without_violations(open_page: Opener) -> None:
    page = open_page("a_to_e.ipynb", theme="dark")
    page.locator(".hv-player").first.press("]")
    assert brightness_of_ink(page) > 128
    assert violations(page, inside=".hv-player") == []


def test_shift_enter_in_the_player_runs_the_next_cell(page: Page, player: Locator) -> None:
    player.evaluate("player => player.scrollIntoView({block: 'start'})")
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt")
    own, following = prompts.nth(3).inner_text(), prompts.nth(4).inner_text()
    player.locator(".hv-sentence").click()
    player.focus()
    press(page, "Shift+Enter")
    expect(prompts.nth(4)).not_to_have_text(following)
    assert prompts.nth(3).inner_text() == own and player.is_visible()
