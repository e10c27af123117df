"""Where the player cannot start, the picture and the table stay, and a sentence says why."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from scenes import leaf, recorded

import hookviz as hv
from tests.browser.conftest import note_errors

Failing = Callable[..., Page]
FAULTS = {
    "no ResizeObserver": ("delete globalThis.ResizeObserver", "ReferenceError: ResizeObserver is not defined"),
    "no DecompressionStream": ("delete globalThis.DecompressionStream", "DecompressionStream is not defined"),
    "no structure": ("JSON.parse = () => { throw new SyntaxError('no JSON') }", "SyntaxError: no JSON"),
}
BLOCKED = '<meta http-equiv="Content-Security-Policy" content="script-src \'none\'">'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    recorded().to_html(folder / "small.html")
    html = (folder / "small.html").read_text(encoding="utf-8")
    (folder / "blocked.html").write_text(html.replace('<meta charset="utf-8">', BLOCKED, 1), encoding="utf-8")
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y * 1.01
    y.register_hook(lambda grad: grad * 2)
    with hv.record() as trace:
        y.backward()
    trace.to_html(folder / "large.html")
    return folder


@pytest.fixture
def failing(blank: Callable[..., Page], folder: Path) -> Failing:
    """Opens a page in a browser to which ``script`` has done something first."""

    def open_it(name: str, script: str = "") -> Page:
        page = blank()
        note_errors(page)
        page.add_init_script(script)
        page.goto((folder / f"{name}.html").as_uri())
        return page

    return open_it


def sees_the_end(page: Page) -> None:
    """The picture and the table are to be seen, and no half of a player."""
    expect(page.locator(".hv-still svg").first).to_be_visible()
    expect(page.locator(".hv-still table")).to_be_visible()
    expect(page.locator(".hv-player")).to_have_count(0)


@pytest.mark.parametrize("name", ["small", "large"])
@pytest.mark.parametrize("fault", FAULTS)
def test_where_the_player_cannot_start_the_picture_stays_and_a_sentence_says_why(
    name: str, fault: str, failing: Failing
) -> None:
    script, why = FAULTS[fault]
    page = failing(name, script)
    said = page.locator(".hv-failed")
    expect(said).to_contain_text("The player could not start in this browser (")
    expect(said).to_contain_text(why)
    sees_the_end(page)


def test_where_scripts_are_blocked_the_picture_stays(failing: Failing) -> None:
    page = failing("blocked")
    sees_the_end(page)
    expect(page.locator(".hv-still")).to_contain_text("With JavaScript, you can step through it on this page.")


@pytest.mark.parametrize("name", ["small", "large"])
def test_where_the_player_starts_nothing_else_is_seen(name: str, failing: Failing) -> None:
    page = failing(name)
    expect(page.locator(".hv-live .hv-picture")).to_be_visible()
    expect(page.locator(".hv-still")).to_be_hidden()
    expect(page.locator(".hv-failed")).to_have_count(0)
    assert page.errors == []  # type: ignore[attr-defined]


def test_the_picture_is_seen_until_the_player_shows_its_own(failing: Failing) -> None:
    slow = "Response.prototype.text = () => new Promise(() => {})"  # unpacking never ends
    sees_the_end(failing("large", slow))
