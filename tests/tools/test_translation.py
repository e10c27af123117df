"""Texts are found and put back, a changed English shows, what is wrong is listed, and the edition is made."""

from pathlib import Path

import nbformat
import pytest

from tools.translation import catalogue as catalogue_module
from tools.translation import rules
from tools.translation.catalogue import MARK, Translations, read_catalogues, update
from tools.translation.code_comments import translate_comments
from tools.translation.editions import LINK, Edition
from tools.translation.markdown_blocks import list_texts, translate_html, translate_markdown
from tools.translation.message_sources import NOTEBOOKS, ROOT, SOLUTIONS, Message
from tools.translation.rules import check_entry, find_faults

PAGE = """\
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


# -- what is translated


def test_texts_are_paragraphs_items_cells_and_comments() -> None:
    assert list_texts(PAGE) == ["Head", "One line.", "item goes on", "a", "c d", "Open", "yes", "install", "yes"]
    shouted = translate_markdown(PAGE, str.upper)
    assert "# HEAD\n\nONE LINE.\n\n- ITEM GOES ON\n- `code only`\n" in shouted
    assert "<summary><b>OPEN</b></summary>" in shouted and 'x = "# no"  # YES' in shouted
    assert translate_html("<p>one</p><p>2</p>", str.upper) == "<p>ONE</p><p>2</p>"
    code = "### BEGIN HIDDEN TESTS\nx  # one\n### END HIDDEN TESTS\ny  # noqa\n'''\n# text\n'''\nz  # two"
    assert translate_comments(code, str.upper) == code.replace("# two", "# TWO")


def test_texts_that_are_translated_by_themselves_give_the_same_pages_and_lessons() -> None:
    for path in (ROOT / "README.md", *NOTEBOOKS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert translate_markdown(text, str).split() == text.split(), path.name
    for path in SOLUTIONS.glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                assert translate_markdown(cell.source, str).split() == cell.source.split(), path.name
            else:
                assert translate_comments(cell.source, str) == cell.source, path.name


# -- the catalogue


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(catalogue_module, "FOLDER", tmp_path)
    (tmp_path / "zh").mkdir()
    return tmp_path


def set_sources(monkeypatch: pytest.MonkeyPatch, *texts: str) -> None:
    messages = {"one": [Message(text, "one.json#key") for text in texts]}
    for module in (catalogue_module, rules):
        monkeypatch.setattr(module, "read_sources", lambda: messages)


def test_a_changed_english_is_fuzzy_and_what_is_missing_or_wrong_is_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_sources(monkeypatch, "The hook fired at the step.", "It is 2")
    update("zh")
    catalogue = read_catalogues("zh")["one"]
    catalogue["The hook fired at the step."].string = "钩子在这一步触发了。"
    catalogue["It is 2"].string = "这是 3"
    catalogue_module.write_catalogue(folder / "zh" / "one.po", catalogue)
    set_sources(monkeypatch, "The hook fired at this step.", "It is 2", "New")
    update("zh")
    changed = read_catalogues("zh")["one"]
    entry = changed["The hook fired at this step."]
    assert entry.fuzzy and entry.string == "钩子在这一步触发了。"
    assert Translations({"one": changed}).translate(str(entry.id)) == f"{MARK}The hook fired at this step."
    assert [fault.partition(": ")[2] for fault in find_faults("zh")] == [
        "its English has changed: The hook fired at this step.",
        "numbers: 2 in English only, 3 in Chinese only: 这是 3",
        "not translated: New",
    ]
    before = (folder / "zh" / "one.po").read_bytes()
    update("zh")
    assert (folder / "zh" / "one.po").read_bytes() == before


@pytest.mark.parametrize(
    ("english", "chinese", "fault"),
    [
        ("`a` is 2", "`b` 是 2", "code"),
        ("{a} is 2", "{b} 是 2", "placeholders"),
        ("[a](b.md)", "[甲](c.md)", "links"),
        ("a, b", "甲,乙", "half width"),
        ("**a.** b", "见**“甲”**乙", "Markdown"),
        ("step 3 of {n} (see [it](x.md))", "第 3 步，共 {n} 步（见[这里](x.md)）", ""),
    ],
)
def test_a_broken_rule_is_found(english: str, chinese: str, fault: str) -> None:
    found = list(check_entry(english, chinese))
    assert any(fault in rule for rule in found) if fault else found == []


# -- the edition


def test_the_chinese_edition_has_all_lessons_and_its_links_lead_to_files() -> None:
    files = Edition("zh").make_files()
    lessons = {path.relative_to(NOTEBOOKS / "zh").as_posix() for path in files if path.suffix == ".ipynb"}
    names = {path.name for path in SOLUTIONS.glob("*.ipynb")}
    assert lessons == names | {f"solutions/{name}" for name in names}
    for path, text in files.items():
        if path.suffix == ".md":
            links = [link["path"] for link in LINK.finditer(text) if "." in link["path"]]
            assert [link for link in links if not (path.parent / link).exists()] == [], path.name
        if path.suffix == ".ipynb":
            nbformat.validate(nbformat.reads(text, 4))
