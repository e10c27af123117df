"""Slides from disk, offline: each fits, has legible text, and lets the focused player handle keys."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import note_errors
from tests.browser.helpers import SERIOUS, errors_of, press, violations
from tests.requirements import require_site
from tools.slides import make_decks, make_poll_deck
from tools.translation.message_sources import NOTEBOOKS

NUMBERS = [path.name[:2] for path in sorted(NOTEBOOKS.glob("[01]*.ipynb"))]
SMALL_TEXTS = """() => {
  const slide = Reveal.getCurrentSlide(), found = [];
  const walker = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || element.closest("aside, script, style")) continue;
    if (!element.getClientRects().length) continue;
    // Pictures are as large as the slide has room for them.
    if (element.closest(".hv-graph, .hv-lens")) continue;
    const drawn = element.closest("svg") ? element.getScreenCTM().a : 1;
    if (parseFloat(getComputedStyle(element).fontSize) * drawn < 17.9) found.push(walker.currentNode.textContent);
  }
  return found;
}"""
"""The texts of a slide, outside of its pictures, in letters under 18 pixels."""
OVERFLOW = """() => {
  const slide = Reveal.getCurrentSlide();
  return [slide.scrollWidth - 1280, slide.scrollHeight - 720];
}"""

TOLD_TO_RUN = """() => {
  const slide = Reveal.getCurrentSlide().cloneNode(true);
  slide.querySelectorAll("aside, script, style, .hv-output").forEach((element) => element.remove());
  return slide.textContent.match(/[^.]*(?:[Rr]un (?:the|this|both) (?:next )?cells?|Shift\\+Enter)[^.]*/g) ?? [];
}"""
"""What a slide tells people to do who see slides and no notebook."""

LETTERS_ON_BOXES = """() => {
  const brightness = (color) => {
    const [red, green, blue, opacity = 1] = color.match(/[\\d.]+/g).map(Number);
    return ((red + green + blue) / 3) * opacity + 255 * (1 - opacity);  // a module's box lets the white slide through
  };
  const slide = Reveal.getCurrentSlide();
  const [boxes, texts] = [".hv-box", ".hv-art text"].map((what) => [...slide.querySelectorAll(what)]
    .map((element) => brightness(getComputedStyle(element).fill)));
  return [Math.min(...boxes), Math.max(...texts)];
}"""
"""How bright a slide's darkest box is, and the brightest letters of its pictures: 0 is black, 255 white."""


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_site()
    target = tmp_path_factory.mktemp("slides")
    pages = make_decks(sorted(NOTEBOOKS.glob("[01]*.ipynb")), target)
    assert [page.name for page in pages] == [f"{number}.html" for number in NUMBERS]
    make_poll_deck(target, "en")
    return target


@pytest.fixture(scope="module")
def open_deck(chrome: Browser, slides: Path) -> Iterator[Callable[[str], Page]]:
    """Open a deck offline, with a dark system theme."""
    deck_context = chrome.new_context(viewport={"width": 1280, "height": 720}, offline=True, color_scheme="dark")

    def open_it(number: str) -> Page:
        page = deck_context.new_page()
        note_errors(page)
        page.requests = []  # type: ignore[attr-defined]
        page.on("request", lambda request: page.requests.append(request.url))  # type: ignore[attr-defined]
        page.goto((slides / f"{number}.html").as_uri())
        page.wait_for_function("window.Reveal?.isReady()")
        return page

    yield open_it
    deck_context.close()


@pytest.fixture(scope="module")
def deck(open_deck: Callable[[str], Page]) -> Page:
    return open_deck("02")


def go_to_slide(page: Page, index: int) -> None:
    """Go to a slide, and wait until its layout is done."""
    page.evaluate(f"Reveal.slide({index})")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def first_slide_with(page: Page, selector: str) -> int:
    """The index of the first slide with an element that matches ``selector``."""
    index: int = page.evaluate("(what) => Reveal.getSlides().findIndex((slide) => slide.querySelector(what))", selector)
    assert index >= 0
    return index


@pytest.mark.parametrize("number", [*NUMBERS, "polls"])
def test_every_slide_fits_and_is_legible_from_the_back_row(open_deck: Callable[[str], Page], number: str) -> None:
    with closing(open_deck(number)) as page:
        count = page.evaluate("Reveal.getTotalSlides()")
        assert 15 <= count <= 83
        wrong = []
        for index in range(count):
            go_to_slide(page, index)
            overflow, small = page.evaluate(OVERFLOW), page.evaluate(SMALL_TEXTS)
            told_to_run = page.evaluate(TOLD_TO_RUN)
            if max(overflow) > 0 or small or told_to_run:
                wrong.append((index + 1, overflow, small, told_to_run))
        assert wrong == []
        if number in NUMBERS:
            check_colours(page)
        assert len(page.requests) >= 5  # type: ignore[attr-defined]
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []  # type: ignore[attr-defined]
        assert errors_of(page) == []


def check_colours(page: Page) -> None:
    """Check that boxes are light and their letters dark, though a deck sets no colours of JupyterLab."""
    go_to_slide(page, first_slide_with(page, ".hv-player"))
    darkest_box, brightest_letter = page.evaluate(LETTERS_ON_BOXES)
    assert darkest_box > 200 and brightest_letter < 150


@pytest.fixture
def player(deck: Page) -> Locator:
    """A player on its slide, with the focus, at its first step."""
    go_to_slide(deck, first_slide_with(deck, ".hv-player"))
    found = deck.locator("section.present .hv-player").last
    found.focus()
    press(deck, "Home")
    return found


def test_focused_player_gets_the_keys_and_otherwise_the_deck_does(deck: Page, player: Locator) -> None:
    index, count = deck.evaluate("Reveal.getIndices().h"), player.locator(".hv-count")
    press(deck, "ArrowRight", "ArrowRight")
    expect(count).to_contain_text("Step 3 of")
    assert deck.evaluate("Reveal.getIndices().h") == index
    press(deck, "Escape", "Escape", "ArrowRight")
    assert deck.evaluate("Reveal.getIndices().h") == index + 1
    press(deck, "ArrowLeft")
    expect(count).to_contain_text("Step 3 of")


def test_w_shows_the_finding_in_the_panel_since_a_slide_has_no_room_for_the_list(deck: Page) -> None:
    go_to_slide(deck, deck.evaluate("Reveal.getSlides().findLastIndex((slide) => slide.querySelector('.hv-player'))"))
    player = deck.locator("section.present .hv-player")
    player.focus()
    press(deck, "w")
    expect(player.locator(".hv-panel")).to_contain_text("No gradient reaches net.stem.weight")
    expect(player.locator(".hv-found")).to_be_hidden()


def test_axe_reports_no_serious_violation_on_a_slide(deck: Page) -> None:
    for selector in (".celltag_asks", ".hv-player"):
        go_to_slide(deck, first_slide_with(deck, selector))
        assert violations(deck, impacts=SERIOUS) == []
