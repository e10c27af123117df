"""A step link moves the player above it, and does not lead to a heading of JupyterLab."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect


@pytest.fixture(scope="module")
def page(open_page: Callable[..., Page]) -> Page:
    return open_page("links.ipynb")


def test_step_link_moves_the_nearest_player_above_it(page: Page) -> None:
    counts = page.locator(".hv-player .hv-count")
    expect(counts).to_have_text(["Step 1 of 16", "Step 1 of 16"])
    page.get_by_role("link", name="step 3").click()
    expect(counts).to_have_text(["Step 1 of 16", "Step 3 of 16"])
    page.get_by_role("link", name="step 5").press("Enter")
    expect(counts).to_have_text(["Step 5 of 16", "Step 3 of 16"])
    first = page.locator(".hv-player").first
    expect(first.locator(".hv-panel")).to_be_in_viewport(ratio=0.99)
    # The player has the focus: the next key opens its list of keys, scrolled into view.
    expect(first).to_be_focused()
    page.keyboard.press("?")
    expect(first.locator(".hv-help-title")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    expect(first.locator(".hv-help-title")).to_be_hidden()
    # A step number past the end goes to the last step, and other links are not handled.
    page.get_by_role("link", name="a step that is not there").click()
    expect(counts).to_have_text(["Step 16 of 16", "Step 3 of 16"])
    page.get_by_role("link", name="a heading").click()
    expect(counts).to_have_text(["Step 16 of 16", "Step 3 of 16"])


def test_bar_of_a_plot_leads_the_player_above_to_its_step(page: Page) -> None:
    bars = page.locator(".hv-plot svg a")
    expect(bars).to_have_count(3)
    expect(page.get_by_text("Javascript Error")).to_have_count(0)  # JupyterLab handles the links of an output, too
    last = page.locator(".hv-player .hv-count").last
    for number in (0, 2):
        bars.nth(number).focus()
        page.keyboard.press("Enter")
        step = (bars.nth(number).get_attribute("xlink:href") or "").removeprefix("#step-")
        expect(last).to_have_text(f"Step {step} of 16")
    page.get_by_text("The numbers").click()
    expect(page.locator(".hv-plot table tr")).to_have_count(4)
