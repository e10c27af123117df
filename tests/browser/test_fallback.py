"""If the player cannot start, the static picture and the table remain, and a message gives the reason."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from scenes import recorded

from tests.browser.helpers import Opener

FAULTS = {
    "no ResizeObserver": ("delete globalThis.ResizeObserver", "ReferenceError: ResizeObserver is not defined"),
    "no DecompressionStream": ("delete globalThis.DecompressionStream", "DecompressionStream is not defined"),
}
"""A player that fails, and a loader that does."""
BLOCKED = '<meta http-equiv="Content-Security-Policy" content="script-src \'none\'">'


@pytest.fixture
def open_with_script(new_offline_page: Opener, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Page]:
    """Open the page after running ``script`` in it, or with all scripts blocked."""

    def open_it(script: str = "", is_blocked: bool = False) -> Page:
        path = tmp_path_factory.mktemp("pages") / "index.html"
        recorded().to_html(path)
        if is_blocked:
            path.write_text(path.read_text("utf-8").replace('<meta charset="utf-8">', BLOCKED, 1), "utf-8")
        page = new_offline_page()
        page.add_init_script(script)
        page.goto(path.as_uri())
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
    page = open_with_script(script)
    message = page.locator(".hv-failed")
    expect(message).to_contain_text("The player could not start in this browser (")
    expect(message).to_contain_text(reason)
    check_static_view(page)


def test_static_picture_is_shown_if_scripts_are_blocked(open_with_script: Opener) -> None:
    page = open_with_script(is_blocked=True)
    check_static_view(page)
    expect(page.locator(".hv-still")).to_contain_text("With JavaScript, you can step through it on this page.")


def test_static_picture_is_shown_until_the_player_has_loaded(open_with_script: Opener) -> None:
    check_static_view(open_with_script("Response.prototype.text = () => new Promise(() => {})"))  # unpacking never ends
