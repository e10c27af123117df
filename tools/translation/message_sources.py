"""Every text of the project that is translated, with the place where it stands."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from babel.messages.extract import extract_from_file

from tools.translation.code_comments import collect_texts, translate_comments
from tools.translation.markdown_blocks import has_prose, list_texts, translate_html

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = ROOT / "notebooks"
SOLUTIONS = NOTEBOOKS / "solutions"
PACKAGE = ROOT / "hookviz"
COURSE = PACKAGE / "course"
QUESTIONS = COURSE / "questions.en.json"
EXAM = SOLUTIONS / "exam.json"
BADGES_ID, INSTALL_ID = "badges", "install"
"""The ids of the cells at the start of every lesson, which are made, see tools/lesson_start.py."""
PAGES = ("index", "lessons", "look_up", "lecturers", "player", "recipes", "teaching", "lecturer", "concept_test")
"""The pages in site/ that are translated."""


@dataclass(frozen=True)
class Message:
    """A text that is translated."""

    text: str
    place: str
    """Where it stands: a file of the project, and after ``#`` the key or the cell."""

    @property
    def key(self) -> str:
        """The key or cell of its place; empty if it has none."""
        return self.place.partition("#")[2]


def read_sources() -> dict[str, list[Message]]:
    """Read all texts: name of a file of the catalogue → the texts in it, in their order."""
    return {
        "screens": [message for path in sorted(PACKAGE.rglob("*.py")) for message in _read_code(path, "_", "N_")],
        "checks": [*_read_table(COURSE / "en.json"), *_read_table(COURSE / "project.en.json")],
        "questions": [*_read_questions(QUESTIONS), *_read_questions(EXAM)],
        **{path.stem: [*_read_notebook(path)] for path in sorted(SOLUTIONS.glob("*.ipynb"))},
        "glossary": [*_read_page(ROOT / "notebooks" / "glossary.md")],
        "guide": [*_read_page(ROOT / "notebooks" / "README.md")],
        "site": [*_read_site()],
        "readme": [*_read_page(ROOT / "README.md")],
    }


def _read_table(path: Path) -> Iterator[Message]:
    for key, text in json.loads(path.read_text(encoding="utf-8")).items():
        if text:
            yield Message(text, f"{_name(path)}#{key}")


def _read_questions(path: Path) -> Iterator[Message]:
    for key, entry in json.loads(path.read_text(encoding="utf-8")).items():
        for text in question_texts(entry):
            if has_prose(text):
                yield Message(text, f"{_name(path)}#{key}")


def question_texts(entry: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a question: what it asks, then each choice with its reasons."""
    yield entry["ask"]
    for choice in entry["choices"]:
        yield from (choice[part] for part in ("text", "chosen", "reason") if part in choice)


def _read_notebook(path: Path) -> Iterator[Message]:
    for cell in nbformat.read(path, as_version=4).cells:  # type: ignore[no-untyped-call]
        if cell.id in (BADGES_ID, INSTALL_ID):
            continue
        texts = list_texts(cell.source) if cell.cell_type == "markdown" else _list_comments(cell.source)
        for text in texts:
            yield Message(text, f"{_name(path)}#{cell.id}")


def _list_comments(code: str) -> list[str]:
    return collect_texts(lambda translate: translate_comments(code, translate))


def _list_html_texts(page: str) -> list[str]:
    return collect_texts(lambda translate: translate_html(page, translate))


def _read_page(path: Path) -> Iterator[Message]:
    for text in list_texts(path.read_text(encoding="utf-8")):
        yield Message(text, _name(path))


def _read_site() -> Iterator[Message]:
    for page in PAGES:
        yield from _read_page(ROOT / "site" / f"{page}.md")
    yield from _read_page(SOLUTIONS / "concept_test.md")
    for handout in sorted((ROOT / "site" / "handouts").glob("*.html")):
        for text in _list_html_texts(handout.read_text(encoding="utf-8")):
            yield Message(text, _name(handout))
    for module in (ROOT / "site" / "conf.py", *sorted((ROOT / "tools").glob("*.py"))):
        yield from _read_code(module, "translated", "translatable")


def _read_code(path: Path, *functions: str) -> Iterator[Message]:
    """Read the literals with which a file of Python calls the ``functions``, which mark a text for the catalogue."""
    for _, text, _, _ in extract_from_file("python", path, keywords=dict.fromkeys(functions)):
        yield Message(str(text), _name(path))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
