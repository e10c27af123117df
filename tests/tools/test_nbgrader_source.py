"""The assignments for nbgrader: an exercise is a cell for the answer and a locked cell that gives points."""

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tools.lesson_pages import is_check
from tools.lesson_start import INSTALL_ID
from tools.nbgrader_source import make_assignments, make_source
from tools.notebook_runs import NOTEBOOKS

SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("[0-9]*_*.ipynb"))


def source_of(*sources: str) -> list[Any]:
    cells = [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    return list(make_source(nbformat.v4.new_notebook(cells=cells)).cells)


def test_an_exercise_becomes_an_answer_and_its_points() -> None:
    solution = "answer = None\n### BEGIN SOLUTION\nanswer = 4\n### END SOLUTION"
    answer, points = source_of(f'{solution}\ncheck("01.2", answer)')
    assert (answer.source, points.source) == (solution, 'check("01.2", answer).score')
    assert answer.metadata.nbgrader.solution and not answer.metadata.nbgrader.grade
    assert points.metadata.nbgrader.grade and points.metadata.nbgrader.locked and points.metadata.nbgrader.points == 1


def test_other_solutions_can_be_cleared_and_checks_of_the_lesson_are_left_out() -> None:
    check = "### BEGIN HIDDEN TESTS\nassert a\n### END HIDDEN TESTS"
    blank, shown = source_of("### BEGIN SOLUTION\na = 1\n### END SOLUTION", check, f"a\n{check}")
    assert blank.metadata.nbgrader.solution and shown.source == "a" and "nbgrader" not in shown.metadata


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_the_assignment_of_a_lesson_gives_a_point_for_each_exercise(path: Path, tmp_path: Path) -> None:
    (written,) = make_assignments([path], tmp_path)
    assert written == tmp_path / "source" / path.stem / path.name and (tmp_path / "nbgrader_config.py").exists()
    source, solution = nbformat.read(written, as_version=4), nbformat.read(path, as_version=4)
    nbformat.validate(source)
    graded = [cell.metadata.nbgrader for cell in source.cells if "nbgrader" in cell.metadata]
    assert len({entry.grade_id for entry in graded}) == len(graded)
    assert sum(entry.grade for entry in graded) == sum(map(is_check, solution.cells)) > 3
    assert "HIDDEN TESTS" not in written.read_text(encoding="utf-8")
    assert INSTALL_ID not in [cell.id for cell in source.cells]
