"""The glossary lists every word that a lesson introduces, once, with its lesson, code that runs, and pictures."""

import doctest
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.course.test_notebooks import FOLDER, LESSONS

BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
WITHOUT_CODE = {"case file", "induction head", "overfitting", "player", "shortcut", "TensorBoard", "underfitting"}
GLOSSARY = (FOLDER / "glossary.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^- \*\*(.+?)\*\*(, .+?)?: (.+?\.) \(\[lesson (\d\d)\]\((\d\d_\w+\.ipynb)\)\)$", re.MULTILINE)
ENTRIES = ENTRY.findall(GLOSSARY)
PREAMBLE, *SECTIONS = re.split(r"^(?=- \*\*)", GLOSSARY, flags=re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
BOLD = re.compile(r"\*\*([^*]+)\*\*")
NOT_A_TERM = re.compile(r".*[.?]|Step through it|What if|Predict|After this lesson you can:?|\d\d(\.\d)?", re.DOTALL)
"""Bold text that introduces no word.

An instruction, the question of a lesson, the words above its objectives, a button, the number of an exercise.
"""


def introduced_words(notebook: Any) -> set[str]:
    """The words that a lesson introduces: those in bold."""
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    bold = (" ".join(found.split()) for found in BOLD.findall(CODE.sub("`", prose)))
    return {found.casefold() for found in bold if not NOT_A_TERM.fullmatch(found)}


def test_every_entry_has_a_word_one_sentence_and_a_lesson() -> None:
    assert len(ENTRIES) == GLOSSARY.count("\n- ") > 60
    assert all(sentence.count(". ") == 0 for _, _, sentence, _, _ in ENTRIES)
    assert all(file.startswith(number) for *_, number, file in ENTRIES)


def test_entries_are_sorted_and_unique() -> None:
    words = [(word + more).strip("`") for word, more, *_ in ENTRIES]
    assert words == sorted(set(words), key=str.casefold)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson_introduces_exactly_the_words_that_the_glossary_attributes_to_it(path: Path) -> None:
    words = {word.casefold() for word, *_, file in ENTRIES if file == path.name and "`" not in word}
    found = {
        word.removesuffix("s") if word not in words else word
        for word in introduced_words(nbformat.read(path, as_version=4))
    }
    assert found == words


def test_lesson_uses_the_names_in_code_that_the_glossary_attributes_to_it() -> None:
    names = [(word.strip("`"), file) for word, *_, file in ENTRIES if "`" in word]
    assert len(names) >= 5
    assert [name for name, file in names if name not in (FOLDER / file).read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.split("**")[1])
def test_code_of_an_entry_runs(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(section)
    assert len(blocks) == (section.split("**")[1] not in WITHOUT_CODE)
    code = "\n".join([*BLOCK.findall(PREAMBLE), *blocks])
    test = doctest.DocTestParser().get_doctest(code, {}, section.split("**")[1], "glossary.md", 0)
    result = doctest.DocTestRunner(verbose=False).run(test)
    assert result.attempted >= 6 and result.failed == 0


def test_pictures_exist_and_have_a_text_in_their_place() -> None:
    pictures = re.findall(r"!\[(.*?)\]\((.+?)\)", GLOSSARY)
    assert len(pictures) > 20
    assert all(text and (FOLDER / file).is_file() for text, file in pictures)


def test_entry_that_refers_to_a_picture_names_an_entry_with_one() -> None:
    with_picture = {section.split("**")[1] for section in SECTIONS if "![" in section}
    assert set(re.findall(r"Picture: see \*(.+?)\*\.", GLOSSARY)) <= with_picture
