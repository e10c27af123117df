"""A line of code from an article leads to its entry of the look-up page, whatever the names of its variables."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import hookviz as hv
from hookviz.course.article_index import has_pattern, read_entries, read_index, split_code
from tests.course.reading import PAGE, headings, read_notebook

ROOT = Path(__file__).parents[2]
LINES: list[dict[str, Any]] = json.loads((ROOT / "tests/data/pasted_lines.json").read_text(encoding="utf-8"))
"""Lines as one finds them in tutorials, with their entries. The index was not changed after the ``held_out`` ones."""


def is_found(line: str, entry: str) -> bool:
    return entry in [found.id for found in hv.look_up(line).entries]


def test_lines_are_of_many_entries_and_unique() -> None:
    assert len({row["line"] for row in LINES}) == len(LINES) >= 100
    assert sum(row["held_out"] for row in LINES) >= 30
    assert len({row["entry"] for row in LINES}) == len(read_entries())


@pytest.mark.parametrize("held_out", [False, True])
def test_at_least_95_percent_of_the_lines_lead_to_their_entry(held_out: bool) -> None:
    rows = [row for row in LINES if row["held_out"] == held_out]
    missed = [row["line"] for row in rows if not is_found(row["line"], row["entry"])]
    assert len(missed) <= 0.05 * len(rows), missed


def rename_variables(line: str) -> str:
    """Rename all that the index does not know by name."""
    known = {token for entry in read_entries() for pattern in entry.patterns for token in pattern}
    known |= {name for names in read_index()["usual_names"].values() for name in names}
    kept = known | {"def", "return", "for", "in", "import", "as", "class", "lambda", "with", "print", "if", "not", "is"}
    return re.sub(r"(?<![\w'\"])[A-Za-z_]\w*", lambda name: name[0] if name[0] in kept else f"{name[0]}_of_mine", line)


def test_names_of_variables_do_not_matter() -> None:
    for row in LINES:
        renamed = rename_variables(row["line"])
        assert hv.look_up(renamed) == hv.look_up(row["line"]), renamed
    assert rename_variables("fmaps.append(out.detach())") == "fmaps_of_mine.append(out.detach())"


def test_entries_of_the_index_are_those_of_the_page_in_its_order() -> None:
    cells = [cell for cell in read_notebook(PAGE).cells if cell.source.startswith("### ")]
    assert [(f"{entry.id}-text", entry.heading) for entry in read_entries()] == [
        (cell.id, headings(cell)[0]) for cell in cells
    ]
    [contents] = [cell.source for cell in read_notebook(PAGE).cells if cell.id == "contents"]
    for entry in read_entries():
        assert f"| [{entry.heading}](#cell-id={entry.id}-text) | {entry.says} | {entry.today} |" in contents


def test_code_in_each_heading_leads_to_its_entry() -> None:
    for entry in read_entries():
        code = " ".join(re.findall(r"`([^`]+)`", entry.heading))
        assert is_found(code, entry.id), entry.heading


@pytest.mark.parametrize("line", ["", "   # only a comment", "print('register_hook')", "total = price + tax"])
def test_code_that_has_nothing_to_do_with_hooks_finds_nothing(line: str) -> None:
    found = hv.look_up(line)
    assert found.entries == ()
    assert repr(found).startswith("No entry of this page") and "No entry" in found._repr_html_()


def test_result_links_to_the_entries() -> None:
    [first, *_] = re.findall(r'<a href="([^"]+)">(.+?)</a>', hv.look_up("y = x.creator")._repr_html_())
    assert first[0] == f"{PAGE}#cell-id=creator-text" and first[1].startswith("<code>loss.creator</code>")


def test_several_lines_may_be_pasted() -> None:
    assert is_found("def hook(m, i, o):\n    global kept\n    kept.append(o.detach().cpu())", "detach-cpu")


def test_gap_in_a_pattern_stands_for_a_few_tokens() -> None:
    pattern = split_code("with ... hook")
    assert has_pattern(split_code("with a.b(c) as hook:"), pattern)
    assert not has_pattern(split_code("hook with a"), pattern)
    assert not has_pattern(split_code("with " + "a " * 30 + "hook"), pattern)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_search_on_the_site_finds_the_same_entries() -> None:
    script = """
      await import("./site/static/look_up.js");
      const { index, lines } = JSON.parse(await new Promise((done) => {
        let text = ""; process.stdin.on("data", (part) => (text += part)); process.stdin.on("end", () => done(text));
      }));
      console.log(JSON.stringify(lines.map((line) => globalThis.lookUp(index, line).map((entry) => entry.id))));
    """
    lines = [*(row["line"] for row in LINES), *(rename_variables(row["line"]) for row in LINES), "", "x = 'a"]
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        input=json.dumps({"index": read_index(), "lines": lines}),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[entry.id for entry in hv.look_up(line).entries] for line in lines]


@pytest.mark.parametrize(
    ("words", "entry"),
    [("叶子节点的梯度", "accumulates"), ("就地修改", "in-place-grad"), ("后向传播", "legacy"), ("初始梯度", "seed")],
)
def test_the_words_of_chinese_articles_find_entries(words: str, entry: str) -> None:
    assert hv.look_up(words).entries[0].id == entry
