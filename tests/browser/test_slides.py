"""Slides from disk, with the network off: each fits, is legible from the back row, and leaves the player its keys."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import note_errors, press
from tests.requirements import require_site
from tools.notebook_runs import NOTEBOOKS
from tools.slides import make_decks

NUMBERS = ["01", "02"]
OTHERS = sorted({path.name[:2] for path in NOTEBOOKS.glob("[0-9]*_*.ipynb")} - set(NUMBERS))
TOO_SMALL = """() => {
  const slide = Reveal.getCurrentSlide(), found = [];
  const walker = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || element.closest("aside, script, style")) continue;
    if (!element.getClientRects().length) continue;
    const drawn = element.closest("svg") ? element.getScreenCTM().a : 1;
    if (parseFloat(getComputedStyle(element).fontSize) * drawn < 17.9) found.push(walker.currentNode.textContent);
  }
  return found;
}"""
"""The texts of a slide with letters under 18 pixels."""
BEYOND = """() => {
  const slide = Reveal.getCurrentSlide();
  return [slide.scrollWidth - 1280, slide.scrollHeight - 720];
}"""


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_site()
    target = tmp_path_factory.mktemp("slides")
    numbers = [*NUMBERS, *OTHERS]
    made = make_decks([path for number in numbers for path in NOTEBOOKS.glob(f"{number}_*.ipynb")], target)
    assert [page.name for page in made] == [f"{number}.html" for number in numbers]
    return target


@pytest.fixture(scope="module")
def opened(chrome: Browser, slides: Path) -> Iterator[Callable[[str], Page]]:
    """Opens a deck where the system is dark and there is no network."""
    context = chrome.new_context(viewport={"width": 1280, "height": 720}, offline=True, color_scheme="dark")

    def open_it(number: str) -> Page:
        page = context.new_page()
        note_errors(page)
        page.requests = []  # type: ignore[attr-defined]
        page.on("request", lambda request: page.requests.append(request.url))  # type: ignore[attr-defined]
        page.goto((slides / f"{number}.html").as_uri())
        page.wait_for_function("window.Reveal?.isReady()")
        return page

    yield open_it
    context.close()


@pytest.fixture(scope="module", params=NUMBERS)
def deck(request: pytest.FixtureRequest, opened: Callable[[str], Page]) -> Page:
    return opened(request.param)


def show(page: Page, index: int) -> None:
    """Go to a slide, and wait until what is on it has its size."""
    page.evaluate(f"Reveal.slide({index})")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def first_with(page: Page, selector: str) -> int:
    """The number of the first slide with such an element, counted from 0."""
    index: int = page.evaluate("(what) => Reveal.getSlides().findIndex((slide) => slide.querySelector(what))", selector)
    assert index >= 0
    return index


@pytest.mark.parametrize("number", [*NUMBERS, *OTHERS])
def test_every_slide_fits_and_is_legible_from_the_back_row(opened: Callable[[str], Page], number: str) -> None:
    with closing(opened(number)) as page:
        count = page.evaluate("Reveal.getTotalSlides()")
        assert 20 <= count <= 60
        wrong = []
        for index in range(count):
            show(page, index)
            beyond, small = page.evaluate(BEYOND), page.evaluate(TOO_SMALL)
            if max(beyond) > 0 or small:
                wrong.append((index + 1, beyond, small))
        assert wrong == []
        assert page.errors == []  # type: ignore[attr-defined]


def test_nothing_is_loaded_from_elsewhere(deck: Page) -> None:
    assert len(deck.requests) >= 5  # type: ignore[attr-defined]
    assert [url for url in deck.requests if not url.startswith(("file:", "data:"))] == []  # type: ignore[attr-defined]


def test_a_player_has_its_keys_while_it_has_the_focus_and_the_deck_has_them_otherwise(deck: Page) -> None:
    at = first_with(deck, ".hv-player")
    show(deck, at)
    player = deck.locator("section.present .hv-player").last
    count = player.locator(".hv-count")
    player.focus()
    press(deck, "Home", "ArrowRight", "ArrowRight")
    expect(count).to_contain_text("Step 3 of")
    assert deck.evaluate("Reveal.getIndices().h") == at
    press(deck, "Escape", "Escape", "ArrowRight")
    assert deck.evaluate("Reveal.getIndices().h") == at + 1
    press(deck, "ArrowLeft")
    expect(count).to_contain_text("Step 3 of")


def test_its_players_are_light_as_the_slides_are_with_larger_text(deck: Page) -> None:
    show(deck, first_with(deck, ".hv-player"))
    player = deck.locator("section.present .hv-player").last
    assert {"hv-large"} <= set((player.get_attribute("class") or "").split())
    assert "hv-dark" not in (player.get_attribute("class") or "")


def test_the_prose_is_in_the_speakers_notes_and_not_on_the_wall(deck: Page) -> None:
    notes = deck.locator("aside.notes")
    assert notes.count() >= 10 and not notes.first.is_visible()
    assert len(" ".join(notes.all_text_contents()).split()) > 500


@pytest.mark.parametrize("selector", ["h1", ".celltag_asks", ".highlight", ".hv-player"])
def test_axe_finds_nothing_serious_on_a_slide(deck: Page, selector: str) -> None:
    show(deck, first_with(deck, selector))
    found = Axe().run(deck).response["violations"]
    assert [(rule["id"], rule["help"]) for rule in found if rule["impact"] in ("serious", "critical")] == []
