"""notebooks/README.md lists each statement of the five articles, with a link to a cell that asserts it."""

import re

import pytest

from tests.course.reading import FOLDER, check_link, heading_above, links_to_cells, read_notebook

README = (FOLDER / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([\dWK]\S*) \| (.+?) \| (.*) \|$", README, re.MULTILINE)
LESSONS = [path.name for path in sorted(FOLDER.glob("[01]*.ipynb"))]


@pytest.mark.parametrize("row", ROWS, ids=[key for key, *_ in ROWS])
def test_each_row_links_to_cells_with_assertions(row: tuple[str, str, str]) -> None:
    links = links_to_cells(row[2])
    assert links and len(links) == row[2].count("](")
    for link in links:
        check_link(link)


def test_row_keys_are_unique_and_other_links_point_to_existing_files() -> None:
    assert len({key for key, *_ in ROWS}) == len(ROWS) > 100
    others = re.findall(r"\]\(([\w./]+)\)", README)
    assert others and all((FOLDER / target).exists() for target in others)


@pytest.mark.parametrize("name", LESSONS)
def test_readme_lists_each_lesson_with_its_question_and_duration(name: str) -> None:
    [row] = re.findall(rf"^\| \[{name[:2]} (.+)\]\({name}\) \| (.+) \| (\d+) minutes \|$", README, re.MULTILINE)
    notebook = read_notebook(name)
    text = " ".join(notebook.cells[0].source.split())
    assert row[0] == heading_above(notebook, notebook.cells[0].id)
    assert f"**The question: {row[1][0].lower()}{row[1][1:]}**" in text
    assert f"about {row[2]} minutes" in text
