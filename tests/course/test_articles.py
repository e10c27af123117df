"""The page on what articles say runs, each of its entries runs alone, and a cell asserts every number in its prose."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.course.reading import (
    FOLDER,
    PAGE,
    check_link,
    has_assertion,
    heading_above,
    headings,
    links_to_cells,
    read_notebook,
    read_solution,
)
from tests.course.test_notebooks import (
    CUDA_ALLOWANCE,
    NOT_A_CLAIM,
    USUAL_MEGABYTES,
    asserted_numbers,
    prose,
    shows_picture,
    written_to_stderr,
)
from tools.notebook_runs import run_with_solutions

NOTEBOOK, SOLUTION = read_notebook(PAGE), read_solution(PAGE)
[SETUP_CELL] = [cell.source for cell in NOTEBOOK.cells if cell.id == "first"]
ARTICLE_REFERENCE = re.compile(
    r"^(?:#+ |\| \[`|In the lessons: ).*$|\b[Aa]rticles? \d(?:(?:, | and )\d)*|TensorFlow \d|[Vv]ersion \d(?:\.\d+)?"
    r"|they are about: [^`]*?\n\n|version 0\.13|[Pp]ress 1\b",
    re.MULTILINE,
)
"""Text whose numbers are not claims: headings and contents quote code, and articles and lessons are numbered."""


def entries() -> Iterator[tuple[str, str, list[str]]]:
    """Yield (heading, text, code cells with the checks of the solution) of each entry."""
    texts = {cell.id: cell.source for cell in NOTEBOOK.cells}
    kinds = [cell.cell_type for cell in SOLUTION.cells]
    for n, cell in enumerate(SOLUTION.cells):
        if cell.source.startswith("### ") and cell.cell_type == "markdown":
            following = SOLUTION.cells[n + 1 : kinds.index("markdown", n + 1)]
            yield headings(cell)[0], texts[cell.id], [other.source for other in following]


ENTRIES = list(entries())
HEADINGS = [heading for heading, _, _ in ENTRIES]


def test_page_runs_in_a_fresh_kernel_within_the_memory_limit() -> None:
    page = run_with_solutions(FOLDER / PAGE)
    memory, _ = page.metadata.used
    assert memory <= USUAL_MEGABYTES + CUDA_ALLOWANCE
    assert written_to_stderr(page) == []
    assert 2 <= sum(map(shows_picture, page.cells)) <= 4


@pytest.mark.parametrize(("text", "cells"), [entry[1:] for entry in ENTRIES], ids=HEADINGS)
def test_entry_is_short_and_runs_alone_and_its_links_lead_to_lessons(text: str, cells: list[str]) -> None:
    claim, _, lessons = text.partition("In the lessons: ")
    assert len(claim.split()) <= 120 and any(map(has_assertion, cells))
    names: dict[str, Any] = {}
    for cell in (SETUP_CELL, *cells):
        exec(cell, names)
    for link in lessons.split(" · ") if lessons else []:
        whole_lesson = re.match(r"\[\d\d .+\]\((\w+\.ipynb)\)", link)
        assert links_to_cells(link) or (whole_lesson and (FOLDER / whole_lesson[1]).is_file())
        for cell_link in links_to_cells(link):
            check_link(cell_link)


def test_table_of_contents_links_to_each_entry_in_order() -> None:
    contents = re.findall(r"^\| \[(`.*?)\]\(#cell-id=([\w-]+)\)", prose(NOTEBOOK), re.MULTILINE)
    assert [heading for heading, _ in contents] == HEADINGS and len(set(HEADINGS)) == len(HEADINGS)
    assert [heading_above(NOTEBOOK, cell) for _, cell in contents] == HEADINGS


def test_every_number_in_the_prose_is_asserted_by_a_cell() -> None:
    claims = NOT_A_CLAIM.sub(" ", ARTICLE_REFERENCE.sub(" ", prose(NOTEBOOK)))
    claimed = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", claims))
    assert len(claimed) > 5
    assert sorted(claimed - asserted_numbers(SOLUTION)) == []


def test_all_eleven_contradictions_name_both_sides_and_lead_to_an_entry_that_runs() -> None:
    table = prose(NOTEBOOK).partition("## Where the articles contradict each other")[2]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+? \| \[`.+?\]\(#cell-id=([\w-]+)-text\) \|$", table, re.MULTILINE)
    assert len(rows) == 11 and all(question.endswith("?") and " · " in sides for question, sides, _ in rows)
    texts = {cell.id: cell.source for cell in NOTEBOOK.cells}
    assert all("**Articles disagree.**" in texts[f"{entry}-text"] for *_, entry in rows)
