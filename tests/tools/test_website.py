"""What the site is made of: the map, the links to lessons, and a lecturer's guide that tells the truth."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.lab import write_notebook
from tests.course.reading import headings
from tests.course.test_notebooks import CUDA_MEGABYTES, MEGABYTES, USUAL_MEGABYTES
from tools.lesson_pages import read_facts
from tools.notebook_runs import NOTEBOOKS, run_all
from tools.website import SOURCE, is_lesson, link_lessons, write_overview

LESSONS = {path.name[:2]: nbformat.read(path, as_version=4) for path in sorted(NOTEBOOKS.glob("[0-9]*_*.ipynb"))}
NAMES = {path.name[:2]: path.name for path in NOTEBOOKS.glob("[0-9]*_*.ipynb")}
GUIDE = dict(re.findall(r"^## Lesson (\d\d) · (.*?)(?=^## |\Z)", (SOURCE / "lecturer.md").read_text(), re.M | re.S))


def prose(notebook: Any) -> str:
    return " ".join("\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown").split())


# -- the map


def test_the_map_has_a_card_for_each_lesson_and_the_menu_leads_to_every_page() -> None:
    beside = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Not a lesson")])
    made = write_overview({Path(NAMES["01"]): LESSONS["01"], Path("what_articles_say.ipynb"): beside})
    assert "**[01 The graph](notebooks/01_the_graph.ipynb)**\n\nWhen `e.backward()` runs" in made
    assert "*30 minutes. You need to know what a derivative is.*" in made
    assert made.count(":::{container} lesson\n") == 1
    menus = dict(re.findall(r":caption: (\w+)\n\n(.*?)\n```", made, re.DOTALL))
    assert menus["Lessons"].split() == ["notebooks/01_the_graph"]
    assert menus["Besides"].split() == [
        "notebooks/what_articles_say",
        "notebooks/README",
        "notebooks/glossary",
        "lecturer",
    ]


def test_a_page_links_to_the_lessons_that_are_there_and_not_from_its_headings() -> None:
    text = "## Lesson 01\nIn lesson 01 and lesson 99. (lesson 02)"
    assert link_lessons(text, {"01": "01_a.ipynb", "02": "02_b.ipynb"}) == (
        "## Lesson 01\nIn [lesson 01](notebooks/01_a.ipynb) and lesson 99. ([lesson 02](notebooks/02_b.ipynb))"
    )


def test_only_numbered_notebooks_are_lessons() -> None:
    assert [is_lesson(Path(name)) for name in ("01_the_graph.ipynb", "what_articles_say.ipynb")] == [True, False]


# -- running


def test_of_a_bar_that_has_gone_nothing_is_left(tmp_path: Path) -> None:
    shown = "from IPython.display import display\nbar = display({'text/plain': '1 of 2'}, raw=True, display_id=True)\n"
    write_notebook(tmp_path / "bar.ipynb", f"{shown}bar.update({{}}, raw=True)\n3")
    (ran,) = run_all([tmp_path / "bar.ipynb"], tmp_path / "kept").values()
    assert [output.data for output in ran.cells[0].outputs] == [{"text/plain": "3"}]


def test_a_notebook_runs_again_only_if_something_has_changed(tmp_path: Path) -> None:
    path, kept = tmp_path / "one.ipynb", tmp_path / "kept"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import time\ntime.time()")])

    def shown() -> str:
        nbformat.write(notebook, path)
        (ran,) = run_all([path], kept).values()
        text: str = ran.cells[0].outputs[0].data["text/plain"]
        return text

    first = shown()
    assert shown() == first
    notebook.cells[0].source += "  # changed"
    assert shown() != first
    assert len(list(kept.glob("*.ipynb"))) == 1


# -- the lecturer's guide


@pytest.mark.parametrize("number", LESSONS)
def test_each_lesson_has_its_part_with_its_title_and_time(number: str) -> None:
    part, told = GUIDE[number], read_facts(LESSONS[number])
    assert part.startswith(f"{told.title[3:]}\n")
    assert f"\n*{told.minutes} minutes.*\n" in part
    assert [part.count(f"- **{word}") for word in ("Ask", "Expect", "Show")] == [1, 1, 1]


@pytest.mark.parametrize("number", LESSONS)
def test_what_a_part_speaks_of_is_in_its_lesson(number: str) -> None:
    """The sections it names, its code, the steps that it leads to, and the numbers of its questions."""
    lesson, part = LESSONS[number], " ".join(GUIDE[number].split())
    text = " ".join(" ".join(cell.source for cell in lesson.cells).split())
    sections = set(re.findall(r'\bunder "(.+?)"', part))
    assert sections and sections <= {heading for cell in lesson.cells for heading in headings(cell)}
    assert [code for code in re.findall(r"`(.+?)`", part) if code not in text] == []
    assert [step for step in re.findall(r"\bstep (\d+)", part) if f"(#step-{step})" not in text] == []
    assert [asked for asked in re.findall(r"\b\d\d\.\d\b", part) if f'hv.check("{asked}"' not in text] == []


def test_the_guide_tells_what_time_and_memory_the_lessons_take() -> None:
    guide = " ".join((SOURCE / "lecturer.md").read_text().split())
    minutes = [read_facts(lesson).minutes for lesson in LESSONS.values()]
    assert f"Each lesson takes from {min(minutes)} to {max(minutes)} minutes" in guide
    more = " and ".join(MEGABYTES)
    assert f"count {USUAL_MEGABYTES} MB of memory, and {max(MEGABYTES.values())} MB in lessons {more}" in guide
    assert f"A build of torch for CUDA takes {CUDA_MEGABYTES} MB more." in guide


def test_the_guide_has_all_twelve_lessons_in_order() -> None:
    assert list(GUIDE) == [f"{number:02}" for number in range(1, 13)]


def test_what_the_guide_tells_people_to_run_is_there() -> None:
    guide = (SOURCE / "lecturer.md").read_text()
    makefile = (SOURCE.parent / "Makefile").read_text()
    targets = set(re.findall(r"`make (\w+)", guide))
    assert targets >= {"site", "slides", "lab"}
    assert all(f"\n{target}: " in makefile for target in targets)
    assert all((SOURCE.parent / folder).is_dir() for folder in re.findall(r"`(notebooks[\w/]*)`", guide))
