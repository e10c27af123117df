"""The page on what articles say runs, each of its entries runs alone, and a cell asserts every number in its prose."""

import re
from collections.abc import Iterator
from typing import Any

import nbformat
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
    code,
    prose,
    shows_picture,
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
    for n, cell in enumerate(SOLUTION.cells):
        if cell.source.startswith("### ") and cell.cell_type == "markdown":
            kinds = [other.cell_type for other in SOLUTION.cells]
            following = SOLUTION.cells[n + 1 : kinds.index("markdown", n + 1)]
            yield headings(cell)[0], texts[cell.id], [other.source for other in following]


ENTRIES = list(entries())
HEADINGS = [heading for heading, _, _ in ENTRIES]


@pytest.fixture(scope="module")
def page_run() -> Any:
    """The page's solution after a run in a fresh kernel."""
    return run_with_solutions(FOLDER / PAGE)


def test_page_runs_in_a_fresh_kernel_within_the_memory_limit(page_run: Any) -> None:
    memory, _ = page_run.metadata.used
    assert memory <= USUAL_MEGABYTES + CUDA_ALLOWANCE


def test_page_writes_nothing_to_stderr_and_shows_two_to_four_pictures(page_run: Any) -> None:
    outputs = [output for cell in page_run.cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert 2 <= sum(shows_picture(cell) for cell in page_run.cells) <= 4


def test_page_is_committed_without_outputs_and_with_a_kernelspec() -> None:
    nbformat.validate(NOTEBOOK)
    assert all(cell.outputs == [] and cell.execution_count is None for cell in NOTEBOOK.cells if "outputs" in cell)
    assert NOTEBOOK.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize(("text", "cells"), [entry[1:] for entry in ENTRIES], ids=HEADINGS)
def test_entry_is_short_has_an_assertion_and_depends_only_on_the_setup_cell(text: str, cells: list[str]) -> None:
    assert len(text.partition("In the lessons:")[0].split()) <= 120
    assert all(len([line for line in cell.splitlines() if line.strip()]) <= 20 for cell in cells)
    shown = [cell for cell in cells if "### BEGIN HIDDEN TESTS" not in cell]
    assert max(len(line) for cell in shown for line in cell.splitlines()) <= 100
    assert any(map(has_assertion, cells))
    names: dict[str, Any] = {}
    for cell in (SETUP_CELL, *cells):
        exec(cell, names)


@pytest.mark.parametrize("text", [text for _, text, _ in ENTRIES], ids=HEADINGS)
def test_entry_links_to_existing_lessons_or_is_shown_here_only(text: str) -> None:
    _, mark, lessons = text.partition("In the lessons: ")
    if not mark:
        return
    links = lessons.split(" · ")
    assert links[-1].endswith(").")
    for link in links:
        [*cells] = links_to_cells(link)
        lesson_link = re.match(r"\[\d\d .+\]\((\w+)\.ipynb\)", link)
        assert cells or (lesson_link and (FOLDER / f"{lesson_link[1]}.ipynb").is_file())
        for cell in cells:
            check_link(cell)


def test_table_of_contents_links_to_each_entry_in_order() -> None:
    contents = re.findall(r"^\| \[(`.*?)\]\(#cell-id=([\w-]+)\)", prose(NOTEBOOK), re.MULTILINE)
    assert [heading for heading, _ in contents] == HEADINGS and len(set(HEADINGS)) == len(HEADINGS)
    assert [heading_above(NOTEBOOK, cell) for _, cell in contents] == HEADINGS


@pytest.mark.parametrize("heading", HEADINGS)
def test_heading_begins_with_the_name_that_a_reader_searches_for(heading: str) -> None:
    """Not with a keyword or with a variable of the article, as ``loss.creator`` would."""
    assert re.match(r"`(?!(?:def|import|for|class|with) |(?!nn\.|torch\.|tf\.|F\.|__)\w+\.\w)[^`]+`", heading)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("register_hook", "values"),
        ("retain_grad", "retain-grad"),
        ("register_backward_hook", "legacy"),
        ("clone()", "detach-cpu"),
        ("pretrained", "pretrained"),
        ("volatile", "volatile"),
        (".data", "data"),
        ("creator", "creator"),
        ("previous_functions", "creator"),
        ("saved_variables", "saved-variables"),
    ],
)
def test_searching_the_headings_for_a_name_leads_to_its_entry(name: str, entry: str) -> None:
    found = [cell.id for cell in NOTEBOOK.cells if cell.source.startswith("### ") and name in headings(cell)[0]]
    assert found[0] == f"{entry}-text"


def test_every_number_in_the_prose_is_asserted_by_a_cell() -> None:
    claims = NOT_A_CLAIM.sub(" ", ARTICLE_REFERENCE.sub(" ", prose(NOTEBOOK)))
    claimed = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", claims))
    assert len(claimed) > 5
    assert sorted(claimed - asserted_numbers(SOLUTION)) == []


def test_page_shows_a_student_no_assert() -> None:
    assert not any(re.search(r"^\s*assert\b", cell, re.MULTILINE) for cell in code(NOTEBOOK))


def test_all_eleven_contradictions_name_both_sides_and_lead_to_an_entry_that_runs() -> None:
    table = prose(NOTEBOOK).partition("## Where the articles contradict each other")[2]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+? \| \[`.+?\]\(#cell-id=([\w-]+)-text\) \|$", table, re.MULTILINE)
    assert len(rows) == 11 and all(question.endswith("?") for question, _, _ in rows)
    assert all(" · " in sides for _, sides, _ in rows)
    texts = {cell.id: cell.source for cell in NOTEBOOK.cells}
    for _, _, entry in rows:
        assert "**Articles disagree.**" in texts[f"{entry}-text"]
