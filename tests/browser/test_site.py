"""The site as it is handed out: every page from disk, with the network off, on a phone and at 1280, light and dark."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SIZES, press
from tests.browser.test_page import beyond
from tests.requirements import require_site

ROOT = Path(__file__).parents[2]
PAGES = ["index", "notebooks/README", "notebooks/glossary", "lecturer", "search"]
LESSONS = [f"notebooks/{path.stem}" for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
LOADED = re.compile(r"<(?:script|img|link|iframe|source|embed|object|image)\b[^>]*?\b(?:src|href|data)=\"([^\"]+)")
"""What a page loads; a link in its text is followed only if somebody clicks it."""
IN_STYLES = re.compile(r"(?:url\(|@import )[\"']?([^\"')]+)")
Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def folder(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made as ``make site`` makes it."""
    require_site()
    target = tmp_path_factory.mktemp("made") / "site"
    before = children_cpu()
    made = subprocess.run(
        [sys.executable, "-m", "tools.website", str(target)], cwd=ROOT, capture_output=True, text=True
    )
    print(f"{children_cpu() - before:.0f} s of a processor's time")
    assert (made.returncode, made.stderr) == (0, "")
    assert children_cpu() - before < 300
    return target


def children_cpu() -> float:
    """Seconds of a processor's time that processes took which this one started and which have ended."""
    times = os.times()
    return times.children_user + times.children_system


def serious(page: Page, beside: str = "") -> list[tuple[str, str, str]]:
    """What axe-core finds that keeps people out; players, at which it looks elsewhere, cost it seconds each."""
    found = Axe().run(page, context={"exclude": [[beside]]} if beside else None).response["violations"]
    return [
        (rule["id"], rule["help"], rule["nodes"][0]["html"][:200])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


# -- all pages


def test_nothing_in_any_file_is_loaded_from_elsewhere(folder: Path) -> None:
    pages = list(folder.rglob("*.html"))
    assert {page.relative_to(folder).with_suffix("").as_posix() for page in pages} >= {*PAGES, *LESSONS}
    loaded = [(page.name, found) for page in pages for found in LOADED.findall(page.read_text(encoding="utf-8"))]
    loaded += [(style.name, found) for style in folder.rglob("*.css") for found in IN_STYLES.findall(style.read_text())]
    assert loaded and [one for one in loaded if re.match(r"(?:https?:)?//", one[1])] == []


def test_every_page_stays_small(folder: Path) -> None:
    assert {page.name: page.stat().st_size for page in folder.rglob("*.html") if page.stat().st_size > 3_000_000} == {}


def test_every_link_within_the_site_leads_somewhere(folder: Path) -> None:
    missing = []
    for page in folder.rglob("*.html"):
        for link in re.findall(r"<a [^>]*href=\"([^\"]+)\"", page.read_text(encoding="utf-8")):
            address, _, place = link.partition("#")
            target = page.parent / address.partition("?")[0] if address else page
            if re.match(r"\w+:", address) or place.startswith("step-"):
                continue
            if not target.exists() or (
                place.startswith("cell-id=") and f'id="{place}"' not in target.read_text("utf-8")
            ):
                missing.append((page.name, link))
    assert missing == []


@pytest.mark.parametrize("name", [*PAGES, *LESSONS])
def test_every_page_works_with_the_network_off(opened: Opener, name: str) -> None:
    page = opened(name)
    expect(page.locator(".hv-output:not(:has(.hv-player))")).to_have_count(0)
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        assert beyond(page) == 0
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []  # type: ignore[attr-defined]
    assert page.errors == []  # type: ignore[attr-defined]
    assert serious(page, beside=".hv-player") == []  # itself it asks for what a page of files may not have


# -- a lesson


def test_a_player_steps_by_its_keys_and_a_switch_flips(opened: Opener) -> None:
    page = opened("notebooks/02_tensor_hooks")
    player = page.locator(".hv-player").first
    player.focus()
    press(page, "ArrowRight", "ArrowRight")
    expect(player.locator(".hv-count")).to_have_text("Step 3 of 16")
    press(page, "End", "1")
    expect(player.locator(".hv-switch").first).to_have_attribute("aria-checked", "false")
    expect(player.locator(".hv-panel")).to_contain_text("16")
    expect(player.locator(".hv-graph .hv-was").first).to_be_visible()


def test_its_questions_are_boxes_and_nothing_waits_for_an_answer(opened: Opener) -> None:
    page = opened("notebooks/01_the_graph")
    expect(page.locator(".admonition.question").first).to_contain_text("What will a.grad be?")
    assert page.get_by_text("Nothing was entered yet").count() == 0
    assert page.get_by_text("hv.check(").count() == 0
    download = page.get_by_role("link", name="01_the_graph.ipynb")
    assert download.get_attribute("href").endswith("/01_the_graph.ipynb")  # type: ignore[union-attr]


def test_what_holds_an_answer_opens_with_a_click(opened: Opener) -> None:
    page = opened("notebooks/02_tensor_hooks")
    assert page.locator("article details").count() > 10 and page.locator("article details[open]").count() == 0
    for folded, inside in (("ran first and doubled the seed", "p"), ("[5 + 7] == [12]", "pre")):
        (told,) = page.locator(f"article details {inside}", has_text=folded).all()
        expect(told).to_be_hidden()
        page.locator("article details", has_text=folded).locator("summary").first.click()
        expect(told).to_be_visible()


def test_a_lesson_leads_to_the_next_one(opened: Opener) -> None:
    page = opened("notebooks/01_the_graph")
    page.get_by_role("main").get_by_role("link", name="02 Tensor hooks").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lesson 02")


def test_players_and_pictures_follow_the_light_and_dark_of_the_page(opened: Opener) -> None:
    page = opened("notebooks/01_the_graph", color_scheme="light")
    player, picture = page.locator(".hv-player").first, page.locator(".cell_output img").first
    expect(player).not_to_have_class(re.compile("hv-dark"))
    assert picture.evaluate("image => getComputedStyle(image).colorScheme") == "light"
    page.locator(".theme-toggle:visible").click()
    expect(page.locator("body")).to_have_attribute("data-theme", "dark")
    expect(player).to_have_class(re.compile("hv-dark"))
    assert picture.evaluate("image => getComputedStyle(image).colorScheme") == "dark"


def test_the_search_finds_a_word_from_disk(opened: Opener) -> None:
    page = opened("index")
    page.get_by_placeholder("Search").first.fill("AccumulateGrad")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results a").first).to_be_visible()
    expect(page.locator("#search-results")).to_contain_text("The graph")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_a_lesson_with_its_players(opened: Opener, theme: str) -> None:
    assert serious(opened("notebooks/05_handles_and_lifetimes", color_scheme=theme)) == []


# -- the first page


@pytest.mark.parametrize("width", SIZES)
def test_the_first_page_has_a_player_and_a_map_with_every_lesson(opened: Opener, width: int) -> None:
    page = opened("index", width)
    expect(page.locator(".hv-player")).to_have_count(1)
    cards = page.locator(".lesson")
    expect(cards).to_have_count(len([name for name in LESSONS if name.removeprefix("notebooks/")[:2].isdigit()]))
    expect(cards.first).to_contain_text("30 minutes. You need to know what a derivative is.")
    for k in range(cards.count()):
        box = cards.nth(k).bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width
    page.get_by_role("main").get_by_role("link", name="02 Tensor hooks").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lesson 02")
