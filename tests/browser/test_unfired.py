"""The dashed pins of hooks that did not fire."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

import hookviz as hv


def keep(grad: torch.Tensor) -> None:
    return None


@pytest.fixture
def page(chrome: Browser, tmp_path: Path) -> Iterator[Page]:
    a = torch.tensor(2.0, requires_grad=True)
    with hv.record() as trace:
        c = a * a
        c.register_hook(lambda grad: grad * 2)
        c.backward()
        a.register_hook(keep)
    trace.to_html(tmp_path / "page.html")
    opened = chrome.new_page(viewport={"width": 390, "height": 844})
    opened.goto((tmp_path / "page.html").as_uri())
    expect(opened.locator(".hv-picture svg")).to_be_visible()
    yield opened
    opened.close()


def test_a_silent_pin_is_dashed_and_says_why(page: Page) -> None:
    pin = page.locator(".hv-silent")
    assert (pin.get_attribute("aria-label") or "").startswith("keep on a did not fire.")
    assert pin.locator("title").text_content() == pin.get_attribute("aria-label")
    assert pin.locator(".hv-pin-box").evaluate("box => getComputedStyle(box).strokeDasharray") != "none"
    pin.press("Enter")
    expect(page.locator(".hv-told")).to_contain_text("keep on a did not fire.")


def test_predicting_hides_the_reasons_until_the_end(page: Page) -> None:
    pin = page.locator(".hv-silent")
    expect(pin).to_have_count(1)
    page.locator(".hv-player").press("p")
    expect(pin).to_have_count(0)
    page.locator(".hv-player").press("p")
    expect(pin).to_have_count(1)
