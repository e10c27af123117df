"""Make the students' lessons in notebooks/ from the ones with solutions in notebooks/solutions/, and their start."""

import copy
import itertools
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

from hookviz.support.messages.languages import LANGUAGES
from tools.lesson_start import add_start, read_repository
from tools.questions import read_exam, write_answers
from tools.translation.message_sources import NOTEBOOKS

PAGE = "what_your_article_says.ipynb"
"""The look-up page. It is no lesson, but has a solution with its checks, too."""
_BETWEEN_MARKS = r"\n*^### BEGIN (?P<kind>{})$.*?^### END (?P=kind)$\n*"
MARKED = re.compile(_BETWEEN_MARKS.format("SOLUTION|HIDDEN TESTS"), re.MULTILINE | re.DOTALL)
"""The lines that a student has to write, and those that check what the lesson says, between the marks of nbgrader."""
HIDDEN_TESTS = re.compile(_BETWEEN_MARKS.format("HIDDEN TESTS"), re.MULTILINE | re.DOTALL)
"""The lines that check what the lesson says."""
LESSONS_OF_ENTRY = re.compile(
    r"^(?P<before>In the lessons: |见课程：)(?P<numbers>\d\d(?:(?:, |、)\d\d)*)(?P<after>[.。])$", re.MULTILINE
)
"""The last line of an entry of the look-up page, in its solution: the numbers of lessons."""
ROW = re.compile(r"^\| [\dWK]\S* \| .+ \| (.*) \|$", re.MULTILINE)
"""A row of the map from the articles to cells, in notebooks/README.md."""
CELL_LINK = re.compile(r"\[(?P<where>\d\d|page|速查页)[,，][^\]]+\]\(\w+\.ipynb#cell-id=(?P<cell>[\w-]+)\)")
LESSON = re.compile(r"^\| (\[(\d\d) .+?\]\(\d\d_\w+\.ipynb\)) \|", re.MULTILINE)
BLANK = re.compile(r"^(?P<indent> +)### BEGIN SOLUTION$.*?^(?P=indent)### END SOLUTION$", re.MULTILINE | re.DOTALL)
"""Lines inside a function or class that a student has to write."""
YOUR_LINES = "pass  # your lines"
"""What stands in their place. It does nothing, so the lesson runs, and shows what is missing."""
LEFTOVER = re.compile(r"### (?:BEGIN|END) ")


def folder_of(language: str, folder: Path = NOTEBOOKS) -> Path:
    """The folder of the lessons in a language, or of what else is made: each other language has one inside of it."""
    return folder if language == "en" else folder / language


def find_lessons(numbers: Sequence[str], language: str) -> list[Path]:
    """Return the paths of the lessons with these numbers.

    Raises:
        SystemExit: there is no lesson with one of these numbers, or there are no numbers; Python says so, and ends.
    """
    paths = {path.name[:2]: path for path in sorted(folder_of(language).glob("[0-9]*_*.ipynb"))}
    if not numbers or not paths.keys() >= set(numbers):
        known = ", ".join(paths)
        sys.exit(f"There is no lesson with one of these numbers: {' '.join(numbers)}. There are {known}.")
    return [paths[number] for number in numbers]


def language_of(path: Path) -> str:
    """The language of a notebook."""
    return path.parent.name if path.parent.name in LANGUAGES else "en"


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


def remove_checks(solution: Any) -> Any:
    """Copy a notebook with solutions without the checks of what the lesson says."""
    notebook = copy.deepcopy(solution)
    for cell in notebook.cells:
        cell.source = HIDDEN_TESTS.sub("\n", cell.source).strip("\n")
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    return notebook


def link_lessons(page: Any, readme: str) -> Any:
    """In the look-up page, replace the numbers of lessons by links to the cells that the map names for the entry.

    A lesson of which the map names no cell for an entry is linked as a whole.
    """
    notebook = copy.deepcopy(page)
    lessons = {number: link for link, number in LESSON.findall(readme)}
    rows = [row.split(" · ") for row in ROW.findall(readme)]
    for at, cell in enumerate(notebook.cells):
        match = LESSONS_OF_ENTRY.search(cell.source) if cell.cell_type == "markdown" else None
        if match is None:
            continue
        cell_ids = _code_cells_after(notebook, at)
        links = []
        for number in re.findall(r"\d\d", match["numbers"]):
            links += _links_to_lesson(number, cell_ids, rows) or [lessons[number]]
        cell.source = cell.source.replace(match[0], f"{match['before']}{' · '.join(links)}{match['after']}")
    return notebook


def _code_cells_after(notebook: Any, at: int) -> set[str]:
    """The ids of the cells of code that follow a cell of text."""
    following = itertools.takewhile(lambda cell: cell.cell_type == "code", notebook.cells[at + 1 :])
    return {cell.id for cell in following}


def _links_to_lesson(number: str, cell_ids: set[str], rows: list[list[str]]) -> list[str]:
    """The links to one lesson in the rows of the map that also lead to one of these cells of the page."""
    found: dict[str, None] = {}
    for row in rows:
        targets = [CELL_LINK.fullmatch(link) for link in row]
        if any(match and not match["where"].isdigit() and match["cell"] in cell_ids for match in targets):
            same = (link for link, match in zip(row, targets, strict=True) if match and match["where"] == number)
            found |= dict.fromkeys(same)
    return list(found)


def make_student_notebook(path: Path) -> Any:
    """Make the student's notebook from the solution at ``path``."""
    notebook = remove_solutions(_read(path))
    if path.name == PAGE:
        notebook = link_lessons(notebook, (NOTEBOOKS / "README.md").read_text(encoding="utf-8"))
    return add_start(notebook, f"notebooks/{path.name}", read_repository())


def make_solution(path: Path) -> Any:
    """Make the solution at ``path`` anew, with the start that every lesson has."""
    return add_start(_read(path), f"notebooks/solutions/{path.name}", read_repository())


def _read(path: Path) -> Any:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]


def main() -> None:
    """Write the start of every solution, the student's notebook for it, and the answers to the exam."""
    for path in sorted((NOTEBOOKS / "solutions").glob("*.ipynb")):
        nbformat.write(make_solution(path), path, nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
        nbformat.write(make_student_notebook(path), NOTEBOOKS / path.name, nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    answers = write_answers(read_exam(NOTEBOOKS))
    (NOTEBOOKS / "solutions" / "exam_answers.md").write_text(answers, encoding="utf-8")


if __name__ == "__main__":
    main()
