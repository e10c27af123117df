"""The web page of a lesson: questions become admonitions, check cells are left out, and the facts are read."""

import re
from typing import Any

import nbformat
import pytest

from tests.course.reading import FOLDER
from tools.lesson_pages import WIDGET, LessonFacts, link_cells, make_page, read_facts

LESSONS = sorted(FOLDER.glob("[01]*.ipynb"))
TITLE_CELL = """# Lesson 09 · The end

**The question: what
is left?**

Prose. It takes about 5 minutes. You need lesson 01 (`a`, b)."""
ANCHOR = re.compile(r'<span id="cell-id=[\w-]+"></span>\n\n| id="cell-id=[\w-]+"')
"""The anchor that a link to a cell points to."""


def code(source: str, *outputs: Any) -> Any:
    return nbformat.v4.new_code_cell(source, outputs=list(outputs), execution_count=7)


def prose(source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source)


def page_of(*cells: Any) -> Any:
    return make_page(nbformat.v4.new_notebook(cells=list(cells)), "09_the_end.ipynb")


def sources(*cells: Any) -> list[str]:
    return [ANCHOR.sub("", cell.source) for cell in page_of(*cells).cells]


def test_the_facts_of_a_lesson_are_read_from_its_first_cell() -> None:
    facts = read_facts(nbformat.v4.new_notebook(cells=[prose(TITLE_CELL)]))
    assert facts == LessonFacts("09 The end", "What is left?", 5, "lesson 01 (`a`, b)")
    for path in LESSONS:
        facts = read_facts(nbformat.read(path, as_version=4))
        assert facts.title.startswith(f"{path.stem[:2]} ") and facts.question.endswith("?")
        assert 10 <= facts.minutes <= 130 and facts.needs


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (
            "Before.\n\n**Predict.** What is\n`a`?\n\nAfter.\n\n**02.3** Write it.",
            "Before.\n\n````{admonition} Predict\n:class: question\n\nWhat is\n`a`?\n````\n\n"
            "After.\n\n````{admonition} Exercise 02.3\n:class: question\n\nWrite it.\n````",
        ),
        (
            "<details>\n<summary><b>Explain</b></summary>\n\nIt is [step `7`](#step-7), [here](#there).\n\n</details>",
            "<details>\n<summary><b>Explain</b></summary>\n\n"
            'It is <a href="#step-7">step `7`</a>, [here](#there).\n\n</details>',
        ),
        ("# Title\n\nText.\n\n[The course](README.md): **01**&nbsp;·&nbsp;[02](02_b.ipynb)", "# Title\n\nText."),
    ],
    ids=["questions", "folded step link", "course map"],
)
def test_prose_of_a_page(source: str, shown: str) -> None:
    assert sources(prose(source)) == [shown]


def test_check_cell_is_replaced_by_a_link_to_the_notebook_and_code_has_its_number() -> None:
    first, note, *rest = sources(prose("One."), code('answer = None\ncheck("09.1", answer)'), code("a"))
    assert first == "One." and "{download}`09_the_end.ipynb </files/09_the_end.ipynb>`" in note
    assert rest == ['<p class="in">In [7]</p>', "a"]


def test_widget_output_is_left_out() -> None:
    kept, widget = (nbformat.v4.new_output("display_data", data={kind: "x"}) for kind in ("text/html", WIDGET))
    notebook = nbformat.v4.new_notebook(cells=[code("a", widget, kept)], metadata={"widgets": {}})
    page = make_page(notebook, "a")
    assert page.cells[-1].outputs == [kept] and "widgets" not in page.metadata


def test_cell_link_points_to_the_anchor_of_the_cell() -> None:
    assert link_cells('[02, "Once more"](02_hooks.ipynb#cell-id=c05) and [`a[0]`](#cell-id=c06)') == (
        '<a href="02_hooks.html#cell-id=c05">02, "Once more"</a> and <a href="#cell-id=c06">`a[0]`</a>'
    )
    title, text, cell = prose("# Title"), prose("Text."), code("a")
    anchors = [re.search('id="cell-id=(.+?)"', shown.source) for shown in page_of(title, text, cell).cells]
    assert [anchor and anchor[1] for anchor in anchors] == [None, text.id, cell.id, None]
