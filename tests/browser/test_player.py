"""The player in JupyterLab: keys and mouse, separation from the notebook's keys, and DOM mutations per step."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from hookviz.support.messages import say
from tests.browser.accessibility import violations
from tests.browser.conftest import count_mutations, press

Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def page(theme: str, open_page: Opener) -> Page:
    return open_page("a_to_e.ipynb", theme=theme)


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
    expect(panel).to_contain_text("c_hook on c replaced the gradient: 8 → 10.")
    expect(panel.locator(".hv-card")).to_have_text(["before8", "after10"])
    expect(panel).to_contain_text(re.compile(r"In \[\d+\], line 1"))
    expect(player.locator(".hv-program [aria-current]")).to_contain_text("return grad + 2")


def test_bracket_keys_step_from_hook_to_hook(page: Page, player: Locator) -> None:
    counts = []
    for _ in range(4):
        press(page, "]")
        counts.append(player.locator(".hv-count").inner_text())
    assert counts == ["Step 2 of 16", "Step 6 of 16", "Step 9 of 16", "Step 10 of 16"]
    press(page, "[")
    expect(player.locator(".hv-count")).to_have_text("Step 9 of 16")


def test_end_and_home_keys_go_to_the_last_and_the_first_step(page: Page, player: Locator) -> None:
    press(page, "End")
    expect(player.locator(".hv-panel")).to_contain_text("b.grad is written: 20.")
    press(page, "Home")
    expect(player.locator(".hv-panel")).to_contain_text("Backward starts at e with the gradient 1.")


def test_space_starts_and_stops_playing(page: Page, player: Locator) -> None:
    press(page, " ")
    expect(player.locator(".hv-count")).to_have_text(re.compile(r"Step (?!1 |2 )\d+ of 16"))
    press(page, " ")
    count_when_paused = player.locator(".hv-count").inner_text()
    page.wait_for_timeout(1_600)
    assert player.locator(".hv-count").inner_text() == count_when_paused


def test_click_on_a_pin_goes_to_the_step_of_its_hook(page: Page, player: Locator) -> None:
    pin = player.locator(".hv-pin", has_text="c_hook").first
    pin.click()
    expect(player.locator(".hv-panel")).to_contain_text("c_hook on c replaced the gradient")


def test_click_on_a_table_row_goes_to_the_step_of_its_hook(page: Page, player: Locator) -> None:
    player.locator(".hv-firings button", has_text="10").click()
    expect(player.locator(".hv-panel")).to_contain_text("looked at the gradient and left it unchanged: 10.")


def test_notebook_does_not_receive_keys_of_the_player(page: Page, player: Locator) -> None:
    cells, prompts = page.locator(".jp-Notebook .jp-Cell"), page.locator(".jp-InputPrompt")
    count, first = cells.count(), prompts.all_inner_texts()[:4]  # the fifth may still be on its way
    press(page, "d", "d", "j", "k", "m", "z", "a", "b", "x", "0", "0", "Enter", "Escape")
    page.wait_for_timeout(300)
    assert cells.count() == count
    assert prompts.all_inner_texts()[:4] == first
    assert page.locator(".jp-MarkdownCell").count() == 0


def test_notebook_receives_no_key_when_the_focused_part_of_the_player_vanishes(page: Page, player: Locator) -> None:
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    player.locator(".hv-sentence").click()
    page.evaluate("document.activeElement.blur()")
    press(page, "d", "d", "a", "]")
    assert page.evaluate("document.activeElement.closest('.hv-player') !== null")
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells


def test_player_says_that_it_has_let_go_when_a_cell_is_clicked(page: Page, player: Locator) -> None:
    player.locator(".hv-sentence").click()
    count = player.locator(".hv-count").inner_text()
    page.locator(".jp-InputPrompt").nth(1).click()
    expect(player.locator(".hv-keys")).to_have_text(say("player.esc_leaves"))
    press(page, "ArrowRight")
    expect(player.locator(".hv-count")).to_have_text(count)
    player.locator(".hv-sentence").click()
    expect(player.locator(".hv-keys")).to_be_hidden()
    press(page, "ArrowRight")
    expect(player.locator(".hv-count")).not_to_have_text(count)


def test_each_player_of_the_notebook_has_its_own_name(page: Page, player: Locator) -> None:
    count = page.locator(".hv-player").count()
    assert count > 1
    for index in range(count):
        name = f"Player {index + 1}: backward pass of e"
        expect(page.locator(".hv-player").nth(index)).to_have_accessible_name(name)


def test_question_mark_opens_the_key_list(page: Page, player: Locator) -> None:
    press(page, "?")
    expect(player.locator("dialog")).to_be_visible()
    press(page, "Escape")
    expect(player.locator("dialog")).not_to_be_visible()


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
    expect(player.locator(".hv-keys")).to_have_text(say("player.esc_leaves"))
    count = player.locator(".hv-count").inner_text()
    press(page, "ArrowRight")
    assert player.locator(".hv-count").inner_text() == count
    player.focus()
    expect(player.locator(".hv-keys")).to_be_hidden()


def test_shift_enter_in_the_player_runs_the_cell(open_page: Opener) -> None:
    page = open_page("a_to_e.ipynb")
    player = page.locator(".hv-player").first
    player.evaluate("player => player.scrollIntoView({block: 'start'})")
    prompt = page.locator(".jp-CodeCell").nth(3).locator(".jp-InputPrompt")
    before = prompt.inner_text()
    player.locator(".hv-sentence").click()
    player.focus()
    press(page, "Shift+Enter")
    expect(prompt).not_to_have_text(before)


def test_step_causes_few_dom_mutations(player: Locator) -> None:
    counts = count_mutations(player)
    assert min(counts) > 0 and max(counts) < 50


def test_linked_slider_and_player_move_each_other(page: Page) -> None:
    linked_player = page.locator(".hv-player").nth(1)
    readout, handle = page.locator(".widget-readout"), page.locator(".widget-slider .noUi-handle")
    readout.scroll_into_view_if_needed()  # the slider is drawn after the player
    for key in ("Home", "ArrowRight", "ArrowRight"):
        linked_player.press(key)
    expect(readout).to_have_text("2")
    handle.press("ArrowRight")
    expect(linked_player.locator(".hv-count")).to_have_text("Step 4 of 16")


def test_nothing_is_written_to_the_console(page: Page, player: Locator) -> None:
    press(page, "End", "Home", "]", "ArrowRight")
    assert page.errors == []  # type: ignore[attr-defined]


@pytest.mark.both_themes
def test_axe_reports_no_violation(page: Page, player: Locator) -> None:
    press(page, "]")
    assert violations(page, inside=".hv-player") == []


@pytest.mark.both_themes
def test_player_follows_the_theme_of_jupyterlab(page: Page, player: Locator) -> None:
    dark = page.evaluate("document.body.dataset.jpThemeLight") == "false"
    ink = page.evaluate("getComputedStyle(document.querySelector('.hv-panel')).color")
    brightness = sum(int(part) for part in ink[ink.index("(") + 1 : -1].split(",")[:3]) / 3
    assert (brightness > 128) == dark


@pytest.mark.parametrize("width", [800, 390])
def test_player_does_not_overflow_in_a_narrow_window(open_page: Opener, width: int) -> None:
    page = open_page("a_to_e.ipynb", width=width)
    page.keyboard.press("Control+b")
    player = page.locator(".hv-player").first
    player.scroll_into_view_if_needed()
    overflow = player.evaluate("e => e.scrollWidth - e.clientWidth")
    assert overflow <= 1
    expect(player.locator(".hv-sentence")).to_be_visible()
