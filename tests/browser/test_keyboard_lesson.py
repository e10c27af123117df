"""One whole lesson in JupyterLab with the keyboard alone: its cells, its players, an answer and an explanation."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import open_on_projector, press
from tests.browser.lab import Lab

LESSON = "02_tensor_hooks.ipynb"

CHECK = "# A check: open it when you have answered."
"""The first line of a cell that is collapsed."""
NOTEBOOK = "window.jupyterapp.shell.currentWidget.content"
CELLS = f"""() => {NOTEBOOK}.widgets.map(({{ model }}) => [model.type, model.sharedModel.source])"""
ACTIVE_CELL = f"() => {NOTEBOOK}.activeCellIndex"
CELL_HAS_RUN = f"""(index) => {{
  const {{ model }} = {NOTEBOOK}.widgets[index];
  return model.executionCount !== null && model.executionState !== "running";
}}"""
FOCUS_IS_IN = "(selector) => Boolean(document.activeElement.closest(selector))"


class Typist:
    """Somebody who reads a notebook without a mouse. Every method presses keys only."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.cells: list[tuple[str, str]] = page.evaluate(CELLS)
        self.stepped: dict[int, int] = {}
        """The number of steps seen, for each cell whose output is a player."""

    def find(self, text: str) -> int:
        """The index of the first cell with this text."""
        return next(index for index, (_, source) in enumerate(self.cells) if text in source)

    def cell_at(self, index: int) -> Locator:
        return self.page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')

    def run(self, index: int) -> None:
        """Run the active cell, step through the player that it shows, and go on to the next cell."""
        press(self.page, "Shift+Enter")
        kind, source = self.cells[index]
        if kind == "code" and source.strip():
            self.page.wait_for_function(CELL_HAS_RUN, arg=index, polling=50)
            if shows_player(source):
                self.step_through(index)

    def step_through(self, index: int) -> None:
        """Enter the player above the active cell, see all of its steps, and come back to the cell below it."""
        player = self.cell_at(index).locator(".hv-player")
        expect(player).to_be_visible()
        self.tab_to(".hv-player", "Shift+Tab")
        press(self.page, "Home")
        count = player.locator(".hv-count")
        last = int(count.inner_text().split()[-1])
        for step in range(1, last + 1):
            expect(count).to_have_text(f"Step {step} of {last}")
            press(self.page, "ArrowRight")
        self.stepped[index] = last
        press(self.page, "Escape", "Escape")

    def tab_to(self, selector: str, key: str = "Tab") -> None:
        """Press Tab until the focus is in an element that matches."""
        for _ in range(20):
            press(self.page, key)
            if self.page.evaluate(FOCUS_IS_IN, selector):
                return
        raise AssertionError(f"{key} does not reach {selector}")

    def answer(self, text: str) -> None:
        """Replace the first line of the active cell by this answer."""
        press(self.page, "Enter", "ControlOrMeta+Home", "Shift+End")
        self.page.keyboard.type(f"answer = {text}")


def shows_player(source: str) -> bool:
    """Whether the last line of a cell is a trace, a what-if or a comparison that was recorded in it."""
    return re.search(r"\n(first|worlds|diamond|in_place|sick)$", source) is not None


@pytest.fixture(scope="module")
def typist(projector_page: Page, lab: Lab) -> Iterator[Typist]:
    open_on_projector(lab, projector_page, LESSON)
    yield Typist(projector_page)
    lab.end(LESSON)


def test_whole_lesson_works_with_the_keyboard_alone(typist: Typist) -> None:
    question = typist.find('"02.1"')
    explanation = typist.find("<summary><b>Explain")
    visited: list[int] = []
    while (index := typist.page.evaluate(ACTIVE_CELL)) < len(typist.cells) - 1:
        visited.append(index)
        if index == question:
            typist.answer("10")
        if index == explanation:
            typist.tab_to("summary")
            press(typist.page, "Enter")
            expect(typist.cell_at(index).locator("details")).to_have_attribute("open", "")
        typist.run(index)
        if index == question:
            expect(typist.cell_at(index).locator(".jp-OutputArea")).to_contain_text("Exercise 02.1: right.")
    skipped = set(range(len(typist.cells) - 1)) - set(visited)
    assert all(CHECK in typist.cells[index][1] for index in skipped), "ArrowDown passes over collapsed cells only"
    assert visited == sorted(visited)
    assert len(typist.stepped) == 5
    assert typist.page.errors == []  # type: ignore[attr-defined]
