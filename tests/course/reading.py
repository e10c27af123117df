"""The notebooks as tests of their texts read them: cells, the headings above them, and links to both."""

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

FOLDER = Path(__file__).parents[2] / "notebooks"
PAGE = "what_your_article_says.ipynb"
TO_CELL = re.compile(r'\[(\d\d|page), "(.+?)"\]\(([\w.]+)#cell-id=([\w-]+)\)')


class Link(NamedTuple):
    """A link in a text to a cell of a notebook."""

    name: str
    heading: str
    file: str
    cell: str


def links_to_cells(text: str) -> list[Link]:
    return [Link(*found) for found in TO_CELL.findall(text)]


def read(file: str) -> Any:
    return nbformat.read(FOLDER / file, as_version=4)


def headings(cell: Any) -> list[str]:
    """Of a markdown cell; a lesson's title without its number."""
    lines = cell.source.splitlines() if cell.cell_type == "markdown" else []
    return [re.sub(r"^#+ (Lesson \d\d · )?", "", line) for line in lines if re.match("#+ ", line)]


def heading_above(notebook: Any, cell_id: str) -> str:
    """The last heading in front of a cell; a KeyError where there is no such cell."""
    found = ""
    for cell in notebook.cells:
        found = [found, *headings(cell)][-1]
        if cell.id == cell_id:
            return found
    raise KeyError(cell_id)


def asserts(source: str) -> bool:
    """Whether the code asserts something that it has computed."""
    stated = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    return any(isinstance(part, ast.Name) for node in stated for part in ast.walk(node))


def check_link(link: Link) -> None:
    """A link to a cell names the heading above it, and the cell is code that asserts something."""
    notebook = read(link.file)
    assert link.name == ("page" if link.file == PAGE else link.file[:2])
    assert link.heading == heading_above(notebook, link.cell)
    [cell] = [cell for cell in notebook.cells if cell.id == link.cell]
    assert cell.cell_type == "code" and asserts(cell.source)
