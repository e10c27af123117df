"""The web page of a lesson: questions become admonitions, check cells are left out, and the facts are read."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tools.lesson_pages import WIDGET, LessonFacts, is_open, link_cells, make_page, read_facts

LESSONS = sorted((Path(__file__).parents[2] / "notebooks").glob("[01]*.ipynb"))
TITLE_CELL = """# Lesson 09 · The end

**The question: what
is left?**

Prose. You need nothing else. It takes about 5 minutes. You need lesson 01 (`a`, b)."""


def code(source: str, *outputs: Any) -> Any:
    return nbformat.v4.new_code_cell(source, outputs=list(outputs), execution_count=7)


def prose(source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source)


def output(**data: str) -> Any:
    return nbformat.v4.new_output("display_data", data={WIDGET if key == "widget" else key: data[key] for key in data})


def make_lesson_page(*cells: Any) -> Any:
    return make_page(nbformat.v4.new_notebook(cells=list(cells)), "09_the_end.ipynb")


ANCHOR = re.compile(r'<span id="cell-id=[\w-]+"></span>\n\n| id="cell-id=[\w-]+"')
"""The anchor that a link to a cell points to."""


def sources(notebook: Any) -> list[str]:
    return [ANCHOR.sub("", cell.source) for cell in notebook.cells]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_lesson_states_its_question_duration_and_prerequisites(path: Path) -> None:
    facts = read_facts(nbformat.read(path, as_version=4))
    assert facts.title.startswith(f"{path.stem[:2]} ") and facts.question.endswith("?")
    assert 10 <= facts.minutes <= 130 and facts.needs


def test_the_facts_of_a_lesson_are_read_from_its_first_cell() -> None:
    first = TITLE_CELL.replace("You need nothing else. ", "")
    facts = read_facts(nbformat.v4.new_notebook(cells=[prose(first)]))
    assert facts == LessonFacts("09 The end", "What is left?", 5, "lesson 01 (`a`, b)")


def test_question_becomes_an_admonition() -> None:
    page = make_lesson_page(prose("Before.\n\n**Predict.** What is\n`a`?\n\nAfter.\n\n**02.3** Write it."))
    assert sources(page)[0] == (
        "Before.\n\n````{admonition} Predict\n:class: question\n\nWhat is\n`a`?\n````\n\n"
        "After.\n\n````{admonition} Exercise 02.3\n:class: question\n\nWrite it.\n````"
    )


def test_check_cell_is_replaced_by_a_link_to_the_notebook() -> None:
    page = make_lesson_page(prose("One."), code('answer = None\ncheck("09.1", answer)'), prose("Two."))
    assert [source for source in sources(page) if "09_the_end.ipynb" not in source] == ["One.", "Two."]
    assert "{download}`09_the_end.ipynb </files/09_the_end.ipynb>`" in sources(page)[1]


def test_notebook_without_questions_gets_no_download_link() -> None:
    assert sources(make_lesson_page(prose("One."))) == ["One."]


def test_code_cell_is_preceded_by_its_execution_number() -> None:
    assert sources(make_lesson_page(code("a"))) == ['<p class="in">In [7]</p>', "a"]


def test_step_link_becomes_html_for_the_players_script() -> None:
    assert sources(make_lesson_page(prose("See [step `7`](#step-7) and [here](#there).")))[0] == (
        'See <a href="#step-7">step `7`</a> and [here](#there).'
    )


def test_course_map_is_left_out() -> None:
    line = "[The course](README.md): **01**&nbsp;·&nbsp;[02](02_b.ipynb)"
    assert sources(make_lesson_page(prose(f"# Title\n\nAbout 5 minutes.\n\n{line}"))) == ["# Title\n\nAbout 5 minutes."]


def test_widget_output_is_left_out() -> None:
    kept = output(**{"text/html": "<b>kept</b>"})
    notebook = nbformat.v4.new_notebook(cells=[code("a", output(widget="x"), kept)], metadata={"widgets": {}})
    page = make_page(notebook, "a")
    assert page.cells[-1].outputs == [kept]
    assert "widgets" not in page.metadata and "widgets" in notebook.metadata


def test_cell_link_points_to_the_anchor_of_the_cell() -> None:
    link = '[02, "Once more"](02_hooks.ipynb#cell-id=c05) and [`a[0]`](#cell-id=c06)'
    assert link_cells(link) == (
        '<a href="02_hooks.html#cell-id=c05">02, "Once more"</a> and <a href="#cell-id=c06">`a[0]`</a>'
    )
    title, text, cell = prose("# Title"), prose("Text."), code("a")
    page = make_page(nbformat.v4.new_notebook(cells=[title, text, cell]), "09_the_end.ipynb")
    anchors = [re.search('id="cell-id=(.+?)"', made_cell.source) for made_cell in page.cells]
    assert [anchor and anchor[1] for anchor in anchors] == [None, text.id, cell.id, None]


def test_hidden_cells_and_details_stay_closed_on_the_page() -> None:
    check = code("assert a == 4")
    check.metadata.update(jupyter={"source_hidden": True}, tags=["hide-cell"])
    folded = "<details>\n<summary><b>Explain</b></summary>\n\nIt is [4](#step-2).\n\n</details>"
    page = make_lesson_page(prose("# Title"), prose(folded), check)
    assert page.cells[-1].metadata["tags"] == ["hide-cell"] and not is_open(page.cells[-1])
    assert page.cells[1].source.endswith(folded.replace("[4](#step-2)", '<a href="#step-2">4</a>'))
