"""A page in two languages: it opens in the reader's, and its switch changes everything and keeps the step."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from scenes import recorded

import hookviz as hv
from tests.browser.accessibility import violations
from tests.browser.conftest import press
from tests.unit.test_whatif import a_to_e

Opener = Callable[..., Page]
SENTENCES = {"en": "Backward starts at e with the gradient 1.", "zh": "反向传播从 e 开始，梯度为 1。"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("languages")
    recorded().to_html(folder / "index.html", languages=("en", "zh"))
    hv.whatif(a_to_e).to_html(folder / "whatif.html", languages=("en", "zh"))
    recorded().to_html(folder / "chinese.html", languages="zh")
    return folder


def language_of(page: Page) -> tuple[str | None, str | None, str]:
    """The language of the page, that of the player, and the visible heading, which is also the title of the window."""
    player = page.locator(".hv-live .hv-player")
    assert page.title() == page.locator("h1:visible").inner_text()
    return (
        page.locator("html").get_attribute("lang"),
        player.get_attribute("lang"),
        page.locator("h1:visible").inner_text(),
    )


@pytest.mark.parametrize(("locale", "language"), [("zh-TW", "zh-CN"), ("de-DE", "en")])
def test_page_opens_in_the_language_of_the_reader(open_file: Opener, locale: str, language: str) -> None:
    page = open_file(locale=locale)
    assert language_of(page)[:2] == (language, language)
    assert page.errors == []  # type: ignore[attr-defined]


def choose(page: Page, name: str) -> None:
    page.locator(".hv-view > summary").click()
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator(".hv-live .hv-player")).to_have_attribute("lang", "zh-CN" if name == "中文" else "en")


def test_switch_changes_everything_and_keeps_the_step(open_file: Opener) -> None:
    page = open_file(locale="en-US")
    seed = page.locator(".hv-sentence")
    expect(seed).to_have_text(SENTENCES["en"])
    choose(page, "中文")
    expect(seed).to_have_text(SENTENCES["zh"])
    assert language_of(page)[:2] == ("zh-CN", "zh-CN")
    press(page, "]", "]")
    number = page.evaluate("location.hash")
    title = page.locator(".hv-panel").inner_text()
    choose(page, "English")
    assert page.evaluate("location.hash") == number
    assert page.locator(".hv-panel").inner_text() != title
    assert "hook" in page.locator(".hv-panel").inner_text()
    assert page.errors == []  # type: ignore[attr-defined]


def test_switch_of_a_what_if_keeps_the_hooks_that_are_off(open_file: Opener) -> None:
    page = open_file("whatif", locale="en-US")
    press(page, "End", "1")
    pressed = page.locator(".hv-switch [aria-pressed]").evaluate_all("all => all.map((one) => one.ariaPressed)")
    choose(page, "中文")
    assert page.locator(".hv-switch [aria-pressed]").evaluate_all("all => all.map((one) => one.ariaPressed)") == pressed


def test_page_in_one_language_has_no_switch(open_file: Opener) -> None:
    page = open_file("chinese", locale="en-US")
    expect(page.locator(".hv-languages")).to_have_count(0)
    assert language_of(page)[:2] == ("zh-CN", "zh-CN")


def test_no_english_word_is_left_in_a_chinese_player(open_file: Opener) -> None:
    page = open_file("chinese", locale="zh-CN")
    texts = page.locator(".hv-live .hv-player").evaluate(
        """(root) => [...root.querySelectorAll("*")]
          .filter((part) => !part.closest("code, pre, kbd, .hv-code, .hv-user, svg") && !part.children.length)
          .flatMap((part) => [part.textContent, part.title, part.ariaLabel]).filter(Boolean)"""
    )
    english = {
        text for text in texts if any(word in text.split() for word in ("the", "of", "step", "hook", "is", "gradient"))
    }
    assert english == set()


def test_chinese_player_has_no_accessibility_violations(open_file: Opener) -> None:
    page = open_file(locale="zh-CN")
    assert violations(page) == []
