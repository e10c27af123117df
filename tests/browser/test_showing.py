"""Breakpoints, larger text, full screen, layers and the menu of the player, by keyboard."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.helpers import SERIOUS, Opener, errors_of, is_at, press, violations


@pytest.fixture
def page(open_file: Opener) -> Page:
    page = open_file("index", 1280, 720, reduced_motion="reduce")
    page.bring_to_front()  # the browser fills the screen with the page in front only
    return page


@pytest.fixture
def player(page: Page) -> Locator:
    return page.locator(".hv-player")


# -- breakpoints


def test_playing_stops_at_a_breakpoint_and_continues_from_it(page: Page, player: Locator) -> None:
    press(page, "]", "]", "b")
    is_at(player, 6)
    expect(player.locator(".hv-told")).to_have_text("Playing will stop wherever λ grad + 100 runs.")
    press(page, "[", " ")
    expect(player.locator(".hv-button-play")).to_have_attribute("aria-label", "Play")
    is_at(player, 6)
    press(page, " ")
    is_at(player, 7)
    press(page, " ", "[", "b")
    expect(player.locator(".hv-told")).to_have_text("Playing no longer stops at λ grad + 100.")
    expect(player.locator(".hv-sign")).to_have_count(0)


# -- larger text and the full screen


def test_refused_full_screen_is_reported(page: Page, player: Locator) -> None:
    player.evaluate("player => player.requestFullscreen = () => Promise.reject(new TypeError('no'))")
    press(page, "f")
    expect(player.locator(".hv-told")).to_have_text("The browser does not allow full screen here.")


# -- the menu


def test_view_menu_is_opened_used_and_closed_by_keyboard(page: Page, player: Locator) -> None:
    summary, tensors = player.locator(".hv-view > summary"), player.get_by_role("button", name="Tensors")
    press(page, "]", "b", "l")
    summary.press("Enter")
    press(page, "Tab", "Enter")
    expect(tensors).to_have_attribute("aria-pressed", "true")
    press(page, "Enter")
    expect(tensors).to_have_attribute("aria-pressed", "false")
    assert violations(page, inside=".hv-player", impacts=SERIOUS) == []
    press(page, "Escape")
    expect(player.locator(".hv-menu")).not_to_be_visible()
    expect(summary).to_be_focused()
    assert errors_of(page) == []
