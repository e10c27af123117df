"""How long lessons take, by a formula, and write it wherever it is said: ``python -m tools.lesson_minutes``.

Nobody has timed a class yet. The numbers of the formula are guesses for people who read English as a second language.
An earlier edition, of 40,000 words, gets 31 hours with its project; a teacher who read each of its cells gave it 34.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import nbformat

from tools.translation.message_sources import NOTEBOOKS, ROOT

WORDS_PER_MINUTE = 60
"""Words of text and of comments that are read, and understood, in a minute."""
MINUTES_PER_PLAYER = 4
"""To run a cell with a player, and to step through it."""
MINUTES_PER_QUESTION = 3
"""To write down a prediction, to see what happens, and to talk about it."""
EXERCISES = "## Exercises"
LOOK_UP = "## To look up when you need it"
REVIEW = re.compile(r"^review\(", re.MULTILINE)
QUESTION = re.compile(r'^check\("(\d\d\.\d+)"', re.MULTILINE)
EXERCISE = re.compile(r"^\*\*\d\d\.\d+\*\* \*\((?:easy|medium|hard), (\d+) minutes\)\*", re.MULTILINE)
PLAYER = re.compile(r"\bhv\.(?:record|whatif|draw)\(")
SENTENCE = re.compile(
    r"takes\s+about \d+\s+minutes(?: without the exercises)?,\s+\d+\s+minutes\s+with\s+(?:the exercises|them)"
)
PLANNED = re.compile(r"^\| (\d\d) \| (?P<first>.+?) \| (?P<last>.+?) \| (?P<minutes>\d+) \|", re.MULTILINE)
"""A row of a plan for one class: a lesson, from one title up to another, and the minutes."""
ONE_HOUR = re.compile(
    r"^\| \[(\d\d), .+?\]\(\w+\.ipynb#cell-id=(?P<cell>[\w-]+)\) \| \"(?P<last>.+)\" \| (?P<minutes>\d+) \|",
    re.MULTILINE,
)
"""A row of the path of one hour: a lesson, from a cell up to a title, and the minutes."""
TITLE = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """The cells from one title to the next, as students have them."""

    title: str
    """Its title, without ``#``."""
    level: int
    """1 for the lesson, 2 for its sections, 3 for their parts."""
    words: int
    """Words of text and of comments in code."""
    players: int
    """Recordings, comparisons and pictures of graphs."""
    questions: int
    """Questions that ``check`` judges, and that are no exercises."""
    exercise_minutes: int
    """What the exercises say of themselves."""

    @property
    def minutes(self) -> float:
        """The time without the exercises."""
        questions = MINUTES_PER_QUESTION * self.questions
        return self.words / WORDS_PER_MINUTE + MINUTES_PER_PLAYER * self.players + questions


def read_sections(notebook: Any) -> list[Section]:
    """Split a student's lesson at its titles."""
    parts: list[tuple[str, int, list[Any]]] = []
    for cell in notebook.cells:
        for title, source in _split_at_title(cell):
            if title is not None:
                parts.append((title[1], title[0].index(" "), []))
            if parts:
                parts[-1][2].append(nbformat.NotebookNode(cell, source=source))  # type: ignore[no-untyped-call]
    return [_measure(title, level, cells) for title, level, cells in parts]


def _split_at_title(cell: Any) -> Iterator[tuple[re.Match[str] | None, str]]:
    """The text before the first title of a cell, and the title with the text after it."""
    title = TITLE.search(cell.source) if cell.cell_type == "markdown" else None
    yield None, cell.source[: title.start()] if title else cell.source
    if title is not None:
        yield title, cell.source[title.end() :]


def _measure(title: str, level: int, cells: list[Any]) -> Section:
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    programs = [cell.source for cell in cells if cell.cell_type == "code" and cell.id != "install"]
    words = sum(map(count_words, texts)) + sum(map(_count_comment_words, programs)) + len(title.split())
    asked = sum(len(pattern.findall(program)) for pattern in (QUESTION, REVIEW) for program in programs)
    return Section(
        title,
        level,
        words,
        sum(len(PLAYER.findall(program)) for program in programs),
        0 if f"## {title}" == EXERCISES else asked,
        sum(int(minutes) for text in texts for minutes in EXERCISE.findall(text)),
    )


def count_words(text: str) -> int:
    """Count the words of a text in Markdown, without the targets of its links.

    >>> count_words("See [lesson 01](01_the_graph.ipynb#cell-id=c02), *please*.")
    4
    """
    return len(re.sub(r"\]\([^)]*\)", "]", re.sub(r"</?\w+>", " ", text)).split())


def _count_comment_words(program: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(program).readline)
    return sum(len(token.string.lstrip("# ").split()) for token in tokens if token.type == tokenize.COMMENT)


@dataclass(frozen=True)
class LessonTime:
    """What a lesson takes, in minutes, rounded up to five."""

    class_minutes: int
    """Without its exercises and without what one looks up."""
    all_minutes: int
    """With its exercises."""


def time_lesson(sections: list[Section]) -> LessonTime:
    """Add up what is read in class."""
    in_class = sum(section.minutes for section in sections_in_class(sections))
    exercises = sum(section.exercise_minutes for section in sections)
    return LessonTime(_round_up(in_class), _round_up(in_class + exercises))


def sections_in_class(sections: list[Section]) -> list[Section]:
    """Leave out what one looks up, and the exercises."""
    kept, is_left_out = [], False
    for section in sections:
        if section.level <= 2:
            is_left_out = f"## {section.title}" in (EXERCISES, LOOK_UP)
        if not is_left_out:
            kept.append(section)
    return kept


def time_between(sections: list[Section], first: str, last: str) -> int:
    """The minutes from the section ``first`` up to, and without, the section ``last``.

    Raises:
        ValueError: there is no such section.
    """
    titles = [section.title for section in sections]
    return ceil(sum(section.minutes for section in sections[titles.index(first) : titles.index(last)]))


def _round_up(minutes: float) -> int:
    return 5 * ceil(minutes / 5)


def read_lesson(number: str) -> Any:
    """Read the students' lesson with a number, such as ``"01"``."""
    [path] = NOTEBOOKS.glob(f"{number}_*.ipynb")
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def time_from_cell(lesson: Any, cell_id: str, last: str) -> int:
    """The minutes from a cell of a lesson up to, and without, the section ``last``.

    Raises:
        ValueError: there is no such cell or section.
    """
    begin = [cell.id for cell in lesson.cells].index(cell_id)
    start = nbformat.v4.new_markdown_cell("# Start")  # type: ignore[no-untyped-call]
    cells = [start, *lesson.cells[begin:]]
    return time_between(read_sections(nbformat.v4.new_notebook(cells=cells)), "Start", last)  # type: ignore[no-untyped-call]


def write_plans(text: str) -> str:
    """Write the minutes into the rows of the plans and of the path of one hour."""

    def plan(row: re.Match[str]) -> str:
        return _set_minutes(row, time_between(read_sections(read_lesson(row[1])), row["first"], row["last"]))

    def path(row: re.Match[str]) -> str:
        return _set_minutes(row, time_from_cell(read_lesson(row[1]), row["cell"], row["last"]))

    return ONE_HOUR.sub(path, PLANNED.sub(plan, text))


def _set_minutes(row: re.Match[str], minutes: int) -> str:
    return re.sub(r"\d+ \|\Z", f"{minutes} |", row[0])


def main() -> None:
    """Write the minutes of each lesson into its first cell, the overview, the lecturer's guide and the plans."""
    readme, guide, plans = NOTEBOOKS / "README.md", ROOT / "site" / "lecturer.md", ROOT / "site" / "teaching.md"
    overview, lecturer = readme.read_text(encoding="utf-8"), guide.read_text(encoding="utf-8")
    shortest, longest = 1_000, 0
    for path in sorted(NOTEBOOKS.glob("[01]*.ipynb")):
        number = path.name[:2]
        sections = read_sections(read_lesson(number))
        time = time_lesson(sections)
        shortest, longest = min(shortest, time.class_minutes), max(longest, time.class_minutes)
        _write_sentence(NOTEBOOKS / "solutions" / path.name, time)
        overview = re.sub(
            rf"(?m)^(\| \[{number} .*\| )\d+ minutes \|$", rf"\g<1>{time.class_minutes} minutes |", overview
        )
        lecturer = re.sub(
            rf"(## Lesson {number} .*\n\n)\*\d+ minutes\.\*", rf"\g<1>*{time.class_minutes} minutes.*", lecturer
        )
        words = sum(section.words for section in sections)
        print(f"{number}: {words:5} words, {time.class_minutes:3} minutes, {time.all_minutes:3} with the exercises")
    lecturer = re.sub(r"takes from \d+ to \d+ minutes", f"takes from {shortest} to {longest} minutes", lecturer)
    readme.write_text(write_plans(overview), encoding="utf-8")
    plans.write_text(write_plans(plans.read_text(encoding="utf-8")), encoding="utf-8")
    guide.write_text(lecturer, encoding="utf-8")


def _write_sentence(path: Path, time: LessonTime) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    sentence = f"takes about {time.class_minutes} minutes, {time.all_minutes} minutes with the exercises"
    notebook.cells[0].source = SENTENCE.sub(sentence, notebook.cells[0].source)
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
