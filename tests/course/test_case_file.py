"""The case file of the sick network stands as a whole in lesson 09; the lessons before it add their own row or none."""

import re
from pathlib import Path

import nbformat
import pytest

from tests.course.test_notebooks import LESSONS

ROW = re.compile(r"^\| (0\d) \|(?: .+ \|)+$", re.MULTILINE)
LAST = "09"


def rows(path: Path) -> list[str]:
    """The lessons whose rows of the case file a notebook shows."""
    cells = nbformat.read(path, as_version=4).cells
    return [number for cell in cells if cell.cell_type == "markdown" for number in ROW.findall(cell.source)]


def test_lesson_09_has_a_row_of_each_lesson_before_it() -> None:
    [path] = [path for path in LESSONS if path.name[:2] == LAST]
    assert rows(path) == [f"{number:02}" for number in range(1, int(LAST))]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_no_other_lesson_repeats_the_rows_of_others(path: Path) -> None:
    assert path.name[:2] == LAST or {*rows(path)} <= {path.name[:2]}
