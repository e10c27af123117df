"""Who has the keyboard: the player, the page around it, or an input method."""

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
EMBEDDING = '<input id="field"><iframe width="1200" height="700"></iframe>'
PROCESS = {"key": "Process", "windowsVirtualKeyCode": 229}
"""What the browser reports of a key that an input method has taken."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keyboard")
    recorded().to_html(folder / "index.html")
    hv.whatif(a_to_e).to_html(folder / "whatif.html")
    (folder / "embedding.html").write_text(EMBEDDING)
    return folder


@pytest.fixture(scope="module")
def lasting(chrome: Browser) -> Iterator[Page]:
    page = chrome.new_page(viewport={"width": 1280, "height": 800})
    note_errors(page)
    yield page
    page.close()


@pytest.fixture
def at(lasting: Page, folder: Path) -> Callable[[str], Page]:
    """Opens one of the pages anew, where the one before was."""

    def open_it(name: str) -> Page:
        lasting.goto((folder / f"{name}.html").as_uri())
        expect(lasting.locator(".hv-player").or_(lasting.locator("iframe"))).to_be_visible()
        return lasting

    return open_it


def focused(page: Page) -> str:
    """The tag of what has the keyboard, and its class."""
    found: str = page.evaluate("[document.activeElement.tagName, document.activeElement.className].join(' ').trim()")
    return found


def count(page: Page) -> str:
    return page.locator(".hv-count").inner_text()


# -- taking it


def test_a_page_in_a_frame_leaves_the_keyboard_to_the_page_around_it(at: Opener) -> None:
    page = at("embedding")
    page.locator("#field").focus()
    page.locator("iframe").evaluate("frame => { frame.src = 'index.html'; }")
    player = page.frame_locator("iframe").locator(".hv-player")
    expect(player).to_be_visible()
    page.keyboard.type("abc")
    expect(page.locator("#field")).to_have_value("abc")
    player.locator(".hv-sentence").click()
    press(page, "ArrowRight")
    expect(player.locator(".hv-count")).to_have_text("Step 2 of 16")


def test_a_page_takes_the_keyboard_only_where_nothing_else_has_it(at: Opener, folder: Path) -> None:
    page = at("index")
    assert focused(page) == "DIV hv-player"
    before, after = (folder / "index.html").read_text(encoding="utf-8").split("</h1>")
    (folder / "field.html").write_text(f"{before}</h1><input autofocus>{after}", encoding="utf-8")
    page = at("field")
    expect(page.locator("input")).to_be_focused()
    page.keyboard.type("pb")
    expect(page.locator("input")).to_have_value("pb")


# -- giving it away


def test_the_first_escape_keeps_the_keys_and_says_how_to_leave(at: Opener) -> None:
    page = at("index")
    press(page, "ArrowRight", "Escape")
    expect(page.locator(".hv-keys")).to_have_text(say("player.esc_stays"))
    expect(page.locator(".hv-heard")).to_have_text(say("player.esc_stays"))
    press(page, "ArrowRight")
    assert count(page) == "Step 3 of 16"
    expect(page.locator(".hv-keys")).to_be_hidden()
    press(page, "Escape", "ArrowRight", "Escape", "ArrowRight")
    assert count(page) == "Step 5 of 16", "each of them was a first one"


def test_the_second_leaves_with_a_sign_until_the_keyboard_is_back(at: Opener) -> None:
    page = at("index")
    press(page, "ArrowRight", "Escape", "Escape")
    sign = page.locator(".hv-keys")
    expect(sign).to_have_text(say("player.esc_leaves"))
    expect(sign).to_be_visible()
    assert focused(page) == "BODY"
    press(page, "ArrowRight")
    assert count(page) == "Step 2 of 16"
    expect(sign).to_be_visible()
    press(page, "Tab")
    expect(sign).to_be_hidden()
    press(page, "ArrowRight")
    assert count(page) == "Step 3 of 16"
    press(page, "Escape", "Escape")
    expect(sign).to_be_visible()
    page.locator(".hv-sentence").click()
    expect(sign).to_be_hidden()


def test_the_sign_is_there_also_beside_a_question(at: Opener) -> None:
    page = at("index")
    press(page, "p", "ArrowRight", "Escape")
    expect(page.locator(".hv-keys")).to_be_hidden()  # it has closed the field
    press(page, "Escape", "Escape")
    expect(page.locator(".hv-question")).to_be_visible()
    expect(page.locator(".hv-keys")).to_have_text(say("player.esc_leaves"))


def test_escape_held_down_does_not_leave(at: Opener) -> None:
    page = at("index")
    for _ in range(3):
        page.keyboard.down("Escape")
    page.keyboard.up("Escape")
    assert focused(page) == "DIV hv-player"


def test_tab_leads_out_of_the_player_on_both_sides(at: Opener) -> None:
    page = at("index")
    press(page, "Shift+Tab")
    assert "hv-player" not in focused(page)
    page.locator(".hv-player").focus()
    for _ in range(40):
        press(page, "Tab")
        if page.evaluate("!document.querySelector('.hv-player').contains(document.activeElement)"):
            return
    pytest.fail("the keyboard is still in the player")


# -- what is not to be had


def test_where_nothing_is_asked_predict_looks_unavailable_and_says_why(at: Opener) -> None:
    page = at("whatif")
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


def through_method(session: CDPSession, code: str, **more: Any) -> None:
    """Press a key that an input method takes, which the browser tells apart by its place only."""
    session.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", "code": code, **PROCESS, **more})
    session.send("Input.dispatchKeyEvent", {"type": "keyUp", "code": code, **PROCESS, **more})


def test_the_keys_of_the_player_work_through_an_input_method(at: Opener) -> None:
    page = at("whatif")
    session = page.context.new_cdp_session(page)
    through_method(session, "BracketRight")
    assert count(page) == "Step 2 of 16"
    through_method(session, "KeyL")
    expect(page.locator(".hv-large")).to_have_count(1)
    through_method(session, "Digit1")
    expect(page.locator("[aria-checked=false]")).to_have_count(1)
    through_method(session, "Slash", modifiers=8)
    expect(page.locator("dialog")).to_be_visible()


def test_in_an_answer_letters_are_composed_and_the_enter_that_ends_it_sends_nothing(at: Opener) -> None:
    page = at("index")
    session = page.context.new_cdp_session(page)
    press(page, "p", "ArrowRight")
    field = page.locator(".hv-ask .hv-field")
    session.send("Input.imeSetComposition", {"text": "\uff12", "selectionStart": 1, "selectionEnd": 1})
    through_method(session, "KeyL")
    expect(page.locator(".hv-large")).to_have_count(0)
    press(page, "Enter", "Escape")
    expect(page.locator(".hv-reason")).to_have_text("")
    expect(field).to_be_focused()
    session.send("Input.insertText", {"text": "\uff12\uff0e\uff10"})
    expect(field).to_have_value("\uff12\uff0e\uff10")
    press(page, "Enter")
    expect(page.locator(".hv-told")).to_have_text("Right.")
    assert page.errors == []  # type: ignore[attr-defined]


def test_a_full_width_digit_chooses_an_answer(at: Opener) -> None:
    page = at("index")
    press(page, "p", "ArrowRight", "2", "Enter", *["ArrowRight"] * 3)
    expect(page.locator(".hv-question")).to_have_text("Which hook runs next?")
    page.locator(".hv-choice").first.evaluate("""choice => choice.dispatchEvent(
      new KeyboardEvent("keydown", { key: "\\uff11", code: "Digit1", bubbles: true }))""")
    expect(page.locator(".hv-reason")).to_contain_text("That hook runs later")
