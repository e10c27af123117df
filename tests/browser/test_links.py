"""A step link moves the player above it, in JupyterLab and in the page that nbconvert makes."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import LINKS
from tests.browser.lab import write_notebook


@pytest.fixture(scope="module")
def nbconvert_page(
    get_context: Callable[..., BrowserContext], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("links") / "links.ipynb"
    write_notebook(path, *LINKS)
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    page = get_context().new_page()
    page.set_viewport_size({"width": 1280, "height": 620})
    page.goto(path.with_suffix(".html").as_uri(), wait_until="domcontentloaded")
    yield page
    page.close()


@pytest.fixture(params=["jupyterlab", "nbconvert"])
def page(request: pytest.FixtureRequest, open_page: Callable[..., Page]) -> Page:
    return request.getfixturevalue("nbconvert_page") if request.param == "nbconvert" else open_page("links.ipynb")


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
