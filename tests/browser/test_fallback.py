"""If the player cannot start, the static picture and the table remain, and a message gives the reason."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from scenes import leaf, recorded

import hookviz as hv
from tests.browser.conftest import note_errors

Opener = Callable[..., Page]
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
def open_with_script(new_offline_page: Callable[..., Page], folder: Path) -> Opener:
    """Open a page after running ``script`` in it."""

    def open_it(name: str, script: str = "") -> Page:
        page = new_offline_page()
        note_errors(page)
        page.add_init_script(script)
        page.goto((folder / f"{name}.html").as_uri())
        return page

    return open_it


def check_static_view(page: Page) -> None:
    """Check that the static picture and the table are visible, and that the page has no player."""
    expect(page.locator(".hv-still svg").first).to_be_visible()
    expect(page.locator(".hv-still table")).to_be_visible()
    expect(page.locator(".hv-player")).to_have_count(0)


@pytest.mark.parametrize("fault", FAULTS)
def test_static_picture_and_the_reason_are_shown_if_the_player_fails_to_start(
    fault: str, open_with_script: Opener
) -> None:
    script, reason = FAULTS[fault]
    page = open_with_script("small", script)
    message = page.locator(".hv-failed")
    expect(message).to_contain_text("The player could not start in this browser (")
    expect(message).to_contain_text(reason)
    check_static_view(page)


def test_static_picture_is_shown_if_scripts_are_blocked(open_with_script: Opener) -> None:
    page = open_with_script("blocked")
    check_static_view(page)
    expect(page.locator(".hv-still")).to_contain_text("With JavaScript, you can step through it on this page.")


def test_static_picture_is_hidden_once_the_player_has_started(open_with_script: Opener) -> None:
    page = open_with_script("large")
    expect(page.locator(".hv-live .hv-picture")).to_be_visible()
    expect(page.locator(".hv-still")).to_be_hidden()
    expect(page.locator(".hv-failed")).to_have_count(0)
    assert page.errors == []  # type: ignore[attr-defined]


def test_static_picture_is_shown_until_the_player_has_loaded(open_with_script: Opener) -> None:
    slow = "Response.prototype.text = () => new Promise(() => {})"  # unpacking never ends
    check_static_view(open_with_script("large", slow))
