"""The glossary lists every word that a lesson introduces, once, with its lesson, code that runs, and pictures."""

import doctest
import re
from pathlib import Path

import pytest

from tests.course.reading import FOLDER, read_notebook
from tests.course.test_notebooks import LESSONS, prose

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


def introduced_words(file: str) -> set[str]:
    """The words that a lesson introduces: those in bold."""
    bold = (" ".join(found.split()) for found in BOLD.findall(CODE.sub("`", prose(read_notebook(file)))))
    return {found.casefold() for found in bold if not NOT_A_TERM.fullmatch(found)}


def test_entries_are_sorted_and_have_a_word_one_sentence_and_a_lesson() -> None:
    assert len(ENTRIES) == GLOSSARY.count("\n- ") > 60
    assert all(sentence.count(". ") == 0 and file.startswith(number) for _, _, sentence, number, file in ENTRIES)
    words = [(word + more).strip("`") for word, more, *_ in ENTRIES]
    assert words == sorted(set(words), key=str.casefold)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson_introduces_exactly_the_words_that_the_glossary_attributes_to_it(path: Path) -> None:
    listed = [word for word, *_, file in ENTRIES if file == path.name]
    words = {word.casefold() for word in listed if "`" not in word}
    found = {word.removesuffix("s") if word not in words else word for word in introduced_words(path.name)}
    assert found == words
    names = [word.strip("`") for word in listed if "`" in word]
    assert [name for name in names if name not in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.split("**")[1])
def test_code_of_an_entry_runs(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    word, blocks = section.split("**")[1], BLOCK.findall(section)
    assert len(blocks) == (word not in WITHOUT_CODE)
    code = "\n".join([*BLOCK.findall(PREAMBLE), *blocks])
    test = doctest.DocTestParser().get_doctest(code, {}, word, "glossary.md", 0)
    result = doctest.DocTestRunner(verbose=False).run(test)
    assert result.attempted >= 6 and result.failed == 0
