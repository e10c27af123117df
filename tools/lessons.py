"""Make the students' lessons in notebooks/ out of those with solutions in notebooks/solutions/."""

import copy
import re
from pathlib import Path
from typing import Any

import nbformat

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
MARKED = re.compile(r"\n*^### BEGIN SOLUTION$.*?^### END SOLUTION$\n*", re.MULTILINE | re.DOTALL)
"""The lines that a student is to find; the marks are those of nbgrader, which many lecturers use already."""


def students(solution: Any) -> Any:
    """The notebook without what is marked as solution; a cell that was nothing else is left out."""
    notebook = copy.deepcopy(solution)
    for cell in notebook.cells:
        cell.source = MARKED.sub("\n", cell.source).strip("\n")
        if "SOLUTION" in cell.source:
            raise ValueError(f"a solution is begun and not ended, or ended and not begun, in this cell:\n{cell.source}")
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    return notebook


def main() -> None:
    """Write the lesson of every solution."""
    for path in sorted((NOTEBOOKS / "solutions").glob("*.ipynb")):
        solution = nbformat.read(path, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
        nbformat.write(students(solution), NOTEBOOKS / path.name, nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
