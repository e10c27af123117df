"""A lesson starts with a quiet cell that installs hookviz where it is missing, and with badges if it has an address."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import pytest

from hookviz.support.messages.languages import LANGUAGES
from tools.lesson_start import (
    BADGES_ID,
    INSTALL_ID,
    add_start,
    make_badges,
    make_install_source,
    remove_start,
)
from tools.lessons import NOTEBOOKS, make_solution
from tools.notebook_runs import folder_of, run_cells

SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))
ADDRESS = "https://github.com/example/hooks"
QUIETLY = ["-q", "--upgrade-strategy", "only-if-needed"]
Runner = Callable[[str], list[list[str]]]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


@pytest.fixture
def run_cell(monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run a cell where pip only writes a warning; return the options of each call of pip."""

    def run(source: str) -> list[list[str]]:
        calls: list[list[str]] = []

        def note_call(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            calls.append(command)
            return subprocess.CompletedProcess(command, 0, "", "pip's own words")

        monkeypatch.setattr(subprocess, "run", note_call)
        exec(source, {})
        assert all(command[:4] == [sys.executable, "-m", "pip", "install"] for command in calls)
        return [command[4:] for command in calls]

    return run


def hide(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    """Make these modules look as if they were not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else find(name))


def test_cell_does_nothing_where_hookviz_is_installed(run_cell: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cell(make_install_source("")) == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_cell_shows_nothing_in_a_notebook_where_hookviz_is_installed(language: str) -> None:
    [cell] = [cell for cell in read(folder_of(language) / "01_the_graph.ipynb").cells if cell.id == INSTALL_ID]
    run_cells(nbformat.v4.new_notebook(cells=[cell]), NOTEBOOKS, language)
    assert (cell.execution_count, cell.outputs) == (1, [])


def test_cell_installs_hookviz_and_keeps_the_versions_of_torch_and_ipywidgets(
    run_cell: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hide(monkeypatch, "hookviz")
    kept = [f"torch=={version('torch')}", f"ipywidgets=={version('ipywidgets')}"]
    assert run_cell(make_install_source("")) == [[*QUIETLY, *kept, "hookviz[lessons]"]]
    said = "pip installs hookviz, and keeps the torch and ipywidgets that are here.\npip's own words\n"
    assert capsys.readouterr() == (said, "")


def test_cell_installs_from_the_repository_and_asks_for_nothing_that_is_missing(
    run_cell: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "hookviz", "torch", "ipywidgets")
    assert run_cell(make_install_source(ADDRESS)) == [[*QUIETLY, f"hookviz[lessons] @ git+{ADDRESS}"]]


def test_badges_open_the_lesson_on_colab_and_binder() -> None:
    badges = make_badges(f"{ADDRESS}.git", "notebooks/01_the_graph.ipynb")
    assert make_badges("", "notebooks/01_the_graph.ipynb") == ""
    assert "(https://colab.research.google.com/github/example/hooks/blob/main/notebooks/01_the_graph.ipynb)" in badges
    assert "(https://mybinder.org/v2/gh/example/hooks/main?labpath=notebooks%2F01_the_graph.ipynb)" in badges


def test_repository_elsewhere_has_a_badge_of_binder_alone() -> None:
    badges = make_badges("https://git.example.org/hooks", "notebooks/01.ipynb")
    assert "colab" not in badges
    assert "/v2/git/https%3A%2F%2Fgit.example.org%2Fhooks/main?labpath=notebooks%2F01.ipynb" in badges


def test_start_is_below_the_title_once_and_can_be_removed() -> None:
    lesson = remove_start(read(SOLUTIONS[0]))
    started = add_start(add_start(lesson, "old.ipynb", ADDRESS), "new.ipynb", ADDRESS)
    nbformat.validate(started)
    assert [cell.id for cell in started.cells[:4]] == ["c01", BADGES_ID, INSTALL_ID, lesson.cells[1].id]
    assert "new.ipynb" in started.cells[1].source and "old.ipynb" not in started.cells[1].source
    assert remove_start(started) == lesson


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_every_solution_has_the_start_that_is_made_for_it(path: Path) -> None:
    assert read(path) == make_solution(path), "run: make lessons"
