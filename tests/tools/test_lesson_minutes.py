"""The minutes of lessons and plans follow from one formula, and stand the same wherever they are said."""

import re
from pathlib import Path

import nbformat
import pytest

from tools.lesson_minutes import (
    NOTEBOOKS,
    ONE_HOUR,
    PLANNED,
    SENTENCE,
    read_lesson,
    read_sections,
    time_lesson,
    write_plans,
)

SITE = Path(__file__).parents[2] / "site"
NUMBERS = [path.name[:2] for path in sorted(NOTEBOOKS.glob("[01]*.ipynb"))]
SECTIONS = {number: read_sections(read_lesson(number)) for number in NUMBERS}
README, GUIDE, PLANS = (
    path.read_text(encoding="utf-8") for path in (NOTEBOOKS / "README.md", SITE / "lecturer.md", SITE / "teaching.md")
)
PLAN = re.compile(r"^### (\d+) minutes\n\n(?P<rows>(?:\|.*\n)+)", re.MULTILINE)


def test_a_section_counts_words_players_questions_and_the_minutes_of_its_exercises() -> None:
    texts = ("# Lesson\n\nOne [link](a.ipynb).", "## Next\n\n**01.7** *(easy, 5 minutes)* Do.")
    code = nbformat.v4.new_code_cell('hv.record()  # two words\ncheck("01.1", answer)')
    cells = [*map(nbformat.v4.new_markdown_cell, texts), code]
    sections = read_sections(nbformat.v4.new_notebook(cells=cells))
    assert [section.title for section in sections] == ["Lesson", "Next"]
    assert (sections[0].words, sections[0].minutes) == (3, 3 / 60)
    assert (sections[1].players, sections[1].questions, sections[1].exercise_minutes) == (1, 1, 5)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_lesson_says_the_minutes_of_the_formula(number: str) -> None:
    time = time_lesson(SECTIONS[number])
    [sentence] = SENTENCE.findall(read_lesson(number).cells[0].source)
    assert [int(minutes) for minutes in re.findall(r"\d+", sentence)] == [time.class_minutes, time.all_minutes]
    assert re.search(rf"^\| \[{number} .+ \| {time.class_minutes} minutes \|$", README, re.MULTILINE)
    assert re.search(rf"^## Lesson {number} .+\n\n\*{time.class_minutes} minutes\.\*", GUIDE, re.MULTILINE)
    text = "\n".join(cell.source for cell in read_lesson(number).cells if cell.cell_type == "markdown")
    exercises = re.findall(r"^\*\*\d\d\.\d\*\* (.*)", text, re.MULTILINE)
    assert exercises
    assert [said for said in exercises if not re.match(r"\*\((easy|medium|hard), \d+ minutes\)\*", said)] == []


def test_the_plans_and_the_path_of_one_hour_have_the_minutes_of_the_formula_and_fit() -> None:
    assert (write_plans(PLANS), write_plans(README)) == (PLANS, README), "run: python -m tools.lesson_minutes"
    plans = PLAN.findall(PLANS)
    assert [int(minutes) for minutes, _ in plans] == [45, 90, 180]
    for minutes, rows in plans:
        assert 0 < sum(int(row["minutes"]) for row in PLANNED.finditer(rows)) <= int(minutes)
    hour = [int(row["minutes"]) for row in ONE_HOUR.finditer(README)]
    assert len(hour) >= 5 and sum(hour) <= 60
