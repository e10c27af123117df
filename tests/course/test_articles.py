"""The page on what articles say: it runs, each entry alone, and states no number that no cell asserts."""

import re
import time
from collections.abc import Iterator
from typing import Any

import nbconvert
import nbformat
import pytest

from tests.course.reading import FOLDER, PAGE, asserts, check_link, heading_above, headings, links_to_cells, read
from tests.course.test_notebooks import NOT_A_CLAIM, ROOM, USUAL, asserted, code, prose, run, shows_picture, used

NOTEBOOK = read(PAGE)
FIRST = code(NOTEBOOK)[0]
NAMES_A_SOURCE = re.compile(r"^(?:#+ |\| \[`|In the lessons: ).*$|\barticles? \d[^:]*:|from 0 to 4", re.MULTILINE)
"""Headings and contents are code out of articles; the articles and the lessons have numbers."""


def entries() -> Iterator[tuple[str, str, list[str]]]:
    """(heading, text, code cells) of each entry."""
    for n, cell in enumerate(NOTEBOOK.cells):
        if cell.source.startswith("### "):
            kinds = [other.cell_type for other in NOTEBOOK.cells]
            following = NOTEBOOK.cells[n + 1 : kinds.index("markdown", n + 1)]
            yield headings(cell)[0], cell.source, [other.source for other in following]


ENTRIES = list(entries())
HEADINGS = [heading for heading, _, _ in ENTRIES]


@pytest.fixture(scope="module")
def ran() -> tuple[Any, float]:
    """The page after it ran in a fresh kernel, and how long that took."""
    start = time.monotonic()
    return run(FOLDER / PAGE), time.monotonic() - start


def test_it_runs_in_a_fresh_kernel_within_its_time_and_memory(ran: tuple[Any, float]) -> None:
    memory, seconds = used(*ran)
    assert seconds <= 30
    assert memory <= USUAL + ROOM


def test_it_writes_nothing_to_stderr_and_shows_a_few_pictures(ran: tuple[Any, float]) -> None:
    outputs = [output for cell in ran[0].cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert 2 <= sum(shows_picture(cell) for cell in ran[0].cells) <= 4


def test_it_is_kept_without_outputs_and_with_a_kernel() -> None:
    nbformat.validate(NOTEBOOK)
    assert all(cell.outputs == [] and cell.execution_count is None for cell in NOTEBOOK.cells if "outputs" in cell)
    assert NOTEBOOK.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize(("text", "cells"), [entry[1:] for entry in ENTRIES], ids=HEADINGS)
def test_an_entry_is_short_asserts_and_needs_no_cell_but_the_first(text: str, cells: list[str]) -> None:
    assert len(text.partition("In the lessons:")[0].split()) <= 110
    assert all(len([line for line in cell.splitlines() if line.strip()]) <= 6 for cell in cells)
    assert max(len(line) for cell in cells for line in cell.splitlines()) <= 100
    assert any(map(asserts, cells))
    names: dict[str, Any] = {}
    for cell in (FIRST, *cells):
        exec(cell, names)


@pytest.mark.parametrize("text", [text for _, text, _ in ENTRIES], ids=HEADINGS)
def test_an_entry_leads_to_the_lessons(text: str) -> None:
    links = text.partition("In the lessons: ")[2].split(" · ")
    assert links[-1].endswith(").")
    for link in links:
        [*cells] = links_to_cells(link)
        whole = re.match(r"\[\d\d .+\]\((\w+)\.ipynb\)", link)
        assert cells or (whole and (FOLDER / f"{whole[1]}.ipynb").is_file())
        for cell in cells:
            check_link(cell)


def test_the_contents_lead_to_each_entry() -> None:
    contents = re.findall(r"^\| \[(`.*?)\]\(#cell-id=([\w-]+)\)", prose(NOTEBOOK), re.MULTILINE)
    assert [heading for heading, _ in contents] == HEADINGS and len(set(HEADINGS)) == len(HEADINGS)
    assert [heading_above(NOTEBOOK, cell) for _, cell in contents] == HEADINGS


def test_every_link_within_the_page_leads_somewhere_once_it_is_html() -> None:
    page, _ = nbconvert.HTMLExporter().from_notebook_node(NOTEBOOK)
    targets = re.findall(r'href="#(cell-id=[^"]+)"', page)
    assert len(targets) > len(HEADINGS) and set(targets) <= set(re.findall(r'id="(cell-id=[^"]+)"', page))


def test_every_number_in_its_prose_is_asserted() -> None:
    claims = NOT_A_CLAIM.sub(" ", NAMES_A_SOURCE.sub(" ", prose(NOTEBOOK)))
    stated = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", claims))
    assert len(stated) > 5
    assert sorted(stated - asserted(NOTEBOOK)) == []


def test_the_text_of_what_is_said_to_a_program_is_found() -> None:
    names: dict[str, Any] = {}
    exec(FIRST, names)
    said, warn = names["said"], names["warnings"].warn
    assert (said(lambda: 1 / 0), said(lambda: warn("careful", stacklevel=1)), said(lambda: 1)) == (
        "division by zero",
        "careful",
        "",
    )
