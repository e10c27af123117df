"""The glossary has every word that a lesson introduces, once, and each lesson introduces what the glossary says."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.course.test_notebooks import FOLDER, LESSONS

GLOSSARY = (FOLDER / "glossary.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^- \*\*(.+?)\*\*(, .+?)?: (.+?\.) \(\[lesson (\d\d)\]\((\d\d_\w+\.ipynb)\)\)$", re.MULTILINE)
ENTRIES = ENTRY.findall(GLOSSARY)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
BOLD = re.compile(r"\*\*([^*]+)\*\*")
SIGNPOST = re.compile(r".*[.?]|Step through it|What if|Predict|\d\d(\.\d)?", re.DOTALL)
"""What is bold and no word of its own: what to do, the question of a lesson, a button, the number of an exercise."""


def introduced(notebook: Any) -> set[str]:
    """The words that stand in bold in a lesson."""
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    bold = (" ".join(found.split()) for found in BOLD.findall(CODE.sub("`", prose)))
    return {found.casefold() for found in bold if not SIGNPOST.fullmatch(found)}


def test_every_line_of_the_glossary_has_a_word_a_sentence_and_a_lesson() -> None:
    assert len(ENTRIES) == GLOSSARY.count("\n- ") > 60
    assert all(sentence.count(". ") == 0 for _, _, sentence, _, _ in ENTRIES)
    assert all(file.startswith(number) for *_, number, file in ENTRIES)


def test_it_is_in_order_and_has_no_word_twice() -> None:
    words = [word + more for word, more, *_ in ENTRIES]
    assert words == sorted(set(words), key=str.casefold)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_introduces_the_words_that_the_glossary_has_from_it_and_no_others(path: Path) -> None:
    words = {word.casefold() for word, *_, file in ENTRIES if file == path.name}
    found = {
        one.removesuffix("s") if one not in words else one for one in introduced(nbformat.read(path, as_version=4))
    }
    assert found == words


def test_its_links_lead_somewhere() -> None:
    assert sorted(file for *_, file in ENTRIES if not (FOLDER / file).exists()) == []


def test_what_is_bold_in_code_or_tells_what_to_do_is_no_word() -> None:
    told = (
        "**The question: which\none?** **Predict.** A **leaf**, `2**3 ** 4`, "
        "**Predict**, **01.1** **What if** **in\nplace**"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(told)])
    assert introduced(notebook) == {"leaf", "in place"}
