"""A page in two languages: it opens in the reader's, and its switch changes everything and keeps the step."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from scenes import recorded

from tests.browser.helpers import Opener, errors_of, press

SENTENCES = {"en": "Backward starts at e with the gradient 1.", "zh": "反向传播从 e 开始，梯度为 1。"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("languages")
    recorded().to_html(folder / "index.html", languages=("en", "zh"))
    recorded().to_html(folder / "chinese.html", languages="zh")
    return folder


def check_language(page: Page, language: str) -> None:
    """Check the language of the page and of the player; the visible heading is also the title of the window."""
    expect(page.locator(".hv-live .hv-player")).to_have_attribute("lang", language)
    expect(page.locator("html")).to_have_attribute("lang", language)
    assert page.title() == page.locator("h1:visible").inner_text()


def choose(page: Page, name: str) -> None:
    page.locator(".hv-view > summary").click()
    page.get_by_role("button", name=name, exact=True).click()
    check_language(page, "zh-CN" if name == "中文" else "en")


def test_switch_changes_everything_and_keeps_the_step(open_file: Opener) -> None:
    page = open_file(locale="de-DE")
    check_language(page, "en")
    sentence, panel = page.locator(".hv-sentence"), page.locator(".hv-panel")
    expect(sentence).to_have_text(SENTENCES["en"])
    choose(page, "中文")
    expect(sentence).to_have_text(SENTENCES["zh"])
    press(page, "]", "]")
    number, words = page.evaluate("location.hash"), panel.inner_text()
    choose(page, "English")
    assert page.evaluate("location.hash") == number
    assert panel.inner_text() != words and "hook" in panel.inner_text()
    assert errors_of(page) == []


def test_no_english_word_and_no_switch_is_left_in_a_page_in_chinese(open_file: Opener) -> None:
    page = open_file("chinese", locale="en-US")
    check_language(page, "zh-CN")
    expect(page.locator(".hv-languages")).to_have_count(0)
    texts = page.locator(".hv-live .hv-player").evaluate(
        """(root) => [...root.querySelectorAll("*")]
          .filter((part) => !part.closest("code, pre, kbd, .hv-code, .hv-user, svg") && !part.children.length)
          .flatMap((part) => [part.textContent, part.title, part.ariaLabel]).filter(Boolean)"""
    )
    english = {"the", "of", "step", "hook", "is", "gradient"}
    assert [text for text in texts if english & set(text.split())] == []
