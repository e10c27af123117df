"""Each thing that the five articles say stands in notebooks/README.md, with a cell that runs and asserts it."""

import re
from string import ascii_lowercase

import nbformat
import pytest

from tests.course.reading import FOLDER, asserts, check_link, heading_above, links_to_cells, read

README = (FOLDER / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([\dWK]\S*) \| (.+?) \| (.*) \|$", README, re.MULTILINE)
LESSONS = [path.name for path in sorted(FOLDER.glob("[01]*.ipynb"))]
ITEMS = {
    "0.": (3, 5, 3, 2, 4, 2, 2, 5, 4),
    "1.": (3, 2, 1, 1, 2, 2, 2, 4),
    "2.": (4, 4, 1, 3, 5, 3, 2, 4),
    "3.": (7, 1, 4, 3, 13),
    "4.": (1, 3, 4, 4, 2, 2),
    "W": (2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7, 1, 1, 2),
    "K": (1, 1, 1, 1, 1),
}
"""How many items each point of an article has, then each that is wrong today, then each contradiction."""


def keys() -> list[str]:
    return [key for key, _, _ in ROWS]


def points() -> dict[str, int]:
    """How many items each point has."""
    return {f"{kind}{n}": count for kind, counts in ITEMS.items() for n, count in enumerate(counts, 1)}


@pytest.mark.parametrize("row", ROWS, ids=keys())
def test_each_item_is_shown_by_cells_that_assert_it(row: tuple[str, str, str]) -> None:
    links = links_to_cells(row[2])
    assert links and len(links) == row[2].count("](")
    for link in links:
        check_link(link)


@pytest.mark.parametrize(("point", "count"), points().items())
def test_each_item_of_a_point_is_there(point: str, count: int) -> None:
    items = sorted(key.removeprefix(point) for key in keys() if key.rstrip(ascii_lowercase) == point)
    assert items == list(ascii_lowercase[:count])


def test_no_item_stands_there_twice_or_belongs_to_no_point() -> None:
    assert len(set(keys())) == len(keys())
    assert {key.rstrip(ascii_lowercase) for key in keys()} <= points().keys()


@pytest.mark.parametrize("name", LESSONS)
def test_each_lesson_stands_there_with_its_question_and_its_time(name: str) -> None:
    [row] = re.findall(rf"^\| \[{name[:2]} (.+)\]\({name}\) \| (.+) \| (\d+) minutes \|$", README, re.MULTILINE)
    notebook = read(name)
    text = " ".join(notebook.cells[0].source.split())
    assert row[0] == heading_above(notebook, notebook.cells[0].id)
    assert f"**The question: {row[1][0].lower()}{row[1][1:]}**" in text
    assert f"about {row[2]} minutes" in text


def test_its_other_links_lead_somewhere() -> None:
    others = re.findall(r"\]\(([\w./]+)\)", README)
    assert others and all((FOLDER / target).exists() for target in others)


def notebook_of(*cells: tuple[str, str]) -> nbformat.NotebookNode:
    make = {"text": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    return nbformat.v4.new_notebook(cells=[make[kind](source, id=f"c{n}") for n, (kind, source) in enumerate(cells)])


def test_the_heading_above_a_cell_is_the_last_one_and_a_title_goes_without_its_number() -> None:
    notebook = notebook_of(("text", "# Lesson 01 · Title\ntext"), ("code", "1  # no heading"), ("text", "## Next"))
    assert [heading_above(notebook, cell) for cell in ("c0", "c1", "c2")] == ["Title", "Title", "Next"]
    with pytest.raises(KeyError):
        heading_above(notebook, "c3")


@pytest.mark.parametrize(("source", "said"), [("assert x == 1", True), ("assert True", False), ("x", False)])
def test_an_assert_counts_if_it_is_about_something(source: str, said: bool) -> None:
    assert asserts(source) is said
