"""Keyboard focus of the player, of the page around it, and of input methods."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect
from scenes import recorded

import hookviz as hv
from hookviz.player.html_page import render_output
from hookviz.player.labels import screen_labels
from hookviz.player.trace_content import TraceContent
from tests.browser.conftest import note_errors, press
from tests.unit.test_whatif import a_to_e

Opener = Callable[[str], Page]
IME_KEY = {"key": "Process", "windowsVirtualKeyCode": 229}
"""The key event of the browser for a key that an input method handles."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keyboard")
    recorded().to_html(folder / "index.html")
    hv.whatif(a_to_e).to_html(folder / "whatif.html")
    recorded().diff(recorded()).to_html(folder / "compared.html")
    outputs = [
        render_output(content) for content in (TraceContent.of(recorded()._data).content(), hv.whatif(a_to_e).content())
    ]
    (folder / "two.html").write_text(f"<!DOCTYPE html><h1>Two</h1>{''.join(outputs)}", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def shared_page(chrome: Browser) -> Iterator[Page]:
    page = chrome.new_page(viewport={"width": 1280, "height": 800})
    note_errors(page)
    yield page
    page.close()


@pytest.fixture
def open_file(shared_page: Page, folder: Path) -> Callable[[str], Page]:
    """Load one of the pages in the shared browser tab."""

    def open_it(name: str) -> Page:
        shared_page.set_viewport_size({"width": 1280, "height": 800})
        shared_page.goto((folder / f"{name}.html").as_uri())
        expect(shared_page.locator(".hv-player .hv-count").first).to_be_visible()
        return shared_page

    return open_it


def focused_element(page: Page) -> str:
    """The tag and the class of the focused element."""
    element: str = page.evaluate("[document.activeElement.tagName, document.activeElement.className].join(' ').trim()")
    return element


def step_count(page: Page) -> str:
    return page.locator(".hv-count").inner_text()


# -- taking the focus


def test_page_takes_the_focus_on_load_unless_another_element_has_it(open_file: Opener, folder: Path) -> None:
    page = open_file("index")
    assert focused_element(page) == "DIV hv-player"
    before, after = (folder / "index.html").read_text(encoding="utf-8").split("</h1>")
    (folder / "field.html").write_text(f"{before}</h1><input autofocus>{after}", encoding="utf-8")
    page = open_file("field")
    expect(page.locator("input")).to_be_focused()
    page.keyboard.type("pb")
    expect(page.locator("input")).to_have_value("pb")


# -- leaving


def test_first_escape_keeps_the_focus_and_explains_how_to_leave(open_file: Opener) -> None:
    page = open_file("index")
    press(page, "ArrowRight", "Escape")
    expect(page.locator(".hv-keys")).to_have_text(screen_labels()["esc_stays"])
    expect(page.locator(".hv-heard")).to_have_text(screen_labels()["esc_stays"])
    press(page, "ArrowRight")
    assert step_count(page) == "Step 3 of 16"
    expect(page.locator(".hv-keys")).to_be_hidden()
    press(page, "Escape", "ArrowRight", "Escape", "ArrowRight")
    assert step_count(page) == "Step 5 of 16", "a step between two escapes resets the count"


def test_second_escape_leaves_and_shows_a_hint_until_the_focus_returns(open_file: Opener) -> None:
    page = open_file("index")
    press(page, "ArrowRight", "Escape", "Escape")
    key_hint = page.locator(".hv-keys")
    expect(key_hint).to_have_text(screen_labels()["esc_free"])
    expect(page.locator(".hv-heard")).to_have_text(screen_labels()["esc_free"])
    expect(key_hint).to_be_visible()
    assert focused_element(page) == "BODY"
    press(page, "Tab")
    expect(key_hint).to_be_hidden()
    press(page, "Escape", "Escape")
    expect(key_hint).to_be_visible()
    page.locator(".hv-sentence").click()
    expect(key_hint).to_be_hidden()


def test_keys_of_the_only_player_work_after_it_was_left(open_file: Opener) -> None:
    page = open_file("index")
    press(page, "Escape", "Escape")
    assert focused_element(page) == "BODY"
    press(page, "]")
    assert focused_element(page) == "DIV hv-player"
    expect(page.locator(".hv-count")).to_have_text("Step 2 of 16")
    expect(page.locator(".hv-keys")).to_be_hidden()


def test_click_on_the_page_leaves_the_keys_of_the_only_player_working(open_file: Opener) -> None:
    page = open_file("index")
    page.locator("h1").click(position={"x": 3, "y": 3})
    assert focused_element(page) == "BODY"
    expect(page.locator(".hv-keys")).to_be_hidden()
    press(page, "ArrowRight", "ArrowRight")
    assert step_count(page) == "Step 3 of 16"


def test_keys_that_are_typed_into_another_element_do_not_reach_the_player(open_file: Opener, folder: Path) -> None:
    before, after = (folder / "index.html").read_text(encoding="utf-8").split("</h1>")
    fields = '<input><textarea></textarea><p contenteditable="true">here</p><button>there</button>'
    (folder / "fields.html").write_text(f"{before}</h1>{fields}{after}", encoding="utf-8")
    page = open_file("fields")
    expect(page.locator(".hv-player")).to_be_focused()
    for field in ("input", "textarea", "[contenteditable]", "header > button"):
        page.locator(field).first.focus()
        expect(page.locator(".hv-keys")).to_have_count(1)
        press(page, "ArrowRight", "]", "p")
        assert step_count(page) == "Step 1 of 16"
    expect(page.locator(".hv-predicting")).to_have_count(0)


def test_of_two_players_the_one_that_was_used_last_gets_the_keys_and_says_when_it_lets_go(open_file: Opener) -> None:
    page = open_file("two")
    first, second = (page.locator(".hv-player").nth(index) for index in (0, 1))
    first.locator(".hv-sentence").click()
    page.evaluate("document.activeElement.blur()")  # as when the focused element is removed
    press(page, "ArrowRight")
    expect(first.locator(".hv-count")).to_have_text("Step 2 of 16")
    expect(second.locator(".hv-count")).to_have_text("Step 1 of 16")
    page.locator("h1").click()
    expect(first.locator(".hv-keys")).to_have_text(screen_labels()["esc_leaves"])
    press(page, "ArrowRight")
    expect(first.locator(".hv-count")).to_have_text("Step 2 of 16")
    first.locator(".hv-sentence").click()
    expect(first.locator(".hv-keys")).to_be_hidden()
    second.locator(".hv-sentence").click()
    expect(first.locator(".hv-keys")).to_be_hidden()


def test_each_player_of_a_page_has_its_own_name(open_file: Opener) -> None:
    names = "[...document.querySelectorAll('.hv-player')].map((player) => player.getAttribute('aria-label'))"
    assert open_file("index").evaluate(names) == ["Player: backward pass of e"]
    assert open_file("whatif").evaluate(names) == ["Player: what-if, backward pass of e"]
    assert open_file("two").evaluate(names) == [
        "Player 1: backward pass of e",
        "Player 2: what-if, backward pass of e",
    ]


@pytest.mark.parametrize(("size", "large"), [((1280, 720), True), ((390, 844), False)])
def test_list_of_keys_fits_the_screen(open_file: Opener, size: tuple[int, int], large: bool) -> None:
    page = open_file("whatif")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    press(page, *(["l"] if large else []), "?")
    dialog, keys = page.locator(".hv-help"), page.locator(".hv-help-list")
    box = dialog.bounding_box()
    assert box is not None and min(box["x"], box["y"]) >= 0
    assert box["x"] + box["width"] <= size[0] and box["y"] + box["height"] <= size[1]
    assert keys.evaluate("list => list.scrollWidth - list.clientWidth") <= 1
    hidden = keys.evaluate("list => list.scrollHeight - list.clientHeight")
    if large:
        assert hidden <= 1 or keys.get_attribute("tabindex") == "0", "what does not fit can be scrolled by keyboard"
    else:
        assert hidden <= 1


def test_tab_and_shift_tab_leave_the_player(open_file: Opener) -> None:
    page = open_file("index")
    press(page, "Shift+Tab")
    assert "hv-player" not in focused_element(page)
    page.locator(".hv-player").focus()
    for _ in range(60):
        press(page, "Tab")
        if page.evaluate("!document.querySelector('.hv-player').contains(document.activeElement)"):
            return
    pytest.fail("the keyboard is still in the player")


# -- unavailable controls


def test_predict_is_disabled_with_a_reason_where_two_recordings_are_compared(open_file: Opener) -> None:
    page = open_file("compared")
    button = page.get_by_role("button", name="Predict")
    expect(button).to_be_disabled()
    expect(button).to_have_accessible_description(screen_labels()["ask_compared"])
    border = "button => getComputedStyle(button).borderColor"
    assert button.evaluate(border) != page.get_by_role("button", name="Keys").evaluate(border)
    for key in ("p", "r"):
        press(page, "ArrowRight", key)
        expect(page.locator(".hv-told")).to_have_text(screen_labels()["ask_compared"])
    expect(page.locator(".hv-predicting")).to_have_count(0)


# -- input methods


def press_through_input_method(session: CDPSession, code: str, **options: Any) -> None:
    """Press a key that an input method handles, so that the event identifies it by ``code`` only."""
    session.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", "code": code, **IME_KEY, **options})
    session.send("Input.dispatchKeyEvent", {"type": "keyUp", "code": code, **IME_KEY, **options})


def test_player_keys_work_with_an_input_method(open_file: Opener) -> None:
    page = open_file("whatif")
    session = page.context.new_cdp_session(page)
    press_through_input_method(session, "BracketRight")
    assert step_count(page) == "Step 2 of 16"
    press_through_input_method(session, "KeyL")
    expect(page.locator(".hv-large")).to_have_count(1)
    press_through_input_method(session, "Digit1")
    expect(page.locator("[aria-checked=false]")).to_have_count(1)
    press_through_input_method(session, "Slash", modifiers=8)
    expect(page.locator("dialog")).to_be_visible()


def test_enter_during_composition_in_an_answer_does_not_submit_it(open_file: Opener) -> None:
    page = open_file("index")
    session = page.context.new_cdp_session(page)
    press(page, "p", "ArrowRight")
    field = page.locator(".hv-ask .hv-field")
    session.send("Input.imeSetComposition", {"text": "\uff12", "selectionStart": 1, "selectionEnd": 1})
    press_through_input_method(session, "KeyL")
    expect(page.locator(".hv-large")).to_have_count(0)
    press(page, "Enter", "Escape")
    expect(page.locator(".hv-reason")).to_have_text("")
    expect(field).to_be_focused()
    session.send("Input.insertText", {"text": "\uff12\uff0e\uff10"})
    expect(field).to_have_value("\uff12\uff0e\uff10")
    press(page, "Enter")
    expect(page.locator(".hv-told")).to_have_text("Right.")
    assert page.errors == []  # type: ignore[attr-defined]
