"""A lesson as a page for reading: boxes for what it asks, nothing that waits for an answer, and its own facts."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tools.lesson_pages import WIDGET, LessonFacts, is_open, link_cells, make_page, read_facts

LESSONS = sorted((Path(__file__).parents[2] / "notebooks").glob("[01]*.ipynb"))
FIRST = """# Lesson 09 · The end

**The question: what
is left?**

Prose. You need nothing else. It takes about 5 minutes. You need lesson 01 (`a`, b)."""


def code(source: str, *outputs: Any) -> Any:
    return nbformat.v4.new_code_cell(source, outputs=list(outputs), execution_count=7)


def prose(source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source)


def output(**data: str) -> Any:
    return nbformat.v4.new_output("display_data", data={WIDGET if key == "widget" else key: data[key] for key in data})


def read(*cells: Any) -> Any:
    return make_page(nbformat.v4.new_notebook(cells=list(cells)), "09_the_end.ipynb")


ANCHOR = re.compile(r'<span id="cell-id=[\w-]+"></span>\n\n| id="cell-id=[\w-]+"')
"""What a link to a cell leads to."""


def sources(notebook: Any) -> list[str]:
    return [ANCHOR.sub("", cell.source) for cell in notebook.cells]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_lesson_says_what_it_asks_how_long_it_takes_and_what_one_needs(path: Path) -> None:
    found = read_facts(nbformat.read(path, as_version=4))
    assert found.title.startswith(f"{path.stem[:2]} ") and found.question.endswith("?")
    assert 10 <= found.minutes <= 90 and found.needs


def test_the_facts_of_a_lesson_are_read_from_its_first_cell() -> None:
    first = FIRST.replace("You need nothing else. ", "")
    found = read_facts(nbformat.v4.new_notebook(cells=[prose(first)]))
    assert found == LessonFacts("09 The end", "What is left?", 5, "lesson 01 (`a`, b)")


@pytest.mark.parametrize("missing", ["# Lesson 09", "The question", "minutes", "You need"])
def test_a_lesson_that_lacks_one_of_them_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match="a lesson begins with its title, its question"):
        read_facts(nbformat.v4.new_notebook(cells=[prose(FIRST.replace(missing, "..."))]))


def test_a_question_stands_in_a_box_of_its_own() -> None:
    made = read(prose("Before.\n\n**Predict.** What is\n`a`?\n\nAfter.\n\n**02.3** Write it."))
    assert sources(made)[0] == (
        "Before.\n\n````{admonition} Predict\n:class: question\n\nWhat is\n`a`?\n````\n\n"
        "After.\n\n````{admonition} Exercise 02.3\n:class: question\n\nWrite it.\n````"
    )


def test_what_waits_for_an_answer_is_left_out_and_the_notebook_is_named_instead() -> None:
    made = read(prose("One."), code('answer = None\nhv.check("09.1", answer)'), prose("Two."))
    assert [source for source in sources(made) if "09_the_end.ipynb" not in source] == ["One.", "Two."]
    assert "{download}`09_the_end.ipynb </files/09_the_end.ipynb>`" in sources(made)[1]


def test_a_notebook_without_questions_sends_nobody_elsewhere() -> None:
    assert sources(read(prose("One."))) == ["One."]


def test_a_cell_of_code_is_preceded_by_its_number() -> None:
    assert sources(read(code("a"))) == ['<p class="in">In [7]</p>', "a"]


def test_a_link_to_a_step_is_left_to_the_players() -> None:
    assert sources(read(prose("See [step `7`](#step-7) and [here](#there).")))[0] == (
        'See <a href="#step-7">step `7`</a> and [here](#there).'
    )


def test_the_map_is_left_out_as_a_site_has_a_menu() -> None:
    line = "[The course](README.md): **01**&nbsp;·&nbsp;[02](02_b.ipynb)"
    assert sources(read(prose(f"# Title\n\nAbout 5 minutes.\n\n{line}"))) == ["# Title\n\nAbout 5 minutes."]


def test_a_widget_that_would_need_its_kernel_is_left_out() -> None:
    kept = output(**{"text/html": "<b>kept</b>"})
    notebook = nbformat.v4.new_notebook(cells=[code("a", output(widget="x"), kept)], metadata={"widgets": {}})
    made = make_page(notebook, "a")
    assert made.cells[-1].outputs == [kept]
    assert "widgets" not in made.metadata and "widgets" in notebook.metadata


def test_a_link_to_a_cell_leads_to_it() -> None:
    link = '[02, "Once more"](02_hooks.ipynb#cell-id=c05) and [`a[0]`](#cell-id=c06)'
    assert link_cells(link) == (
        '<a href="02_hooks.html#cell-id=c05">02, "Once more"</a> and <a href="#cell-id=c06">`a[0]`</a>'
    )
    title, text, cell = prose("# Title"), prose("Text."), code("a")
    made = make_page(nbformat.v4.new_notebook(cells=[title, text, cell]), "09_the_end.ipynb")
    anchors = [re.search('id="cell-id=(.+?)"', one.source) for one in made.cells]
    assert [one and one[1] for one in anchors] == [None, text.id, cell.id, None]


def test_what_is_closed_in_a_lesson_is_closed_on_its_page() -> None:
    check = code("assert a == 4")
    check.metadata.update(jupyter={"source_hidden": True}, tags=["hide-cell"])
    folded = "<details>\n<summary><b>Explain</b></summary>\n\nIt is [4](#step-2).\n\n</details>"
    made = read(prose("# Title"), prose(folded), check)
    assert made.cells[-1].metadata["tags"] == ["hide-cell"] and not is_open(made.cells[-1])
    assert made.cells[1].source.endswith(folded.replace("[4](#step-2)", '<a href="#step-2">4</a>'))
