"""The sources of the site: the overview, the links to lessons, and the lecturer's guide."""

import re
from pathlib import Path

import nbformat
import pytest

from tests.course.reading import headings
from tests.course.test_notebooks import prose
from tools.lesson_pages import read_facts
from tools.translation.message_sources import NOTEBOOKS
from tools.website import SOURCE, write_overview

LESSONS = {path.name[:2]: nbformat.read(path, as_version=4) for path in sorted(NOTEBOOKS.glob("[0-9]*_*.ipynb"))}
NAMES = {path.name[:2]: path.name for path in NOTEBOOKS.glob("[0-9]*_*.ipynb")}
GUIDE_SECTIONS = dict(
    re.findall(r"^## Lesson (\d\d) · (.*?)(?=^## |\Z)", (SOURCE / "lecturer.md").read_text(), re.M | re.S)
)


# -- the map


def test_overview_has_a_card_for_each_lesson() -> None:
    other = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Not a lesson")])
    overview = write_overview({Path(NAMES["01"]): LESSONS["01"], Path("final_project.ipynb"): other})
    assert "**[01 The graph](notebooks/01_the_graph.ipynb)**\n\nWhen `loss.backward()` runs" in overview
    minutes = read_facts(LESSONS["01"]).minutes
    assert f"*{minutes} minutes. You need to know what derivatives and a loss are.*" in overview
    assert overview.count(":::{container} lesson\n") == 1


# -- the lecturer's guide


@pytest.mark.parametrize("number", LESSONS)
def test_a_section_of_the_guide_names_what_is_in_its_lesson(number: str) -> None:
    """Title, headings, code, step links and exercise numbers; the minutes are in ``test_lesson_minutes.py``."""
    lesson, section = LESSONS[number], " ".join(GUIDE_SECTIONS[number].split())
    assert section.startswith(f"{read_facts(lesson).title[3:]} ")
    assert [section.count(f"- **{word}") for word in ("Ask", "Expect", "Show")] == [1, 1, 1]
    text = " ".join(" ".join(cell.source for cell in lesson.cells).split())
    sections = set(re.findall(r'\bunder "(.+?)"', section))
    assert sections and sections <= {heading for cell in lesson.cells for heading in headings(cell)}
    assert [code for code in re.findall(r"`(.+?)`", section) if code not in text] == []
    assert [step for step in re.findall(r"\bstep (\d+)", section) if f"(#step-{step})" not in text] == []
    assert [exercise for exercise in re.findall(r"\b\d\d\.\d\b", section) if f'check("{exercise}"' not in text] == []


def test_homework_has_an_exercise_of_each_lesson_that_exists_and_points_that_add_up_to_ten() -> None:
    text = (SOURCE / "teaching.md").read_text(encoding="utf-8")
    homework = text.partition("## Homework")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d\d) \| (\d\d\.\d)([^|]*)\|", homework, re.MULTILINE)
    assert [lesson for lesson, *_ in rows] == sorted(NAMES)
    for lesson, *named in rows:
        text = " ".join(prose(LESSONS[lesson]).split())
        exercise, functions = named[0], re.findall(r"`(\w+)`", named[1])
        assert f"**{exercise}**" in text or f'"{exercise}"' in str(LESSONS[lesson])
        assert all(function in text for function in functions)
    assert sum(int(points) for points in re.findall(r"^\| (\d) \|", homework, re.MULTILINE)) == 10
