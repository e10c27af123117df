"""Slides made from a notebook: questions, code and players are shown, and prose goes into the speaker notes."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from hookviz.player.compression import pack
from tools.lesson_pages import is_slide
from tools.lessons import folder_of
from tools.predictions import erase_results, find_graphs
from tools.slide_cells import LINK, make_slides
from tools.slides import export_slides

LESSONS = [path for language in ("en", "zh") for path in sorted(folder_of(language).glob("[01]*.ipynb"))]
LONG_PROSE = "It is a long story. " * 20
PLAYER = f'<div class="hv-output"><script class="hv-state">{pack({"steps": 3})}</script></div>'


def prose_cell(source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source, metadata={"tags": ["slide"]})


def code_cell(source: str, **output: str) -> Any:
    data = {key.replace("_", "/", 1): value for key, value in output.items()}
    outputs = [nbformat.v4.new_output("display_data", data=data)] if data else []
    return nbformat.v4.new_code_cell(source, outputs=outputs, metadata={"tags": ["slide"]})


def slides_of(*cells: Any) -> tuple[list[list[str]], list[str]]:
    """The sources that show on each slide of a notebook with these cells, and its notes, without the title slide."""
    title = nbformat.v4.new_markdown_cell("# Lesson 09 · End\n\n**The question?**")
    slides: list[list[Any]] = []
    for cell in make_slides(nbformat.v4.new_notebook(cells=[title, *cells])).cells:
        if cell.metadata.slideshow.slide_type == "slide":
            slides.append([])
        slides[-1].append(cell)
    is_note = {id(cell): cell.metadata.slideshow.slide_type == "notes" for slide in slides for cell in slide}
    shown = [[cell.source for cell in slide if not is_note[id(cell)]] for slide in slides]
    assert shown[0] == ["# Lesson 09 · End", "**The question?**"]
    return shown[1:], ["\n".join(cell.source for cell in slide if is_note[id(cell)]) for slide in slides[1:]]


def test_a_question_shows_the_code_that_is_to_run_and_its_answer_is_on_another_slide() -> None:
    code = "a = 1\n" * 8
    shown, _ = slides_of(
        prose_cell("## One\n\nSo.\n\n**Predict.** What is a? Put it in place of `None` and run the cell."),
        code_cell('answer = None\ncheck("09.1", answer)'),
        code_cell("a", text_plain="<torch.utils.hooks.Handle at 0x7f01>"),
        code_cell("print(a)", text_plain="1"),
        prose_cell("**Predict.** And b?"),
        code_cell(code, text_html=PLAYER),
        prose_cell("## Exercises\n\n**09.1** Do it."),
    )
    assert shown == [
        ["## One", "So.", "### Predict\n\nWhat is a?", "a"],
        ["## One", "print(a)"],
        ["### Predict\n\nAnd b?", code],
        [""],
        ["## Exercises", "### Exercise 09.1\n\nDo it."],
    ]


def test_the_answer_is_in_the_notes_of_its_question() -> None:
    shown, notes = slides_of(
        prose_cell("## One\n\n**Predict.** What is a?"),
        nbformat.v4.new_markdown_cell("<details>\nTwo.\n</details>\n\nGo on."),
        code_cell("a", text_plain="2"),
    )
    assert shown == [["## One", "### Predict\n\nWhat is a?"], ["## One", "a"]]
    assert notes == ["<details open>\nTwo.\n</details>", "Go on."]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: f"{path.parent.name}-{path.name[:2]}")
def test_the_last_slide_of_a_lesson_shows_its_whole_summary(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    summary = [cell for cell in notebook.cells if is_slide(cell)][-1].source
    heading, first, *_ = summary.split("\n\n")
    assert heading in ("## What you have seen", "## 你看到了什么")
    cells = make_slides(notebook, path.parent.name).cells
    kinds = [cell.metadata.slideshow.slide_type for cell in cells]
    last = len(kinds) - 1 - kinds[::-1].index("slide")
    shown = " ".join(cell.source for cell in cells[last:] if cell.metadata.slideshow.slide_type != "notes")
    for line in [first, *(line for line in summary.splitlines() if re.match(r"[-|] ", line))]:
        assert " ".join(LINK.sub(r"\1", line).split()) in " ".join(shown.split())


def test_a_question_shows_the_graph_without_the_answer() -> None:
    boxes = '<g><rect class="hv-box"/><text class="hv-name">a</text></g>' * 2
    results = '<text class="hv-grad" id="g">gradient 2</text><text class="hv-memory" id="m">same memory as a</text>'
    svg = f'<svg class="hv-svg">{boxes}{results}</svg>'
    question, other = (prose_cell(f"**Predict.** `{name}.grad`?") for name in "ab")
    player, graph = code_cell("trace"), erase_results(svg)
    player.outputs = [nbformat.v4.new_output("display_data", data={"image/svg+xml": svg})]
    assert "hv-name" in graph and "gradient 2" not in graph and "same memory" not in graph
    assert find_graphs([question, player]) == find_graphs([player, question]) == {question.id: graph}
    assert find_graphs([player, other]) == {}
    assert find_graphs([player, code_cell("for a in ():\n    pass"), question]) == {}
    assert find_graphs([question, prose_cell("<details>No.</details>\n\n## Two"), player]) == {}
    notebook = nbformat.v4.new_notebook(cells=[prose_cell("# Lesson"), question])
    slides = make_slides(notebook, graphs={question.id: "<b>"})
    assert [output.data for cell in slides.cells for output in cell.get("outputs", [])] == [{"text/html": "<b>"}]


def test_no_heading_of_slides_or_notes_has_the_mark_of_a_link() -> None:
    notebook = nbformat.v4.new_notebook(cells=[prose_cell("# Lesson"), prose_cell(f"## One\n\n{LONG_PROSE}")])
    page = export_slides(make_slides(notebook), "en")
    assert "<h2" in page and "¶" not in page
