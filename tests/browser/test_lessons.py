"""The lessons as a student opens them: every cell runs, and the players in them step."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

Opener = Callable[..., Page]


@pytest.fixture(scope="module", params=["01_the_graph.ipynb", "02_tensor_hooks.ipynb"])
def lesson(request: pytest.FixtureRequest, open_page: Opener) -> Page:
    return open_page(request.param)


def test_no_cell_ends_in_an_error(lesson: Page) -> None:
    assert lesson.locator('[data-mime-type="application/vnd.jupyter.error"]').count() == 0
    assert lesson.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0


def test_its_first_player_steps_to_the_end_by_key(lesson: Page) -> None:
    player = lesson.locator(".hv-player").first
    player.scroll_into_view_if_needed()
    player.focus()
    lesson.keyboard.press("End")
    expect(player.locator(".hv-panel")).to_contain_text(".grad is written")


def test_nothing_is_written_to_the_console(lesson: Page) -> None:
    assert lesson.errors == []  # type: ignore[attr-defined]
