"""A table, such as ``trace.firings``, is a list in Python, text in a terminal and a table in Jupyter."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest

from hookviz.support.table import Table


@pytest.fixture
def table() -> Table[int]:
    return Table([1, 22, 3], ("n", "half"), lambda n: (str(n), f"{n / 2}"))


def test_a_table_is_a_sequence_that_cannot_be_changed(table: Table[int]) -> None:
    assert isinstance(table, Sequence)
    assert (len(table), table[0], table[-1], 22 in table, list(table)) == (3, 1, 3, True, [1, 22, 3])
    with pytest.raises(IndexError):
        table[3]
    with pytest.raises(TypeError):
        table[0] = 5  # type: ignore[index]
    part = table[1:]
    assert isinstance(part, Table) and part.texts() == [("22", "11.0"), ("3", "1.5")]


def test_columns_stand_under_their_headers_in_text_and_in_html(table: Table[int]) -> None:
    assert repr(table) == "n   half\n1   0.5\n22  11.0\n3   1.5"
    root = ET.fromstring(table._repr_html_())
    assert [(cell.text, cell.get("scope")) for cell in root.findall("thead/tr/th")] == [("n", "col"), ("half", "col")]
    assert [[cell.text for cell in row] for row in root.findall("tbody/tr")] == [list(row) for row in table.texts()]


def test_markup_is_escaped_and_invisible_and_bidi_characters_are_replaced() -> None:
    for text in ("</td></table><script>", "&amp;", '"', "损失"):
        root = ET.fromstring(Table([text], (text,), lambda row: (row,))._repr_html_())
        assert [cell.text for cell in root.iter() if cell.tag in ("th", "td")] == [text, text]
    table = Table(["\u202ea\u2066b\0c\ud800", "a\nb"], ("head",), lambda row: (row,))
    for text in (repr(table), table._repr_html_()):
        assert not set("\u202e\u2066\0\ud800") & set(text) and "\N{REPLACEMENT CHARACTER}" in text
    assert len(repr(table).splitlines()) == 3


def test_an_empty_table_shows_its_sentence_or_none() -> None:
    headed: Table[int] = Table([], ("n", "half"), lambda n: (str(n), ""))
    assert repr(headed) == "n  half"
    assert "None." in headed._repr_html_() and "<table" not in headed._repr_html_()
    told: Table[int] = Table((), ("n",), lambda n: (str(n),), nothing="No <n>.")
    assert repr(told) == repr(told[:]) == "No <n>."
    assert ET.fromstring(told._repr_html_()).text == "No <n>."


def test_long_cells_of_a_wide_table_stand_below_their_row_and_nothing_is_left_out() -> None:
    text = "why " * 30
    table = Table([("a", text, "end")], ("name", "reason", "where"), lambda row: row)
    lines = table.lines(60)
    assert lines[:2] == ["name  where", "a     end"]
    assert lines[2].startswith("    reason: why") and max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines[2:]).split()) == f"reason: {text.strip()}"
    assert len(table.lines(1_000)) == 2
