"""The built site: every page from disk, offline, at two widths and in both themes."""

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
from tests.browser.test_page import horizontal_overflow
from tests.requirements import require_site

ROOT = Path(__file__).parents[2]
PAGES = ["index", "notebooks/README", "notebooks/glossary", "atlas", "lecturer", "teaching", "search"]
LESSONS = [f"notebooks/{path.stem}" for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
LOADED_URL = re.compile(r"<(?:script|img|link|iframe|source|embed|object|image)\b[^>]*?\b(?:src|href|data)=\"([^\"]+)")
"""URLs that a page loads by itself, which excludes links."""
URL_IN_STYLESHEET = re.compile(r"(?:url\(|@import )[\"']?([^\"')]+)")
Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def folder(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make site`` builds it."""
    require_site()
    target = tmp_path_factory.mktemp("made") / "site"
    before = children_cpu()
    done = subprocess.run(
        [sys.executable, "-m", "tools.website", str(target)], cwd=ROOT, capture_output=True, text=True
    )
    print(f"{children_cpu() - before:.0f} s of a processor's time")
    assert (done.returncode, done.stderr) == (0, "")
    assert children_cpu() - before < 300
    return target


def children_cpu() -> float:
    """The processor time of finished child processes, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def serious_violations(page: Page, excluded: str = "") -> list[tuple[str, str, str]]:
    """The serious violations that axe-core finds outside of ``excluded``; each player takes axe-core seconds."""
    found = Axe().run(page, context={"exclude": [[excluded]]} if excluded else None).response["violations"]
    return [
        (rule["id"], rule["help"], rule["nodes"][0]["html"][:200])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


# -- all pages


def test_no_file_loads_anything_from_another_host(folder: Path) -> None:
    pages = list(folder.rglob("*.html"))
    assert {page.relative_to(folder).with_suffix("").as_posix() for page in pages} >= {*PAGES, *LESSONS}
    loaded = [(page.name, found) for page in pages for found in LOADED_URL.findall(page.read_text(encoding="utf-8"))]
    loaded += [
        (style.name, found) for style in folder.rglob("*.css") for found in URL_IN_STYLESHEET.findall(style.read_text())
    ]
    assert loaded and [entry for entry in loaded if re.match(r"(?:https?:)?//", entry[1])] == []


def test_every_page_is_smaller_than_3_mb(folder: Path) -> None:
    assert {page.name: page.stat().st_size for page in folder.rglob("*.html") if page.stat().st_size > 3_000_000} == {}


def test_every_internal_link_has_a_target(folder: Path) -> None:
    missing = []
    for page in folder.rglob("*.html"):
        for link in re.findall(r"<a [^>]*href=\"([^\"]+)\"", page.read_text(encoding="utf-8")):
            address, _, fragment = link.partition("#")
            target = page.parent / address.partition("?")[0] if address else page
            if re.match(r"\w+:", address) or fragment.startswith("step-"):
                continue
            if not target.exists() or (
                fragment.startswith("cell-id=") and f'id="{fragment}"' not in target.read_text("utf-8")
            ):
                missing.append((page.name, link))
    assert missing == []


@pytest.mark.parametrize("name", [*PAGES, *LESSONS])
def test_every_page_works_offline(open_file: Opener, name: str) -> None:
    page = open_file(name)
    expect(page.locator(".hv-output:not(:has(.hv-player))")).to_have_count(0)
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        assert horizontal_overflow(page) == 0
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []  # type: ignore[attr-defined]
    assert page.errors == []  # type: ignore[attr-defined]
    assert serious_violations(page, excluded=".hv-player") == []  # itself it asks for what a page of files may not have


# -- a lesson


def test_player_in_a_lesson_steps_and_switches_a_hook_off_by_keys(open_file: Opener) -> None:
    page = open_file("notebooks/02_tensor_hooks")
    player = page.locator(".hv-player").nth(1)
    player.focus()
    press(page, "ArrowRight", "ArrowRight")
    expect(player.locator(".hv-count")).to_have_text("Step 3 of 16")
    press(page, "End", "1")
    expect(player.locator(".hv-switch").first).to_have_attribute("aria-checked", "false")
    expect(player.locator(".hv-panel")).to_contain_text("16")
    expect(player.locator(".hv-graph .hv-was").first).to_be_visible()


def test_look_up_page_finds_entries_by_a_pasted_line(open_file: Opener) -> None:
    page = open_file("notebooks/what_your_article_says")
    field, found = page.locator(".look-up textarea"), page.locator(".look-up li")
    field.fill("my_maps.append(res.detach().cpu())")
    expect(found.first).to_contain_text("output.detach().cpu(): article 1")
    field.fill("print(total.data[0])")
    expect(found.first.locator("a")).to_have_attribute("href", "#cell-id=data-text")
    assert page.locator('[id="cell-id=data-text"]').count() == 1
    field.fill("total = price + tax")
    expect(found).to_contain_text(["No entry of this page"])
    field.fill("")
    expect(found).to_have_count(0)


def test_lesson_page_shows_questions_as_admonitions_without_checks(open_file: Opener) -> None:
    page = open_file("notebooks/01_the_graph")
    expect(page.locator(".admonition.question").first).to_contain_text("What will a.grad be?")
    assert page.get_by_text("Nothing was entered yet").count() == 0
    assert page.get_by_text("hv.check(").count() == 0
    download = page.get_by_role("link", name="01_the_graph.ipynb")
    assert download.get_attribute("href").endswith("/01_the_graph.ipynb")  # type: ignore[union-attr]


def test_details_with_answers_open_with_a_click(open_file: Opener) -> None:
    page = open_file("notebooks/02_tensor_hooks")
    explanations = page.locator("article details").filter(has=page.get_by_text("Explain", exact=True))
    assert (
        explanations.count() >= 3 and page.locator("article details[open] > summary", has_text="Explain").count() == 0
    )
    answer = explanations.first.locator("p").first
    expect(answer).to_be_hidden()
    explanations.first.locator("summary").click()
    expect(answer).to_be_visible()


def test_lesson_links_to_the_next_one(open_file: Opener) -> None:
    page = open_file("notebooks/01_the_graph")
    page.get_by_role("main").get_by_role("link", name="02 Tensor hooks").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lesson 02")


def test_players_and_pictures_follow_the_theme_of_the_site(open_file: Opener) -> None:
    page = open_file("notebooks/01_the_graph", color_scheme="light")
    player, picture = page.locator(".hv-player").first, page.locator(".cell_output img").first
    expect(player).not_to_have_class(re.compile("hv-dark"))
    assert picture.evaluate("image => getComputedStyle(image).colorScheme") == "light"
    page.locator(".theme-toggle:visible").click()
    expect(page.locator("body")).to_have_attribute("data-theme", "dark")
    expect(player).to_have_class(re.compile("hv-dark"))
    assert picture.evaluate("image => getComputedStyle(image).colorScheme") == "dark"


def test_site_search_works_from_disk(open_file: Opener) -> None:
    page = open_file("index")
    page.get_by_placeholder("Search").first.fill("AccumulateGrad")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results a").first).to_be_visible()
    expect(page.locator("#search-results")).to_contain_text("The graph")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_reports_no_serious_violation_in_a_lesson_with_players(open_file: Opener, theme: str) -> None:
    assert serious_violations(open_file("notebooks/05_handles_and_lifetimes", color_scheme=theme)) == []


# -- the first page


@pytest.mark.parametrize("width", SIZES)
def test_first_page_has_a_player_and_a_card_for_every_lesson(open_file: Opener, width: int) -> None:
    page = open_file("index", width)
    expect(page.locator(".hv-player")).to_have_count(1)
    cards = page.locator(".lesson")
    expect(cards).to_have_count(len([name for name in LESSONS if name.removeprefix("notebooks/")[:2].isdigit()]))
    expect(cards.first).to_contain_text(re.compile(r"\d+ minutes\. You need to know what derivatives, weights"))
    for k in range(cards.count()):
        box = cards.nth(k).bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width
    page.get_by_role("main").get_by_role("link", name="02 Tensor hooks").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lesson 02")
