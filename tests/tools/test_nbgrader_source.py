"""The assignments for nbgrader: an exercise is a cell for the answer and a locked cell that gives points."""

from pathlib import Path

import nbformat

from tools.lesson_pages import is_check
from tools.lesson_start import INSTALL_ID
from tools.nbgrader_source import make_assignments
from tools.translation.message_sources import SOLUTIONS


def test_an_assignment_gives_a_point_for_each_exercise_and_hides_the_checks_of_the_lesson(tmp_path: Path) -> None:
    solutions = sorted(SOLUTIONS.glob("[0-9]*_*.ipynb"))
    written = make_assignments(solutions, tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        f"source/{path.stem}/{path.name}" for path in solutions
    ]
    assert (tmp_path / "nbgrader_config.py").exists()
    for path, solution in zip(written, solutions, strict=True):
        source = nbformat.read(path, as_version=4)
        nbformat.validate(source)
        graded = {cell.metadata.nbgrader.grade_id: cell for cell in source.cells if "nbgrader" in cell.metadata}
        points = [cell for cell in graded.values() if cell.metadata.nbgrader.grade]
        checks = [cell for cell in nbformat.read(solution, as_version=4).cells if is_check(cell)]
        assert len(points) == len(checks) >= 3
        assert all(cell.source.endswith(".score") and cell.metadata.nbgrader.locked for cell in points)
        assert all(cell.metadata.nbgrader.solution for cell in graded.values() if cell not in points)
        assert "HIDDEN TESTS" not in path.read_text(encoding="utf-8")
        assert INSTALL_ID not in [cell.id for cell in source.cells]
