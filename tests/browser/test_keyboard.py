"""Keyboard focus of the player, of the page around it, and of input methods."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect
from scenes import recorded

import hookviz as hv
from hookviz.support.messages import say
from tests.browser.conftest import note_errors, press
from tests.unit.test_whatif import a_to_e

Opener = Callable[[str], Page]
EMBEDDING_PAGE = '<input id="field"><iframe width="1200" height="700"></iframe>'
IME_KEY = {"key": "Process", "windowsVirtualKeyCode": 229}
"""The key event of the browser for a key that an input method handles."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keyboard")
    recorded().to_html(folder / "index.html")
    hv.whatif(a_to_e).to_html(folder / "whatif.html")
    (folder / "embedding.html").write_text(EMBEDDING_PAGE)
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
        shared_page.goto((folder / f"{name}.html").as_uri())
        expect(shared_page.locator(".hv-player").or_(shared_page.locator("iframe"))).to_be_visible()
        return shared_page

    return open_it


def focused_element(page: Page) -> str:
    """The tag and the class of the focused element."""
    element: str = page.evaluate("[document.activeElement.tagName, document.activeElement.className].join(' ').trim()")
    return element


def step_count(page: Page) -> str:
    return page.locator(".hv-count").inner_text()


# -- taking the focus


def test_page_in_an_iframe_does_not_take_the_focus_on_load(open_file: Opener) -> None:
    page = open_file("embedding")
    page.locator("#field").focus()
    page.locator("iframe").evaluate("frame => { frame.src = 'index.html'; }")
    player = page.frame_locator("iframe").locator(".hv-player")
    expect(player).to_be_visible()
    page.keyboard.type("abc")
    expect(page.locator("#field")).to_have_value("abc")
    player.locator(".hv-sentence").click()
    press(page, "ArrowRight")
    expect(player.locator(".hv-count")).to_have_text("Step 2 of 16")


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
    expect(page.locator(".hv-keys")).to_have_text(say("player.esc_stays"))
    expect(page.locator(".hv-heard")).to_have_text(say("player.esc_stays"))
    press(page, "ArrowRight")
    assert step_count(page) == "Step 3 of 16"
    expect(page.locator(".hv-keys")).to_be_hidden()
    press(page, "Escape", "ArrowRight", "Escape", "ArrowRight")
    assert step_count(page) == "Step 5 of 16", "a step between two escapes resets the count"


def test_second_escape_leaves_and_shows_a_hint_until_the_focus_returns(open_file: Opener) -> None:
    page = open_file("index")
    press(page, "ArrowRight", "Escape", "Escape")
    key_hint = page.locator(".hv-keys")
    expect(key_hint).to_have_text(say("player.esc_leaves"))
    expect(key_hint).to_be_visible()
    assert focused_element(page) == "BODY"
    press(page, "ArrowRight")
    assert step_count(page) == "Step 2 of 16"
    expect(key_hint).to_be_visible()
    press(page, "Tab")
    expect(key_hint).to_be_hidden()
    press(page, "ArrowRight")
    assert step_count(page) == "Step 3 of 16"
    press(page, "Escape", "Escape")
    expect(key_hint).to_be_visible()
    page.locator(".hv-sentence").click()
    expect(key_hint).to_be_hidden()


def test_leaving_a_question_shows_the_hint(open_file: Opener) -> None:
    page = open_file("index")
    press(page, "p", "ArrowRight", "Escape")
    expect(page.locator(".hv-keys")).to_be_hidden()  # it has closed the field
    press(page, "Escape", "Escape")
    expect(page.locator(".hv-question")).to_be_visible()
    expect(page.locator(".hv-keys")).to_have_text(say("player.esc_leaves"))


def test_escape_held_down_does_not_leave_the_player(open_file: Opener) -> None:
    page = open_file("index")
    for _ in range(3):
        page.keyboard.down("Escape")
    page.keyboard.up("Escape")
    assert focused_element(page) == "DIV hv-player"


def test_tab_and_shift_tab_leave_the_player(open_file: Opener) -> None:
    page = open_file("index")
    press(page, "Shift+Tab")
    assert "hv-player" not in focused_element(page)
    page.locator(".hv-player").focus()
    for _ in range(40):
        press(page, "Tab")
        if page.evaluate("!document.querySelector('.hv-player').contains(document.activeElement)"):
            return
    pytest.fail("the keyboard is still in the player")


# -- unavailable controls


def test_predict_is_disabled_with_a_reason_while_a_hook_is_off(open_file: Opener) -> None:
    page = open_file("whatif")
    button = page.get_by_role("button", name="Predict")
    expect(button).to_be_enabled()
    press(page, "1")
    expect(button).to_be_disabled()
    expect(button).to_have_accessible_description(say("player.ask_elsewhere"))
    border = "button => getComputedStyle(button).borderColor"
    assert button.evaluate(border) != page.get_by_role("button", name="Keys").evaluate(border)
    press(page, "p")
    expect(page.locator(".hv-told")).to_have_text(say("player.ask_elsewhere"))
    expect(page.locator(".hv-predicting")).to_have_count(0)
    press(page, "1")
    expect(button).to_be_enabled()
    expect(button).to_have_accessible_description("")
    press(page, "p")
    expect(page.locator(".hv-predicting")).to_have_count(1)


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


def test_full_width_digit_chooses_an_answer(open_file: Opener) -> None:
    page = open_file("index")
    press(page, "p", "ArrowRight", "2", "Enter", *["ArrowRight"] * 3)
    expect(page.locator(".hv-question")).to_have_text("Which hook runs next?")
    page.locator(".hv-choice").first.evaluate("""choice => choice.dispatchEvent(
      new KeyboardEvent("keydown", { key: "\\uff11", code: "Digit1", bubbles: true }))""")
    expect(page.locator(".hv-reason")).to_contain_text("That hook runs later")
