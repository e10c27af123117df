"""A lesson is its solution without the marked lines, and without them no check says right."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

import hookviz as hv
from tools.lessons import NOTEBOOKS, remove_solutions

SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def test_each_lesson_has_its_solution() -> None:
    assert [path.name for path in SOLUTIONS] == sorted(path.name for path in NOTEBOOKS.glob("[01]*.ipynb"))


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_the_lesson_is_made_from_it(path: Path) -> None:
    assert read(NOTEBOOKS / path.name) == remove_solutions(read(path)), "run: python tools/lessons.py"


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_without_the_marked_lines_every_check_waits_for_an_answer(path: Path) -> None:
    checks = [cell.source for cell in remove_solutions(read(path)).cells if "hv.check(" in cell.source]
    asked = [re.fullmatch(r'answer = None.*\nhv\.check\("(\d\d\.\d)", answer\)', source) for source in checks]
    verdicts = [hv.check(found[1], None) for found in asked if found]
    assert len(verdicts) == len(checks) > 3
    assert not any(verdict.right for verdict in verdicts)


def notebook_of(*sources: str) -> Any:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def test_marked_lines_and_cells_that_hold_nothing_else_are_left_out() -> None:
    marked = "### BEGIN SOLUTION\nanswer = 7\n### END SOLUTION"
    found = remove_solutions(notebook_of("answer = None\n" + marked + "\ncheck(answer)", marked, "last"))
    assert [cell.source for cell in found.cells] == ["answer = None\ncheck(answer)", "last"]


@pytest.mark.parametrize(
    "source", ["### BEGIN SOLUTION\n1", "1\n### END SOLUTION", "  ### BEGIN SOLUTION\n1\n  ### END SOLUTION"]
)
def test_a_solution_whose_marks_do_not_match_is_an_error(source: str) -> None:
    with pytest.raises(ValueError, match="not ended, or ended and not begun"):
        remove_solutions(notebook_of(source))
