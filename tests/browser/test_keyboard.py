"""Keyboard focus of the player and of the page around it."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from scenes import recorded

import hookviz as hv
from hookviz.player.html_page import render_output
from hookviz.player.labels import screen_labels
from hookviz.player.trace_content import TraceContent
from tests.browser.helpers import Opener, is_at, press
from tests.unit.test_whatif import a_to_e

FIELDS = '<input autofocus><textarea></textarea><p contenteditable="true">here</p><button>there</button>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with fields above the player, and one with two players."""
    folder = tmp_path_factory.mktemp("keyboard")
    recorded().to_html(folder / "fields.html")
    page = (folder / "fields.html").read_text(encoding="utf-8").replace("</h1>", f"</h1>{FIELDS}")
    (folder / "fields.html").write_text(page, encoding="utf-8")
    contents = TraceContent.of(recorded()._data).content(), hv.whatif(a_to_e).content()
    outputs = "".join(map(render_output, contents))
    (folder / "two.html").write_text(f"<!DOCTYPE html><h1>Two</h1>{outputs}", encoding="utf-8")
    return folder


def focused_element(page: Page) -> str:
    """The tag and the class of the focused element."""
    element: str = page.evaluate("[document.activeElement.tagName, document.activeElement.className].join(' ').trim()")
    return element


# -- taking the focus


def test_page_takes_the_focus_on_load(open_file: Opener) -> None:
    assert focused_element(open_file()) == "DIV hv-player"


def test_keys_of_another_element_do_not_reach_the_player(open_file: Opener) -> None:
    page = open_file("fields")
    expect(page.locator("input")).to_be_focused()
    for field in ("input", "textarea", "[contenteditable]", "header > button"):
        page.locator(field).first.focus()
        press(page, "ArrowRight", "]", "p")
        is_at(page, 1)
    expect(page.locator("input")).to_have_value("]p")
    expect(page.locator(".hv-predicting")).to_have_count(0)


# -- leaving


def test_first_escape_keeps_the_focus_and_explains_how_to_leave(open_file: Opener) -> None:
    page = open_file()
    press(page, "ArrowRight", "Escape")
    expect(page.locator(".hv-keys")).to_have_text(screen_labels()["esc_stays"])
    expect(page.locator(".hv-heard")).to_have_text(screen_labels()["esc_stays"])
    press(page, "ArrowRight")
    is_at(page, 3)
    expect(page.locator(".hv-keys")).to_be_hidden()
    press(page, "Escape", "ArrowRight", "Escape", "ArrowRight")
    is_at(page, 5)  # a step between two escapes resets the count


def test_second_escape_leaves_and_shows_a_hint_until_the_focus_returns(open_file: Opener) -> None:
    page = open_file()
    key_hint = page.locator(".hv-keys")
    press(page, "ArrowRight", "Escape", "Escape")
    expect(key_hint).to_have_text(screen_labels()["esc_free"])
    expect(page.locator(".hv-heard")).to_have_text(screen_labels()["esc_free"])
    assert focused_element(page) == "BODY"
    press(page, "Tab")
    expect(key_hint).to_be_hidden()
    press(page, "Escape", "Escape")
    expect(key_hint).to_be_visible()
    press(page, "]")  # the keys of the only player work still
    assert focused_element(page) == "DIV hv-player"
    is_at(page, 6)
    expect(key_hint).to_be_hidden()


def test_of_two_players_the_one_that_was_used_last_gets_the_keys_and_says_when_it_lets_go(open_file: Opener) -> None:
    page = open_file("two")
    first, second = (page.locator(".hv-player").nth(index) for index in (0, 1))
    expect(first).to_have_attribute("aria-label", "Player 1: backward pass of e")
    expect(second).to_have_attribute("aria-label", "Player 2: what-if, backward pass of e")
    first.locator(".hv-sentence").click()
    page.evaluate("document.activeElement.blur()")  # as when the focused element is removed
    press(page, "ArrowRight")
    is_at(first, 2)
    is_at(second, 1)
    page.locator("h1").click()
    expect(first.locator(".hv-keys")).to_have_text(screen_labels()["esc_leaves"])
    press(page, "ArrowRight")
    is_at(first, 2)
    first.locator(".hv-sentence").click()
    expect(first.locator(".hv-keys")).to_be_hidden()
    second.locator(".hv-sentence").click()
    expect(first.locator(".hv-keys")).to_be_hidden()


def test_tab_and_shift_tab_leave_the_player(open_file: Opener) -> None:
    page = open_file()
    press(page, "Shift+Tab")
    assert "hv-player" not in focused_element(page)
    page.locator(".hv-player").focus()
    for _ in range(60):
        press(page, "Tab")
        if page.evaluate("!document.querySelector('.hv-player').contains(document.activeElement)"):
            return
    pytest.fail("the keyboard is still in the player")
