"""How the player is shown: breakpoints, larger text, the full screen and the layers, by keyboard alone."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import press
from tests.browser.test_screen import HIDDEN_AT

Opener = Callable[..., Page]

SMALLEST = """player => Math.min(...[...player.querySelectorAll("*")].filter((element) =>
    element.checkVisibility({ visibilityProperty: true }) && !element.matches(".hv-heard, title")
    && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
  ).map((element) => parseFloat(getComputedStyle(element).fontSize) * (element.getScreenCTM?.().a ?? 1)))"""
"""The size, in pixels on the screen, of the smallest letters that are to be seen."""


@pytest.fixture(scope="module")
def page(theme: str, open_page: Opener) -> Page:
    page = open_page("a_to_e.ipynb", theme=theme, height=720)
    page.emulate_media(reduced_motion="reduce")
    return page


@pytest.fixture
def player(page: Page) -> Locator:
    found = page.locator(".hv-player").first
    found.evaluate("player => player.scrollIntoView({ block: 'start' })")
    found.focus()
    page.keyboard.press("Home")
    return found


def is_at(player: Locator, step: int) -> None:
    expect(player.locator(".hv-count")).to_have_text(f"Step {step} of 16")


# -- breakpoints


def test_playing_stops_at_a_breakpoint_and_goes_on_from_there(page: Page, player: Locator) -> None:
    press(page, "]", "]", "b")
    is_at(player, 6)
    expect(player.locator(".hv-told")).to_have_text("Playing will stop wherever λ grad + 100 runs.")
    press(page, "[", " ")
    expect(player.locator(".hv-play")).to_have_text("Play")
    is_at(player, 6)
    press(page, " ")
    is_at(player, 7)
    press(page, " ", "[", "b")
    expect(player.locator(".hv-told")).to_have_text("Playing no longer stops at λ grad + 100.")
    expect(player.locator(".hv-sign")).to_have_count(0)


def test_a_breakpoint_has_a_sign_at_the_pin_the_step_and_the_row(page: Page, player: Locator) -> None:
    press(page, "]", "b")
    expect(player.locator(".hv-pin .hv-sign")).to_have_count(1)
    expect(player.locator(".hv-timeline .hv-sign")).to_have_count(1)
    expect(player.locator("tbody tr").first.get_by_role("img", name="Breakpoint")).to_be_visible()
    button = player.locator(".hv-where").get_by_role("button", name="Breakpoint")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(player.locator(".hv-sign")).to_have_count(0)


def test_a_breakpoint_where_no_hook_is_says_so(page: Page, player: Locator) -> None:
    press(page, "b")
    expect(player.locator(".hv-told")).to_contain_text("No hook runs in this step")


# -- larger text and the full screen


def test_no_larger_text_is_small(page: Page, player: Locator) -> None:
    assert player.evaluate(SMALLEST) < 18
    press(page, "l")
    for key in ("Home", "]", "]", "]", "b", "t", "n", "t", "n", "b", "End", "?"):
        press(page, key)
        page.wait_for_timeout(200)
        assert player.evaluate(SMALLEST) >= 18, key
    press(page, "Escape")
    player.locator(".hv-view > summary").press("Enter")
    press(page, "p", "Home", "ArrowRight")
    expect(player.locator(".hv-ask")).to_be_visible()
    assert player.evaluate(SMALLEST) >= 18
    press(page, "Escape", "p", "l")
    player.locator(".hv-view > summary").press("Enter")
    assert player.evaluate(SMALLEST) < 18


def test_larger_text_keeps_the_step_in_view(page: Page, player: Locator) -> None:
    press(page, "l")
    hidden = {}
    for step in range(1, 17):
        if cut := player.evaluate(HIDDEN_AT):
            hidden[step] = cut
        press(page, "ArrowRight")
    press(page, "l")
    assert hidden == {}


def test_the_player_fills_the_screen_and_gives_it_back(page: Page, player: Locator) -> None:
    press(page, "f")
    page.wait_for_function("document.fullscreenElement?.matches('.hv-player')")
    box = player.bounding_box()
    assert box and (box["width"], box["height"]) == (1280, 720)
    press(page, "]", "l")
    assert player.evaluate(SMALLEST) >= 18
    is_at(player, 2)
    bottom = player.locator(".hv-bar").evaluate("bar => bar.getBoundingClientRect().bottom")
    assert bottom <= 720
    press(page, "l", "f")
    page.wait_for_function("!document.fullscreenElement")
    press(page, "f")
    page.wait_for_function("document.fullscreenElement")
    press(page, "Escape")
    page.wait_for_function("!document.fullscreenElement")
    press(page, "ArrowRight")
    is_at(player, 3)  # the keyboard is still the player's


def test_a_browser_that_refuses_the_full_screen_is_said_so(page: Page, player: Locator) -> None:
    player.evaluate("player => player.requestFullscreen = () => Promise.reject(new TypeError('no'))")
    press(page, "f")
    expect(player.locator(".hv-told")).to_have_text("The browser does not allow full screen here.")
    player.evaluate("player => delete player.requestFullscreen")


# -- layers


def test_the_tensors_show_their_grad_as_it_is_written(page: Page, player: Locator) -> None:
    press(page, "t")
    picture = player.locator(".hv-picture:not([hidden])")
    expect(picture).to_contain_text("tensor c")
    facts = picture.locator("[data-id$='-f0']")
    expect(facts).to_have_count(5)
    written = lambda: sum("None" not in text for text in facts.all_text_contents())  # noqa: E731
    assert written() == 0
    press(page, "]", "]", "]")
    assert written() == 2
    expect(picture.locator(".hv-pin.hv-now")).to_contain_text("8 → 10")
    press(page, "End")
    assert written() == 5
    press(page, "Home")
    assert written() == 0
    press(page, "t")
    expect(player.locator(".hv-picture:not([hidden])")).not_to_contain_text("tensor c")


def test_the_lists_of_pre_hooks_belong_to_the_nodes(page: Page, player: Locator) -> None:
    lists = player.locator(".hv-picture:not([hidden]) .hv-text:visible")
    expect(lists).to_have_count(0)
    press(page, "n")
    expect(lists).to_have_count(5)
    assert sorted(lists.all_text_contents())[:2] == ["pre-hooks: c._backward_hooks", "pre-hooks: e._backward_hooks"]
    press(page, "t")
    expect(lists).to_have_count(5)
    press(page, "n")
    expect(lists).to_have_count(0)
    press(page, "t")


def test_a_click_and_a_breakpoint_work_in_a_layer_too(page: Page, player: Locator) -> None:
    press(page, "t")
    pin = player.locator(".hv-picture:not([hidden]) .hv-pin", has_text="c_hook")
    pin.click()
    is_at(player, 9)
    press(page, "b")
    expect(pin.locator(".hv-sign")).to_have_count(1)
    press(page, "t")
    expect(player.locator(".hv-picture:not([hidden]) .hv-pin .hv-sign")).to_have_count(1)
    press(page, "b")


# -- the menu


def test_the_menu_is_reached_and_left_by_keyboard(page: Page, player: Locator) -> None:
    summary = player.locator(".hv-view > summary")
    summary.press("Enter")
    press(page, "Tab", "Enter")
    tensors = player.get_by_role("button", name="Tensors")
    expect(tensors).to_have_attribute("aria-pressed", "true")
    press(page, "Enter")
    expect(tensors).to_have_attribute("aria-pressed", "false")
    press(page, "Escape")
    expect(player.locator(".hv-menu")).not_to_be_visible()
    expect(summary).to_be_focused()


@pytest.mark.both_themes
def test_axe_finds_nothing_serious_with_the_menu_open_and_text_large(page: Page, player: Locator) -> None:
    press(page, "]", "b", "l")
    player.locator(".hv-view > summary").press("Enter")
    found = Axe().run(page, context=".hv-player").response["violations"]
    assert [(rule["id"], rule["help"]) for rule in found if rule["impact"] in ("serious", "critical")] == []
    press(page, "Escape", "b", "l")
    assert page.errors == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [800, 390])
def test_nothing_is_cut_off_in_a_narrow_window(open_page: Opener, width: int) -> None:
    page = open_page("a_to_e.ipynb", width=width)
    page.keyboard.press("Control+b")
    player = page.locator(".hv-player").first
    player.scroll_into_view_if_needed()
    player.focus()
    press(page, "p", "ArrowRight")
    expect(player.locator(".hv-ask")).to_be_visible()
    for key in ("", "l"):
        press(page, "Escape", key) if key else None
        player.locator(".hv-view > summary").press("Enter")
        assert player.evaluate("e => e.scrollWidth - e.clientWidth") <= 1
        for part in (".hv-bar", ".hv-panel"):
            assert player.locator(part).evaluate("e => e.scrollWidth - e.clientWidth") <= 1, (part, key)
        menu, around = player.locator(".hv-menu").bounding_box(), player.bounding_box()
        assert menu and around and menu["x"] >= around["x"]
        player.locator(".hv-view > summary").press("Enter")
