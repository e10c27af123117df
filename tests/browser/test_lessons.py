"""Lessons in JupyterLab on a small projector: cells run, players fit the screen, and pictures are whole."""

import base64
import re
from collections.abc import Callable, Iterator

import nbformat
from playwright.sync_api import ElementHandle, Page, expect

from tests.browser.conftest import LESSONS, SHOWN_LESSON
from tests.browser.helpers import FIT, READ_PIXEL, errors_of, violations

PANE = ".jp-WindowedPanel-outer"
"""The scrolling container of a notebook in JupyterLab."""

FLAWS_OF_STEPS = f"""async (player) => {{
  const fit = {FIT};
  const end = document.querySelector("{PANE}").getBoundingClientRect().bottom;
  const found = {{}};
  player.focus();
  player.scrollIntoView({{ block: "start" }});
  // The player measures the height left for the picture once it is visible.
  await new Promise((done) => setTimeout(done, 200));
  for (let left = player.querySelector(".hv-timeline").ariaValueMax; left > 0; left--) {{
    const flaws = fit(player, end);
    if (flaws.length) found[player.querySelector(".hv-head-line").innerText] = flaws;
    player.dispatchEvent(new KeyboardEvent("keydown", {{ key: "ArrowRight", bubbles: true }}));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); // the picture of another pass has come
  }}
  return found;
}}"""
"""Heading of a step → what is cut or out of sight there."""


def test_no_cell_raises_an_error(lesson: Page) -> None:
    assert lesson.locator('[data-mime-type="application/vnd.jupyter.error"]').count() == 0
    assert lesson.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    assert lesson.locator(".Toastify__toast").count() == 0
    assert errors_of(lesson) == []


def scroll_through_outputs(page: Page, selector: str) -> Iterator[ElementHandle]:
    """Yield the matching outputs from top to bottom, scrolling because JupyterLab renders them on demand."""
    pane = page.locator(PANE).first
    top = 0
    while True:
        pane.evaluate("(pane, top) => pane.scrollTop = top", top)
        page.wait_for_timeout(200)
        for found in page.query_selector_all(f":is({selector}):not([data-seen])"):
            if found.is_visible():
                found.evaluate("e => e.dataset.seen = true")
                yield found
        scrolled_to = pane.evaluate("pane => pane.scrollTop")
        if scrolled_to < top:
            return
        top += 450


def test_each_player_fits_the_screen_at_every_step_and_pictures_are_not_cut_off(lesson: Page) -> None:
    flaws: dict[str, list[str]] = {}
    overflows: list[int] = []
    count = 0
    lesson.emulate_media(reduced_motion="reduce")  # without smooth scrolling
    for output in scroll_through_outputs(lesson, ".hv-player, .jp-RenderedSVG"):
        if output.evaluate("e => e.matches('.jp-RenderedSVG')"):
            overflows.append(output.evaluate("e => e.scrollWidth - e.clientWidth"))
            continue
        count += 1
        flaws |= {f"player {count}, {head}": found for head, found in output.evaluate(FLAWS_OF_STEPS).items()}
        expect(lesson.locator(":focus .hv-count")).to_have_text(re.compile(r"Step (\d+) of \1( · pass .*)?$"))
    assert count >= 2
    assert flaws == {}
    assert len(overflows) >= count_drawings()
    # With the side bar open, a tenth is scrolled rather than the type made small.
    assert max(overflows, default=0) <= 100


def count_drawings() -> int:
    """The number of cells of the lesson that end in a drawing."""
    cells = nbformat.read(LESSONS / SHOWN_LESSON, as_version=4).cells
    return sum(bool(re.search(r"^hv\.(draw|render)\(.*\Z", cell.source, re.MULTILINE)) for cell in cells)


def test_pictures_and_player_follow_the_dark_theme_of_jupyterlab(open_page: Callable[..., Page]) -> None:
    page = open_page("drawings.ipynb", theme="dark")
    pictures = page.locator(".jp-RenderedSVG img")
    expect(pictures).to_have_count(2)
    for picture in pictures.all():
        shot = base64.b64encode(picture.screenshot()).decode()
        assert max(page.evaluate(READ_PIXEL, shot)) < 64
    player = page.locator(".hv-player").first
    player.press("]")
    expect(player).to_have_class(re.compile("hv-dark"))
    assert violations(page, inside=".hv-player") == []
