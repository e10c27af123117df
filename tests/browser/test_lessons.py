"""The lessons as a student opens them: every cell runs, and the players in them step."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

Opener = Callable[..., Page]
LESSONS = sorted(path.name for path in (Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module", params=LESSONS)
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
    expect(player.locator(".hv-count")).to_have_text(re.compile(r"Step (\d+) of \1$"))


def test_nothing_is_written_to_the_console(lesson: Page) -> None:
    assert lesson.errors == []  # type: ignore[attr-defined]
