"""A lesson is its solution without the marked lines; with them every check says right, without them none does."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from hookviz.quiz.check import JUDGES
from tools.lessons import NOTEBOOKS, students

SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def verdicts(notebook: Any) -> list[str]:
    """What each check of a notebook that ran has said."""
    checks = [cell for cell in notebook.cells if "hv.check(" in cell.source]
    return [cell.outputs[-1].data["text/plain"] for cell in checks]


def test_each_lesson_has_its_solution() -> None:
    assert [path.name for path in SOLUTIONS] == sorted(path.name for path in NOTEBOOKS.glob("[01]*.ipynb"))


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_the_lesson_is_made_from_it(path: Path) -> None:
    assert read(NOTEBOOKS / path.name) == students(read(path)), "run: python tools/lessons.py"


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_every_answer_in_it_is_right(path: Path) -> None:
    notebook = NotebookClient(read(path), timeout=60, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    asked = [name for name in JUDGES if name.startswith(path.name[:2])]
    expected = [f"Exercise {name}: right." for name in asked]
    assert [said[: len(right)] for said, right in zip(verdicts(notebook), expected, strict=True)] == expected


def notebook_of(*sources: str) -> Any:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def test_marked_lines_and_cells_that_hold_nothing_else_are_left_out() -> None:
    marked = "### BEGIN SOLUTION\nanswer = 7\n### END SOLUTION"
    found = students(notebook_of("answer = None\n" + marked + "\ncheck(answer)", marked, "last"))
    assert [cell.source for cell in found.cells] == ["answer = None\ncheck(answer)", "last"]


@pytest.mark.parametrize(
    "source", ["### BEGIN SOLUTION\n1", "1\n### END SOLUTION", "  ### BEGIN SOLUTION\n1\n  ### END SOLUTION"]
)
def test_a_solution_whose_marks_do_not_match_is_an_error(source: str) -> None:
    with pytest.raises(ValueError, match="not ended, or ended and not begun"):
        students(notebook_of(source))
