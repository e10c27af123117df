"""The polls for a projector and for other programs: a slide for each poll, its answer below, and a file in GIFT."""

from collections.abc import Iterable, Sequence
from typing import Any

import nbformat

from hookviz.course.question_bank import Question
from tools.questions import explain, list_choices
from tools.translation.translated import translatable, translated

TITLE = translatable("Polls")
HOW = translatable(
    "Let everybody vote, let two neighbours who disagree talk for a minute, and vote again. "
    "The key ↓ shows the answer, → the next poll."
)
LESSONS = translatable("Lessons:")
_RESERVED = str.maketrans({character: f"\\{character}" for character in "\\~=#{}:"})
"""What GIFT reads as more than text."""


def make_poll_slides(questions: Iterable[Question], language: str = "en") -> Any:
    """Make a notebook with one poll a slide, and its answer with reasons on the slide below it."""
    questions = list(questions)
    cells = [
        _cell(f"# {translated(TITLE, language)}", "slide", "first"),
        _cell(translated(HOW, language), "-"),
        _cell(link_lessons(questions, language), "-"),
    ]
    for question in questions:
        heading = f"## {translated('Lesson {number}', language).format(number=question.lesson)}"
        cells += [
            _cell(heading, "slide"),
            _cell(question.ask, "-", "asks"),
            _cell(list_choices(question), "-", "explains"),
            _cell(heading, "subslide"),
            _cell(explain(question, language), "-"),
        ]
    metadata = {"title": translated(TITLE, language)}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)  # type: ignore[no-untyped-call]


def link_lessons(questions: Sequence[Question], language: str) -> str:
    """Link each lesson to the slide of its first poll; the slides begin with one that has no poll."""
    first = {question.lesson: slide for slide, question in reversed([*enumerate(questions, 1)])}
    links = " · ".join(f"[{lesson}](#/{first[lesson]})" for lesson in sorted(first))
    return f"{translated(LESSONS, language)} {links}"


def _cell(source: str, slide_type: str, *tags: str) -> Any:
    metadata = {"slideshow": {"slide_type": slide_type}, "tags": list(tags)}
    return nbformat.v4.new_markdown_cell(source, metadata=metadata)  # type: ignore[no-untyped-call]


def write_gift(questions: Iterable[Question]) -> str:
    """Write questions in GIFT, which Moodle and other programs for polls and tests import.

    >>> from hookviz.course.question_bank import read_questions
    >>> print(write_gift([read_questions("en")["01d"]]).splitlines()[0][:60])
    ::01d:: [markdown]You call `loss.backward()` twice, each tim
    """
    return "\n".join(_write_one(question) for question in questions)


def _write_one(question: Question) -> str:
    lines = [f"::{question.key}:: [markdown]{question.ask.translate(_RESERVED)} {{"]
    for choice in question.choices:
        mark = "=" if choice.right else "~"
        lines.append(f"  {mark}{choice.text.translate(_RESERVED)}#{choice.reason.translate(_RESERVED)}")
    return "\n".join([*lines, "}", ""])
