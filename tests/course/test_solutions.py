"""A lesson is its solution without the marked lines, and its checks do not pass without them."""

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tools.lessons import NOTEBOOKS, make_student_notebook, remove_solutions

SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def test_each_student_notebook_has_its_solution() -> None:
    assert [path.name for path in SOLUTIONS] == sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_lesson_is_generated_from_its_solution(path: Path) -> None:
    assert read(NOTEBOOKS / path.name) == make_student_notebook(path), "run: make lessons"


def notebook_of(*sources: str) -> Any:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def test_solutions_and_checks_of_what_a_lesson_says_are_removed_with_cells_left_empty() -> None:
    marked = "### BEGIN SOLUTION\nanswer = 7\n### END SOLUTION"
    tests = "### BEGIN HIDDEN TESTS\nassert a == 4\n### END HIDDEN TESTS"
    match = remove_solutions(notebook_of("answer = None\n" + marked + "\ncheck(answer)", marked, "a\n" + tests, tests))
    assert [cell.source for cell in match.cells] == ["answer = None\ncheck(answer)", "a"]


def test_lines_inside_a_function_are_replaced_by_a_line_that_does_nothing() -> None:
    lines = "    ### BEGIN SOLUTION\n    y = x\n\n    y += 1\n    ### END SOLUTION\n"
    [cell] = remove_solutions(notebook_of(f"def f(x):\n    y = 0\n{lines}    return y\n\n\nf(1)")).cells
    assert cell.source == "def f(x):\n    y = 0\n    pass  # your lines\n    return y\n\n\nf(1)"
