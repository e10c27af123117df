"""The built site: a page of each kind from disk, offline, on a phone; from a server; and in both themes."""

import functools
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import note_errors
from tests.browser.helpers import SERIOUS, Opener, errors_of, is_at, press, violations
from tests.browser.test_page import horizontal_overflow
from tests.requirements import require_site

ROOT = Path(__file__).parents[2]
LESSONS = [f"notebooks/{path.stem}" for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))]
KINDS = [
    *("index", "notebooks/02_tensor_hooks", "player", "api/types/Trace", "atlas", "notebooks/glossary"),
    *("notebooks/what_your_article_says", "exam", "search"),
]
"""A page of each kind: what holds for one reference page or lesson holds for all."""
SHORT_OF_A_SCREEN = 4
"""Pixels that the buttons of the first page's player may stand above the end of the screen, at the least."""
LOADED_URL = re.compile(r"<(?:script|img|link|iframe|source|embed|object|image)\b[^>]*?\b(?:src|href|data)=\"([^\"]+)")
"""URLs that a page loads by itself, which excludes links."""
URL_IN_STYLESHEET = re.compile(r"(?:url\(|@import )[\"']?([^\"')]+)")


@pytest.fixture(scope="module")
def folder(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make site`` builds it, but for the outputs of most Chinese lessons."""
    require_site()
    target = tmp_path_factory.mktemp("made") / "site"
    command = [sys.executable, "-m", "tools.website", str(target), "--run", "01"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return target


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The site's address on a server of this machine."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write no line for each request."""


@contextmanager
def served_page(chrome: Browser) -> Iterator[Page]:
    """Open an empty page that may reach a server; the pages of the other tests are offline."""
    context = chrome.new_context()
    page = context.new_page()
    note_errors(page)
    yield page
    context.close()


# -- all pages


def test_no_page_is_larger_than_3_mb_or_loads_anything_from_another_host(folder: Path) -> None:
    pages = list(folder.rglob("*.html"))
    assert "guide.html" in (folder / "llms.txt").read_text(encoding="utf-8")
    assert {page.relative_to(folder).with_suffix("").as_posix() for page in pages} >= {*KINDS, *LESSONS}
    assert [page.name for page in pages if page.stat().st_size > 3_000_000] == []
    loaded = [(page.name, found) for page in pages for found in LOADED_URL.findall(page.read_text(encoding="utf-8"))]
    loaded += [
        (style.name, found) for style in folder.rglob("*.css") for found in URL_IN_STYLESHEET.findall(style.read_text())
    ]
    assert loaded and [entry for entry in loaded if re.match(r"(?:https?:)?//", entry[1])] == []


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


@pytest.mark.parametrize("name", KINDS)
def test_a_page_of_each_kind_works_offline(open_file: Opener, name: str) -> None:
    page = open_file(name, 390)
    expect(page.locator(".hv-output:not(:has(.hv-player))")).to_have_count(0)
    assert horizontal_overflow(page) <= 0
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []  # type: ignore[attr-defined]
    assert errors_of(page) == []
    # It comes last: axe-core reads stylesheets, which a page of files may not, and the console says so.
    assert violations(page, excluded=".hv-player") == []


# -- the search


@pytest.mark.parametrize("from_disk", [True, False])
def test_search_finds_words_and_names_without_errors(
    chrome: Browser, folder: Path, address: str, from_disk: bool
) -> None:
    root = folder.as_uri() if from_disk else address
    with served_page(chrome) as page:
        for query, found in (("breakpoint", "The player"), ("to_html", "hookviz.Trace.to_html")):
            page.goto(f"{root}/index.html")
            page.get_by_placeholder("Search").first.fill(query)
            page.keyboard.press("Enter")
            expect(page.locator("#search-results li a").filter(has_text=found).first).to_be_visible()
            expect(page.locator("#search-results")).to_contain_text("Search finished")
            page.wait_for_load_state("networkidle")
            assert errors_of(page) == []
            # The text around what was found needs a server.
            assert (page.locator("#search-results li p.context").count() == 0) == from_disk


# -- a lesson


def test_player_in_a_lesson_steps_and_switches_a_hook_off_by_keys(open_file: Opener) -> None:
    page = open_file("notebooks/02_tensor_hooks")
    player = page.locator(".hv-player").nth(1)
    player.focus()
    press(page, "ArrowRight", "ArrowRight")
    is_at(player, 3)
    press(page, "End", "1")
    expect(player.locator(".hv-switch").first).to_have_attribute("aria-checked", "false")
    expect(player.locator(".hv-graph .hv-was").first).to_be_visible()
    # Answers open with a click.
    explanation = page.locator("article details").filter(has=page.get_by_text("Explain", exact=True)).first
    expect(explanation.locator("p").first).to_be_hidden()
    explanation.locator("summary").click()
    expect(explanation.locator("p").first).to_be_visible()


def test_lesson_page_shows_questions_as_admonitions_without_checks(open_file: Opener) -> None:
    page = open_file("notebooks/01_the_graph")
    expect(page.locator(".admonition.question").filter(has_text="What will a.grad be?")).to_be_visible()
    assert page.get_by_text("Nothing was entered yet").count() == 0
    assert page.get_by_text('check("01.').count() == 0
    download = page.get_by_role("link", name="01_the_graph.ipynb")
    assert download.get_attribute("href").endswith("/01_the_graph.ipynb")  # type: ignore[union-attr]


def test_players_and_pictures_follow_the_theme_of_the_site(open_file: Opener) -> None:
    page = open_file("notebooks/01_the_graph", color_scheme="light")
    player, picture = page.locator(".hv-player").first, page.locator(".cell_output img").first
    expect(player).not_to_have_class(re.compile("hv-dark"))
    expect(picture).to_have_css("color-scheme", "light")
    page.locator(".theme-toggle:visible").click()
    expect(page.locator("body")).to_have_attribute("data-theme", "dark")
    expect(player).to_have_class(re.compile("hv-dark"))
    expect(picture).to_have_css("color-scheme", "dark")
    assert violations(page, impacts=SERIOUS) == []


# -- the first page


def test_first_screen_of_the_first_page_has_the_menu_and_the_player_with_all_its_buttons(open_file: Opener) -> None:
    page = open_file("index", 1280, 720)
    menu = page.locator(".sidebar-tree > ul > li > a")
    assert menu.all_inner_texts() == ["Lessons", "The player", "Guide", "API", "Look up", "For lecturers"]
    buttons = page.locator(".hv-player .hv-controls button:visible")
    assert buttons.count() >= 7
    for part in (*menu.all(), *buttons.all()):
        box = part.bounding_box()
        assert box and box["y"] > 0 and box["y"] + box["height"] <= 720 - SHORT_OF_A_SCREEN
    sentences = page.locator("article section > p").filter(
        has=page.locator("xpath=following-sibling::*//*[contains(@class, 'hv-player')]")
    )
    assert sentences.count() == 1


def test_first_page_has_a_card_for_every_lesson_on_a_phone(open_file: Opener) -> None:
    page = open_file("index", 390)
    cards = page.locator(".lesson")
    expect(cards).to_have_count(len(LESSONS))
    expect(cards.first).to_contain_text(re.compile(r"\d+ minutes\. You need to know what derivatives and a loss are"))
    for card in cards.all():
        box = card.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.get_by_role("main").get_by_role("link", name="02 Tensor hooks").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lesson 02")


# -- Chinese


def test_chinese_page_is_chinese_and_leads_to_the_same_english_page_and_back(open_file: Opener, folder: Path) -> None:
    page = open_file("zh/notebooks/01_the_graph")
    expect(page.locator("html")).to_have_attribute("lang", re.compile("^zh"))
    assert re.search(r"[\u4e00-\u9fff]{2}", page.locator("h1").first.inner_text())
    expect(page.locator(".hv-live .hv-player").first).to_have_attribute("lang", "zh-CN")
    assert horizontal_overflow(page) == 0
    assert errors_of(page) == []
    for address in ("notebooks/01_the_graph", "zh/notebooks/01_the_graph"):
        page.locator(".languages a").click()
        page.wait_for_url((folder / f"{address}.html").as_uri())


def test_chinese_search_finds_chinese_words(open_file: Opener) -> None:
    page = open_file("zh/index")
    page.locator("input.sidebar-search").fill("句柄生命周期")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results li a").filter(has_text="句柄").first).to_be_visible()
