"""The editions in other languages: the catalogue is complete, its rules hold, and its files are up to date."""

import ast
import re
import tomllib
from pathlib import Path

import nbformat
import pytest
from babel.messages.catalog import Catalog

from hookviz.support.messages.languages import LANGUAGES
from tools.lesson_ids import INSTALL_ID
from tools.lesson_pages import EXERCISE, EXPLAIN, PREDICT, read_facts
from tools.lessons import remove_checks
from tools.slide_cells import INSTRUCTION, QUESTION
from tools.translation import catalogue as catalogue_module
from tools.translation.catalogue import MARK, Translations, read_catalogues, update
from tools.translation.code_comments import remove_comments, translate_comments
from tools.translation.coverage import describe_coverage, find_faults
from tools.translation.editions import LINK, NOTEBOOKS, Edition
from tools.translation.markdown_blocks import list_texts, translate_markdown
from tools.translation.message_sources import ROOT, SOLUTIONS, Message, read_sources
from tools.translation.rules import check_entry, forbidden_words

OTHERS = [language for language in LANGUAGES if language != "en"]
LESSONS = sorted(path.name for path in SOLUTIONS.glob("*.ipynb"))


# -- the editions


@pytest.mark.parametrize("language", OTHERS)
def test_everything_is_translated_and_keeps_the_rules(language: str) -> None:
    assert find_faults(language) == []
    assert describe_coverage(language).endswith("100.0% translated, 0 fuzzy")


@pytest.mark.parametrize("language", OTHERS)
def test_the_files_of_the_edition_are_up_to_date(language: str) -> None:
    files = Edition(language).make_files()
    old = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert [path.relative_to(ROOT).as_posix() for path in old] == [], "run `make lessons`"
    made = set(files)
    kept = [path for path in (NOTEBOOKS / language).rglob("*.*") if path.is_file() and path.name != "answers.json"]
    assert [path for path in kept if path not in made] == []


def read_cells(path: Path) -> dict[str, tuple[str, str]]:
    """Id of a cell → its type and source, without the cell that installs hookviz and without hidden tests."""
    cells = remove_checks(nbformat.read(path, as_version=4)).cells
    return {cell.id: (cell.cell_type, cell.source) for cell in cells if cell.id != INSTALL_ID}


@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.parametrize("folder", ["", "solutions/"])
@pytest.mark.parametrize("language", OTHERS)
def test_the_code_is_the_same_byte_for_byte_without_its_comments(language: str, folder: str, name: str) -> None:
    english, other = (read_cells(root / folder / name) for root in (NOTEBOOKS, NOTEBOOKS / language))
    assert [(cell, kind) for cell, (kind, _) in english.items()] == [(cell, kind) for cell, (kind, _) in other.items()]
    for cell, (kind, source) in english.items():
        if kind == "code":
            assert remove_comments(source) == remove_comments(other[cell][1]), cell
            if "%" not in source:
                assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(other[cell][1])), cell


@pytest.mark.parametrize("name", [name for name in LESSONS if name[:2].isdigit()])
@pytest.mark.parametrize("language", OTHERS)
def test_a_lesson_has_the_facts_and_questions_of_the_english_one(language: str, name: str) -> None:
    english, other = (nbformat.read(root / name, as_version=4) for root in (NOTEBOOKS, NOTEBOOKS / language))
    facts, same = read_facts(other), read_facts(english)
    assert facts.minutes == same.minutes and facts.title[:3] == same.title[:3] and len(facts.needs) > 3
    for mark in (PREDICT, EXPLAIN, EXERCISE, QUESTION, INSTRUCTION):
        counts = [sum(len(mark.findall(cell.source)) for cell in lesson.cells) for lesson in (english, other)]
        assert counts[0] == counts[1], mark.pattern


@pytest.mark.parametrize("language", OTHERS)
def test_every_link_of_the_edition_leads_to_a_file(language: str) -> None:
    missing = []
    for path, text in Edition(language).make_files().items():
        if path.suffix == ".ipynb" and path.parent.name != "solutions":
            text = "\n".join(cell.source for cell in nbformat.reads(text, 4).cells if cell.cell_type == "markdown")
        elif path.suffix != ".md":
            continue
        missing += [
            f"{path.name}: {link['path']}"
            for link in LINK.finditer(text)
            if "/" not in link["path"][:1] and "." in link["path"] and not (path.parent / link["path"]).exists()
        ]
    assert missing == []


@pytest.mark.parametrize("language", OTHERS)
def test_no_mark_of_a_missing_translation_is_in_a_file(language: str) -> None:
    marked = [path.name for path, text in Edition(language).make_files().items() if MARK in text]
    assert marked == []


# -- what is translated


def test_texts_are_paragraphs_items_cells_and_comments() -> None:
    page = """\
# Head

One
line.

- item
  goes on
- `code only`

| a | `b` |
|---|---|
| c d | 1 |

<summary><b>Open</b></summary>

```python
x = "# no"  # yes
```

```console
# install
pip install  # yes
```
"""
    assert list_texts(page) == ["Head", "One line.", "item goes on", "a", "c d", "Open", "yes", "install", "yes"]
    shouted = translate_markdown(page, str.upper)
    assert "# HEAD\n\nONE LINE.\n\n- ITEM GOES ON\n- `code only`\n" in shouted
    assert "<summary><b>OPEN</b></summary>" in shouted and 'x = "# no"  # YES' in shouted


def test_a_number_that_begins_a_line_begins_no_item() -> None:
    assert list_texts("The other finds\n36. All is well.") == ["The other finds 36. All is well."]
    assert list_texts("1. one\n2. two\n   more") == ["one", "two more"]


@pytest.mark.parametrize("path", [*SOLUTIONS.glob("*.ipynb"), ROOT / "README.md", *NOTEBOOKS.glob("*.md")], ids=str)
def test_a_text_that_is_translated_by_itself_stays(path: Path) -> None:
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
        assert translate_markdown(text, str).split() == text.split()
        return
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            assert translate_markdown(cell.source, str).split() == cell.source.split()
        else:
            assert translate_comments(cell.source, str) == cell.source


def test_comments_for_tools_and_in_hidden_tests_stay() -> None:
    code = "### BEGIN HIDDEN TESTS\nx  # one\n### END HIDDEN TESTS\ny  # noqa\n'''\n# text\n'''\nz  # two"
    assert translate_comments(code, str.upper) == code.replace("# two", "# TWO")


# -- the catalogue


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(catalogue_module, "FOLDER", tmp_path)
    (tmp_path / "zh").mkdir()
    return tmp_path


def sources(*texts: str) -> dict[str, list[Message]]:
    return {"one": [Message(text, "one.json#key") for text in texts]}


def test_a_changed_english_is_fuzzy_and_shows_as_english(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "read_sources", lambda: sources("The hook fired at the step."))
    update("zh")
    catalogue = read_catalogues("zh")["one"]
    catalogue["The hook fired at the step."].string = "钩子在这一步触发了。"
    catalogue_module.write_catalogue(folder / "zh" / "one.po", catalogue)
    monkeypatch.setattr(catalogue_module, "read_sources", lambda: sources("The hook fired at this step.", "New"))
    update("zh")
    changed = read_catalogues("zh")["one"]
    entry = changed["The hook fired at this step."]
    assert entry.fuzzy and entry.string == "钩子在这一步触发了。"
    shown = Translations({"one": changed})
    assert shown.translate("The hook fired at this step.") == f"{MARK}The hook fired at this step."
    assert shown.translate("New") == f"{MARK}New"
    assert "The hook fired at the step." not in [message.id for message in changed]


def test_an_update_without_changes_changes_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "read_sources", lambda: sources("One", "Two"))
    update("zh")
    first = (folder / "zh" / "one.po").read_bytes()
    update("zh")
    assert (folder / "zh" / "one.po").read_bytes() == first


def test_a_key_can_have_a_translation_of_its_own() -> None:
    catalogue = Catalog()
    catalogue.add("before", "之前")
    catalogue.add("before", "原来", context="diff.before")
    translations = Translations({"one": catalogue})
    assert (translations.translate("before"), translations.translate("before", "diff.before")) == ("之前", "原来")


def test_every_source_has_a_place_that_exists() -> None:
    places = {message.place.partition("#")[0] for messages in read_sources().values() for message in messages}
    assert [place for place in places if not (ROOT / place).exists()] == []
    assert len(places) > 30


# -- the rules


@pytest.mark.parametrize(
    ("english", "chinese", "fault"),
    [
        ("`a` is 2", "`b` 是 2", "code"),
        ("{a} is 2", "{b} 是 2", "placeholders"),
        ("[a](b.md)", "[甲](c.md)", "links"),
        ("It is 2", "这是 3", "numbers"),
        ("a **b**", "甲乙", "the number of"),
        ("a hook", "钩子a", "no space"),
        ("a, b", "甲,乙", "half width"),
        ("a (b)", "甲(乙)", "half width"),
        ("a. b", "甲。 乙", "a space"),
        ("a", '"甲"', "quotation"),
        ("leaf", "叶子节点", "叶子节点"),
        ("**a.** b", "见**“甲”**乙", "Markdown"),
    ],
)
def test_a_broken_rule_is_found(english: str, chinese: str, fault: str) -> None:
    assert any(fault in found for found in check_entry(english, chinese))


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("**Predict.** What is `a`?", "**预测。** `a` 是多少？"),
        ("step 3 of {n} (see [it](x.md))", "第 3 步，共 {n} 步（见[这里](x.md)）"),
        (", ", "、"),
        ("f(x) is 1.5", "f(x) 是 1.5"),
        ("9 %", "9%"),
    ],
)
def test_good_chinese_breaks_no_rule(english: str, chinese: str) -> None:
    assert list(check_entry(english, chinese)) == []


def test_a_forbidden_word_is_part_of_no_term() -> None:
    terms = tomllib.loads((ROOT / "translations" / "zh" / "terms.toml").read_text(encoding="utf-8"))["term"]
    wrong = [(word, term["chinese"]) for word in forbidden_words() for term in terms if word in term["chinese"]]
    assert wrong == []
    assert len({term["english"] for term in terms}) == len(terms) > 100


# -- headings


def read_headings(folder: Path) -> dict[tuple[str, str, int], str]:
    """Each heading of the notebooks in ``folder`` by name of the notebook, id of the cell and place in the cell."""
    return {
        (path.name, cell.id, place): heading.strip(".")
        for path in folder.glob("*.ipynb")
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
        for place, heading in enumerate(re.findall(r"(?m)^#+ (.+)$", cell.source))
    }


@pytest.mark.parametrize("language", OTHERS)
def test_a_heading_that_is_quoted_is_that_of_the_lesson(language: str) -> None:
    english, other = read_headings(NOTEBOOKS), read_headings(NOTEBOOKS / language)
    quoted = [
        (message.id, message.string, {other[at] for at, heading in english.items() if heading == quote})
        for catalogue in read_catalogues(language).values()
        for message in catalogue
        for quote in re.findall(r'"([^"]{3,})"', str(message.id))
        if quote in english.values()
    ]
    assert len(quoted) > 100
    assert [
        text for text, translated, headings in quoted if not any(heading in translated for heading in headings)
    ] == []
