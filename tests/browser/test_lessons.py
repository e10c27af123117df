"""The lessons in JupyterLab: every cell runs, and the players step."""

import re

from playwright.sync_api import Page, expect


def test_no_cell_raises_an_error(lesson: Page) -> None:
    assert lesson.locator('[data-mime-type="application/vnd.jupyter.error"]').count() == 0
    assert lesson.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0


def test_end_key_moves_the_first_player_to_its_last_step(lesson: Page) -> None:
    player = lesson.locator(".hv-player").first
    player.scroll_into_view_if_needed()
    player.focus()
    lesson.keyboard.press("End")
    expect(player.locator(".hv-count")).to_have_text(re.compile(r"Step (\d+) of \1( · pass .*)?$"))


def test_details_with_answers_are_closed(lesson: Page) -> None:
    folded = lesson.locator(".jp-MarkdownOutput details")
    assert folded.count() >= 3
    assert [details.evaluate("folded => folded.open") for details in folded.all()] == [False] * folded.count()


def test_nothing_is_written_to_the_console(lesson: Page) -> None:
    assert lesson.errors == []  # type: ignore[attr-defined]
