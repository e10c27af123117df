"""The sources of the site: the overview, the links to lessons, the notebook runs, and the lecturer's guide."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.course.reading import headings
from tests.course.test_notebooks import CUDA_MEGABYTES, MEGABYTES, USUAL_MEGABYTES
from tools.lesson_pages import read_facts
from tools.notebook_runs import run_all
from tools.translation.message_sources import NOTEBOOKS
from tools.website import SOURCE, write_overview

LESSONS = {path.name[:2]: nbformat.read(path, as_version=4) for path in sorted(NOTEBOOKS.glob("[0-9]*_*.ipynb"))}
NAMES = {path.name[:2]: path.name for path in NOTEBOOKS.glob("[0-9]*_*.ipynb")}
GUIDE_SECTIONS = dict(
    re.findall(r"^## Lesson (\d\d) · (.*?)(?=^## |\Z)", (SOURCE / "lecturer.md").read_text(), re.M | re.S)
)


def prose(notebook: Any) -> str:
    return " ".join("\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown").split())


# -- the map


def test_overview_has_a_card_for_each_lesson() -> None:
    other = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Not a lesson")])
    overview = write_overview({Path(NAMES["01"]): LESSONS["01"], Path("final_project.ipynb"): other})
    assert "**[01 The graph](notebooks/01_the_graph.ipynb)**\n\nWhen `loss.backward()` runs" in overview
    minutes = read_facts(LESSONS["01"]).minutes
    assert f"*{minutes} minutes. You need to know what derivatives and a loss are.*" in overview
    assert overview.count(":::{container} lesson\n") == 1


# -- running


def test_notebook_runs_again_only_if_its_source_has_changed(tmp_path: Path) -> None:
    path, cache_folder = tmp_path / "one.ipynb", tmp_path / "kept"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import time\ntime.time()")])

    def run_and_read_output() -> str:
        nbformat.write(notebook, path)
        (executed,) = run_all([path], cache_folder).values()
        text: str = executed.cells[0].outputs[0].data["text/plain"]
        return text

    first = run_and_read_output()
    assert run_and_read_output() == first
    notebook.cells[0].source += "  # changed"
    assert run_and_read_output() != first
    assert len(list(cache_folder.rglob("*.ipynb"))) == 1


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


def test_guide_states_the_duration_and_memory_of_the_lessons() -> None:
    guide = " ".join((SOURCE / "lecturer.md").read_text().split())
    minutes = [read_facts(lesson).minutes for lesson in LESSONS.values()]
    assert f"Each lesson takes from {min(minutes)} to {max(minutes)} minutes" in guide
    large_lessons = f"{', '.join([*MEGABYTES][:-1])} and {[*MEGABYTES][-1]}"
    assert f"count {USUAL_MEGABYTES} MB of memory, and {max(MEGABYTES.values())} MB in lessons {large_lessons}" in guide
    assert f"A build of torch for CUDA takes {CUDA_MEGABYTES} MB more." in guide


def test_homework_has_an_exercise_of_each_lesson_that_exists_and_points_that_add_up_to_ten() -> None:
    text = (SOURCE / "teaching.md").read_text(encoding="utf-8")
    homework = text.partition("## Homework")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d\d) \| (\d\d\.\d)([^|]*)\|", homework, re.MULTILINE)
    assert [lesson for lesson, *_ in rows] == sorted(NAMES)
    for lesson, *named in rows:
        text = prose(LESSONS[lesson])
        exercise, functions = named[0], re.findall(r"`(\w+)`", named[1])
        assert f"**{exercise}**" in text or f'"{exercise}"' in str(LESSONS[lesson])
        assert all(function in text for function in functions)
    assert sum(int(points) for points in re.findall(r"^\| (\d) \|", homework, re.MULTILINE)) == 10
