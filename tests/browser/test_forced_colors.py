"""Under forced colours, outlines and shapes show which controls and steps are on, current or faulty."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page
from scenes import leaf

import hookviz as hv
from tests.browser.conftest import press
from tests.browser.test_looks import FLAWS
from tests.unit.test_whatif import a_to_e

Opener = Callable[[str, str], Page]
STATE_STYLES = {
    "a switch": (".hv-switch[aria-checked='true']", ".hv-switch[aria-checked='false']", "borderTopWidth"),
    "a button of the menu": ("[aria-pressed='true']:has(kbd)", ".hv-menu [aria-pressed='false']", "borderTopWidth"),
    "the row of the step": ("tr.hv-now", "tr.hv-done", "outlineStyle"),
    "its button": (".hv-row-step[aria-current='step']", ".hv-row-step[aria-current='false']", "borderTopStyle"),
    "the running line": (
        ".hv-code [aria-current] > .hv-code-arrow",
        ".hv-code li:not([aria-current]) > .hv-code-arrow",
        "visibility",
    ),
    "the step on the timeline": (".hv-track .hv-now path", ".hv-track .hv-done path", "transform"),
    "a hook that has fired": (".hv-pin.hv-done > .hv-pin-box", ".hv-pin.hv-todo > .hv-pin-box", "strokeDasharray"),
    "a hook that runs": (".hv-pin.hv-now > .hv-pin-box", ".hv-pin.hv-done > .hv-pin-box", "strokeWidth"),
    "a box that is reached": (".hv-node.hv-now > .hv-box", ".hv-node.hv-done > .hv-box", "strokeWidth"),
}
"""Control → selector if active, selector if inactive, and the CSS property that differs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forced")
    hv.whatif(a_to_e).to_html(folder / "whatif.html")
    y = x = leaf(1.0)
    for _ in range(420):
        y = y * 1.0
    y.register_hook(lambda grad: grad * float("nan"))
    with hv.record() as trace:
        (y * x).backward()
    trace.to_html(folder / "large.html")
    return folder


@pytest.fixture(scope="module")
def open_file(get_context: Callable[..., BrowserContext], folder: Path) -> Iterator[Opener]:
    pages = []

    def open_it(name: str, scheme: str) -> Page:
        page = get_context(forced_colors="active", color_scheme=scheme, reduced_motion="reduce").new_page()
        pages.append(page)
        page.goto((folder / f"{name}.html").as_uri())
        page.locator(".hv-player").wait_for()
        return page

    yield open_it
    for page in pages:
        page.close()


@pytest.fixture(scope="module")
def page(open_file: Opener) -> Page:
    """A what-if page with a hook off, larger text, and the step at the second hook."""
    page = open_file("whatif", "light")
    press(page, "1", "l", "]", "]")
    return page


def computed_style(page: Page, selector: str, name: str) -> str:
    value: str = page.locator(f".hv-live {selector}").first.evaluate("(e, name) => getComputedStyle(e)[name]", name)
    return value


def test_active_and_inactive_controls_differ_in_more_than_colour(page: Page) -> None:
    for control, (active, inactive, name) in STATE_STYLES.items():
        assert computed_style(page, active, name) != computed_style(page, inactive, name), control


def test_unavailable_button_differs_in_more_than_colour(open_file: Opener) -> None:
    page = open_file("whatif", "dark")
    states = [f".hv-buttons [aria-disabled='{state}']" for state in ("false", "true")]
    assert [computed_style(page, state, "borderTopStyle") for state in states] == ["solid", "dashed"]


def test_knob_shows_the_position_of_a_switch(page: Page) -> None:
    on, off = (page.locator(f"[aria-checked='{state}'] .hv-knob").first for state in ("true", "false"))
    assert on.screenshot() != off.screenshot()
    dot = "knob => [getComputedStyle(knob, '::after'), getComputedStyle(knob)].map((style) => style.backgroundColor)"
    for knob in (on, off):
        assert len(set(knob.evaluate(dot))) == 2, "the dot is seen on its ground"


def test_labels_have_no_layout_or_contrast_flaws(page: Page) -> None:
    assert page.evaluate(FLAWS) == []


def test_large_trace_marks_the_selected_search_result_and_boxes_with_nan(open_file: Opener) -> None:
    page = open_file("large", "dark")
    press(page, "End")
    page.locator(".hv-bad").first.wait_for()
    assert computed_style(page, ".hv-bad > .hv-box", "strokeDasharray") != "none"
    press(page, "/")
    page.keyboard.type("mul")
    page.locator(".hv-hit").nth(1).wait_for()
    active, inactive = (
        computed_style(page, f".hv-hit[aria-selected='{state}']", "borderLeftWidth") for state in ("true", "false")
    )
    assert active != inactive
    border_color = computed_style(page, ".hv-hit[aria-selected='false']", "borderLeftColor")
    assert border_color == computed_style(page, ".hv-search .hv-field", "backgroundColor"), (
        "a border of no colour would be seen"
    )
    assert page.evaluate(FLAWS) == []
