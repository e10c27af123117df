"""A large trace in JupyterLab: the player requests missing chunks, and reports a missing kernel."""

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.helpers import errors_of, press, search_for
from tests.browser.lab import Lab


def wait_until_connected(lab: Lab, page: Page, player: Locator) -> None:
    """Ask the kernel for plots; on a busy machine the player says that it has no kernel, and to run the cell again."""
    drawn, advice = player.locator(".hv-plots svg a").first, player.get_by_text("Run the cell again.").first
    for _ in range(5):
        player.focus()
        press(page, "v")
        expect(drawn.or_(advice)).to_be_visible()
        is_connected = drawn.is_visible()
        press(page, "v")
        if is_connected:
            return
        lab.run_all(page)
        page.wait_for_timeout(5000)


def test_player_requests_missing_chunks_from_the_kernel(open_page: Callable[..., Page], lab: Lab) -> None:
    page = open_page("large.ipynb")
    player = page.locator(".hv-player").first
    wait_until_connected(lab, page, player)
    player.scroll_into_view_if_needed()
    player.focus()
    press(page, "End")
    expect(player.locator(".hv-sentence")).to_contain_text("x.grad is written: ")
    press(page, "ArrowLeft", "ArrowLeft", "ArrowLeft", "e")
    expect(player.locator(".hv-trail button")).to_have_count(1)
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    search_for(player, "#500")
    expect(player.get_by_role("option").first).to_contain_text("MulBackward0 #500")
    press(page, "Enter")
    expect(player.locator(".hv-title")).to_contain_text("#500")
    press(page, "v")
    expect(player.locator(".hv-plots svg a").first).to_be_visible()  # the kernel draws it when it is asked
    press(page, "v")
    lab.end("large.ipynb")
    expect(page.get_by_role("button", name="No Kernel", exact=True)).to_be_visible()
    page.wait_for_timeout(1000)
    press(page, "u", "u", "Home", "e")
    expect(player.locator(".hv-told")).to_contain_text("no kernel is running to send it")
    # Jupyter logs its own errors once the kernel is gone.
    assert [error for error in errors_of(page) if not re.search("kernel|Cannot send", error, re.IGNORECASE)] == []
