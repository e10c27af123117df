"""Make assignments for nbgrader of lessons in build/nbgrader: ``python -m tools.nbgrader_source 01 02``.

Each exercise becomes a cell for the answer, and a locked cell with its points: the result of ``check(...).score``.
"""

import re
import sys
from pathlib import Path
from typing import Any

import nbformat

from tools.lesson_pages import CHECK
from tools.lesson_start import remove_start
from tools.lessons import find_lessons, remove_checks
from tools.translation.message_sources import NOTEBOOKS, SOLUTIONS

TARGET = Path("build") / "nbgrader"
CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "hooks"
c.ClearSolutions.code_stub = {"python": "...  # your answer"}
"""


def main(numbers: list[str]) -> None:
    """Make the assignments of the lessons with these numbers, or of all, and print their paths."""
    lessons = find_lessons(numbers, "en") if numbers else sorted(NOTEBOOKS.glob("[0-9]*_*.ipynb"))
    print(*make_assignments([SOLUTIONS / path.name for path in lessons], TARGET), sep="\n")


def make_assignments(solutions: list[Path], target: Path) -> list[Path]:
    """Write the configuration of the course into ``target``, and the assignments into ``target/source``."""
    target.mkdir(parents=True, exist_ok=True)
    (target / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    written = []
    for path in solutions:
        folder = target / "source" / path.stem
        folder.mkdir(parents=True, exist_ok=True)
        source = make_source(nbformat.read(path, as_version=nbformat.NO_CONVERT))  # type: ignore[no-untyped-call]
        nbformat.write(source, folder / path.name, nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
        written.append(folder / path.name)
    return written


def make_source(solution: Any) -> Any:
    """Make the notebook of an assignment from a lesson with solutions; its checks of the lesson itself are left out.

    So are its badges and the cell that installs hookviz: where nbgrader runs, a lecturer has installed it.
    """
    cells = [made for cell in remove_checks(remove_start(solution)).cells for made in _make_cells(cell)]
    return nbformat.v4.new_notebook(cells=cells, metadata=solution.metadata)  # type: ignore[no-untyped-call]


def _make_cells(cell: Any) -> list[Any]:
    """Make the cells of an assignment from a cell of a lesson."""
    if cell.cell_type != "code":
        return [cell]
    check = CHECK.search(cell.source)
    if check is not None:
        return _make_exercise(cell, check)
    if "### BEGIN SOLUTION" in cell.source:
        cell.metadata["nbgrader"] = _make_metadata(f"answer-{cell.id}", is_answer=True)
    return [cell]


def _make_exercise(cell: Any, check: re.Match[str]) -> list[Any]:
    """Make the cell in which the student answers, and the cell that gives points for it."""
    name = check["exercise"].replace(".", "-")
    answer = nbformat.v4.new_code_cell(CHECK.sub("", cell.source).rstrip("\n"), id=f"answer-{name}")  # type: ignore[no-untyped-call]
    points = nbformat.v4.new_code_cell(f"{check[0]}.score", id=f"points-{name}")  # type: ignore[no-untyped-call]
    answer.metadata["nbgrader"] = _make_metadata(f"answer-{name}", is_answer=True)
    points.metadata["nbgrader"] = _make_metadata(f"points-{name}", is_answer=False)
    return [answer, points] if answer.source else [points]


def _make_metadata(grade_id: str, *, is_answer: bool) -> dict[str, Any]:
    common = {"grade_id": grade_id, "schema_version": 3, "task": False, "cell_type": "code"}
    if is_answer:
        return {**common, "grade": False, "solution": True, "locked": False}
    return {**common, "grade": True, "solution": False, "locked": True, "points": 1}


if __name__ == "__main__":
    main(sys.argv[1:])
