"""Make the students' lessons in notebooks/ from the ones with solutions in notebooks/solutions/."""

import copy
import re
from pathlib import Path
from typing import Any

import nbformat

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
MARKED = re.compile(
    r"\n*^### BEGIN (?P<kind>SOLUTION|HIDDEN TESTS)$.*?^### END (?P=kind)$\n*", re.MULTILINE | re.DOTALL
)
"""The lines that a student has to write, and those that check what the lesson says, between the marks of nbgrader."""
BLANK = re.compile(r"^(?P<indent> +)### BEGIN SOLUTION$.*?^(?P=indent)### END SOLUTION$", re.MULTILINE | re.DOTALL)
"""Lines inside a function or class that a student has to write."""
YOUR_LINES = "...  # your lines"
"""What stands in their place. It does nothing, so the lesson runs, and shows what is missing."""
LEFTOVER = re.compile(r"### (?:BEGIN|END) ")


def remove_solutions(solution: Any) -> Any:
    """Copy a notebook without its solutions and checks; a cell that has nothing else is left out.

    Raises:
        ValueError: a mark has no counterpart.
    """
    notebook = copy.deepcopy(solution)
    for cell in notebook.cells:
        source = BLANK.sub(lambda match: match["indent"] + YOUR_LINES, cell.source)
        cell.source = MARKED.sub("\n", source).strip("\n")
        if LEFTOVER.search(cell.source):
            raise ValueError(f"a mark is begun and not ended, or ended and not begun, in this cell:\n{cell.source}")
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    return notebook


def main() -> None:
    """Write the lesson for every solution."""
    for path in sorted((NOTEBOOKS / "solutions").glob("*.ipynb")):
        solution = nbformat.read(path, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
        nbformat.write(remove_solutions(solution), NOTEBOOKS / path.name, nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
