"""Read the notebooks: their cells, the headings above the cells, and the links to cells."""

import ast
import re
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

from tools.lesson_start import remove_start

FOLDER = Path(__file__).parents[2] / "notebooks"
PAGE = "what_your_article_says.ipynb"
CELL_LINK = re.compile(r'\[(\d\d|page), "(.+?)"\]\(([\w.]+)#cell-id=([\w-]+)\)')


class Link(NamedTuple):
    """A link in a text to a cell of a notebook."""

    name: str
    heading: str
    file: str
    cell: str


def links_to_cells(text: str) -> list[Link]:
    return [Link(*found) for found in CELL_LINK.findall(text)]


@cache
def read_notebook(file: str) -> Any:
    """Read a notebook of a student, without the cell that installs hookviz."""
    return remove_start(nbformat.read(FOLDER / file, as_version=4))


def headings(cell: Any) -> list[str]:
    """The headings of a markdown cell; a lesson's title comes without its number."""
    lines = cell.source.splitlines() if cell.cell_type == "markdown" else []
    return [re.sub(r"^#+ (Lesson \d\d · )?", "", line) for line in lines if re.match("#+ ", line)]


def heading_above(notebook: Any, cell_id: str) -> str:
    """The last heading before a cell; raises KeyError if the notebook has no such cell."""
    found = ""
    for cell in notebook.cells:
        found = [found, *headings(cell)][-1]
        if cell.id == cell_id:
            return found
    raise KeyError(cell_id)


def has_assertion(source: str) -> bool:
    """Whether the code has an assertion that uses a variable."""
    assertions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    return any(isinstance(part, ast.Name) for node in assertions for part in ast.walk(node))


@cache
def read_solution(file: str) -> Any:
    """Read the notebook from which a student's notebook is made: it also has the checks of what the lesson says."""
    path = FOLDER / "solutions" / file
    return remove_start(nbformat.read(path if path.exists() else FOLDER / file, as_version=4))


def code_with_checks(file: str, cell_id: str) -> str:
    """The code of a student's cell, with the checks that follow it in the solution."""
    shown = {cell.id for cell in read_notebook(file).cells}
    cells = read_solution(file).cells
    at = next(n for n, cell in enumerate(cells) if cell.id == cell_id)
    checks = takewhile(lambda cell: cell.id not in shown or cell.cell_type != "code", cells[at + 1 :])
    return "\n".join(cell.source for cell in (cells[at], *checks) if cell.cell_type == "code")


def check_link(link: Link) -> None:
    """Check that a link names the heading above a cell of code in a student's notebook, and that it is checked."""
    notebook = read_notebook(link.file)
    assert link.name == ("page" if link.file == PAGE else link.file[:2])
    assert link.heading == heading_above(notebook, link.cell)
    [cell] = [cell for cell in notebook.cells if cell.id == link.cell]
    assert cell.cell_type == "code" and has_assertion(code_with_checks(link.file, link.cell))
