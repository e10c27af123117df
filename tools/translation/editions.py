"""Make the files of an edition in another language: the tables of hookviz, the lessons, their pages and the README."""

import functools
import json
import os.path
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from hookviz.course.question_bank import parse_questions
from hookviz.support.messages.languages import LANGUAGES
from tools.lesson_start import add_start, read_repository, remove_start
from tools.lessons import PAGE, link_lessons, remove_checks, remove_solutions
from tools.questions import write_answers
from tools.translation.catalogue import Translations, compile_screens, read_translations
from tools.translation.code_comments import translate_comments
from tools.translation.markdown_blocks import has_prose, translate_markdown
from tools.translation.message_sources import COURSE, EXAM, NOTEBOOKS, PACKAGE, PAGES, QUESTIONS, ROOT, SOLUTIONS

SCREENS = PACKAGE / "support" / "messages"
"""Where hookviz reads the translations of what it says."""
LINK = re.compile(r'(?P<before>\]\(|(?:src|srcset|href)=")(?P<path>[^)\s"#:]+)(?P<after>[#)"])')
"""A link to a file, in Markdown or in HTML."""


ANCHOR = re.compile(r"(?P<before>\]\([\w./-]*#)(?P<name>[a-z][\w-]*)\)")
"""A link to a heading."""
HEADING = re.compile(r"(?m)^#{1,6} (.+)$")
AUTHORITY = """[English](README.md) · 本文译自英文版；如有出入，以英文版为准。

例子的输出和图片取自英文界面。链接所指的页面是英文；`make site` 建成的网站上，有播放器手册、教师页面等的中文版。"""
"""Stands in the README in place of the link to this edition."""


def name_anchor(heading: str) -> str:
    """Return the name that GitHub and the site give a heading.

    >>> name_anchor("When something does not happen"), name_anchor("`hv.why`：钩子为什么不触发？")
    ('when-something-does-not-happen', 'hvwhy钩子为什么不触发')
    """
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


class Edition:
    """The files of one language: its translations, and where they are written."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.translations: Translations = read_translations(language)

    @property
    def folder(self) -> Path:
        """The folder of the lessons."""
        return NOTEBOOKS / self.language

    def make_files(self) -> dict[Path, str]:
        """Make all files: path → text."""
        return {**self._make_tables(), **self._make_lessons(), **self._make_pages()}

    def _make_tables(self) -> dict[Path, str]:
        tables = {}
        for path in (COURSE / "en.json", COURSE / "project.en.json"):
            texts = json.loads(path.read_text(encoding="utf-8"))
            translated = {key: self.translations.translate(text, key) if text else "" for key, text in texts.items()}
            tables[self._beside(path)] = _format_json(translated)
        for path in (QUESTIONS, EXAM):
            tables[self._place(path) if path == EXAM else self._beside(path)] = self._translate_questions(path)
        return tables

    def _beside(self, path: Path) -> Path:
        """The table in this language beside the English one."""
        return path.with_name(path.name.replace("en.json", f"{self.language}.json"))

    def _translate_questions(self, path: Path) -> str:
        questions = json.loads(path.read_text(encoding="utf-8"))
        return _format_json({key: self._translate_question(key, entry) for key, entry in questions.items()})

    def _translate_question(self, key: str, entry: dict[str, Any]) -> dict[str, Any]:
        choices = [{part: self._translate(text, key) for part, text in choice.items()} for choice in entry["choices"]]
        return {**entry, "ask": self._translate(entry["ask"], key), "choices": choices}

    def _translate(self, text: str, key: str = "") -> str:
        return self.translations.translate(text, key) if has_prose(text) else text

    def translate_page(self, text: str) -> str:
        """Translate a page of Markdown; its links lead to the same files, and to the translated headings in them."""
        page = translate_markdown(text, self.translations.translate)
        return ANCHOR.sub(lambda link: f"{link['before']}{self._anchors.get(link['name'], link['name'])})", page)

    @functools.cached_property
    def _anchors(self) -> dict[str, str]:
        """The names of the headings of all pages that are translated, in English → in this language."""
        pages = [ROOT / "README.md", *sorted(NOTEBOOKS.glob("*.md")), *(ROOT / "site" / f"{name}.md" for name in PAGES)]
        headings = [heading for page in pages for heading in HEADING.findall(page.read_text(encoding="utf-8"))]
        return {name_anchor(heading): name_anchor(self._translate(heading)) for heading in headings}

    def translate_notebook(self, notebook: Any) -> Any:
        """Translate the prose of a notebook, and the comments in its code, without the checks of what the lesson says.

        They compare English sentences, and have run in the English lesson, whose code is the same.
        """
        translated = remove_checks(remove_start(notebook))
        for cell in translated.cells:
            if cell.cell_type == "markdown":
                text = translate_markdown(cell.source, self._translator(cell.id))
                cell.source = self.relink(text, NOTEBOOKS, self.folder)
            else:
                cell.source = translate_comments(cell.source, self._translator(cell.id))
        return translated

    def _translator(self, key: str) -> Callable[[str], str]:
        return lambda text: self.translations.translate(text, key)

    def _make_lessons(self) -> dict[Path, str]:
        lessons = {}
        guide = self._make_page(NOTEBOOKS / "README.md")
        for path in sorted(SOLUTIONS.glob("*.ipynb")):
            solution = self.translate_notebook(nbformat.read(path, as_version=nbformat.NO_CONVERT))  # type: ignore[no-untyped-call]
            lesson = remove_solutions(solution)
            if path.name == PAGE:
                lesson = link_lessons(lesson, guide)
            lessons[self.folder / "solutions" / path.name] = self._finish(solution, path.name, "solutions/")
            lessons[self.folder / path.name] = self._finish(lesson, path.name)
        return lessons

    def _finish(self, notebook: Any, name: str, folder: str = "") -> str:
        """Give a notebook its start, and write it as text."""
        place = f"{self.folder.relative_to(ROOT).as_posix()}/{folder}{name}"
        started = add_start(notebook, place, read_repository(), self.language)
        return nbformat.writes(started, nbformat.NO_CONVERT) + "\n"  # type: ignore[no-untyped-call,no-any-return]

    def _make_pages(self) -> dict[Path, str]:
        sources = [
            ROOT / "README.md",
            NOTEBOOKS / "README.md",
            NOTEBOOKS / "glossary.md",
            SOLUTIONS / "concept_test.md",
        ]
        pages = {self._place(path): self._make_page(path) for path in sources}
        answers = self._place(EXAM.with_name("exam_answers.md"))
        exam = parse_questions(self._translate_questions(EXAM))
        return {**pages, answers: write_answers(exam.values(), self.language)}

    def _make_page(self, path: Path) -> str:
        page = self.translate_page(path.read_text(encoding="utf-8"))
        page = self.relink(page, path.parent, self._place(path).parent)
        return page.replace(f"[{LANGUAGES[self.language]}]({self._place(path).name})", AUTHORITY)

    def _place(self, path: Path) -> Path:
        """The file of this edition that stands for a file of the English one; the file itself if there is none."""
        if path == ROOT / "README.md":
            return ROOT / f"README.{self.language}-CN.md"
        if self.folder in (path, *path.parents):
            return path
        is_course = NOTEBOOKS in path.parents and (path.suffix in (".ipynb", ".md", ".json") or path == SOLUTIONS)
        return self.folder / path.relative_to(NOTEBOOKS) if is_course else path

    def relink(self, text: str, source: Path, target: Path) -> str:
        """Let the links of a text lead to this edition.

        Args:
            text: a text with links that are relative to ``source``.
            source: the folder of the English file.
            target: the folder of the translated file.
        """

        def link(match: re.Match[str]) -> str:
            path = source / match["path"]
            if not path.exists():
                return match[0]
            # Not resolve(): a link stays one, wherever the checkout is.
            place = self._place(Path(os.path.normpath(path)))
            return f"{match['before']}{Path(os.path.relpath(place, target)).as_posix()}{match['after']}"

        return LINK.sub(link, text)


def _format_json(table: Any) -> str:
    return json.dumps(table, ensure_ascii=False, indent=2) + "\n"


def write_edition(language: str) -> list[Path]:
    """Write the files of an edition that changed, and return their paths."""
    files = {path: text.encode() for path, text in Edition(language).make_files().items()}
    files[SCREENS / f"{language}.mo"] = compile_screens(language)
    changed = [path for path, content in files.items() if not path.exists() or path.read_bytes() != content]
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[path])
    return changed
