"""The list of hooks that did not fire, and their dashed pins."""

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


def test_the_list_leads_to_the_step_and_fits_the_page(page: Page) -> None:
    page.locator(".hv-player").press("End")
    rows = page.get_by_role("group", name="Hooks that did not fire").get_by_role("row")
    expect(rows.last).to_contain_text("Register it before you call backward().")
    rows.last.get_by_role("button", name="Go to step 1").press("Enter")
    expect(page.locator(".hv-count")).to_have_text("Step 1 of 5")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_silent_pin_is_dashed_and_says_why(page: Page) -> None:
    pin = page.locator(".hv-silent")
    assert (pin.get_attribute("aria-label") or "").startswith("keep on a did not fire.")
    assert pin.locator("title").text_content() == pin.get_attribute("aria-label")
    assert pin.locator(".hv-pin-box").evaluate("box => getComputedStyle(box).strokeDasharray") != "none"
    pin.press("Enter")
    expect(page.locator(".hv-told")).to_contain_text("keep on a did not fire.")


def test_predicting_hides_the_reasons_until_the_end(page: Page) -> None:
    pane, pin = page.locator(".hv-unfired"), page.locator(".hv-silent")
    expect(pane).to_be_visible()
    page.locator(".hv-player").press("p")
    expect(pane).to_be_hidden()
    expect(pin).to_have_count(0)
    page.locator(".hv-player").press("p")
    expect(pane).to_be_visible()
    expect(pin).to_have_count(1)
