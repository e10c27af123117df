"""Slides made from a notebook: questions, code and players are shown, and prose goes into the speaker notes."""

from typing import Any

import nbformat

from hookviz.player.compression import pack
from tools.predictions import erase_results, find_graphs
from tools.slide_cells import make_slides

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


def test_a_question_shows_the_graph_without_the_answer() -> None:
    boxes = '<g><rect class="hv-box"/><text class="hv-name">a</text></g>' * 2
    svg = f'<svg class="hv-svg">{boxes}<text x="1" class="hv-grad" id="g">gradient 2</text></svg>'
    question, other = (prose_cell(f"**Predict.** `{name}.grad`?") for name in "ab")
    player, graph = code_cell("trace"), erase_results(svg)
    player.outputs = [nbformat.v4.new_output("display_data", data={"image/svg+xml": svg})]
    assert "hv-name" in graph and "gradient 2" not in graph
    assert find_graphs([question, player]) == find_graphs([player, question]) == {question.id: graph}
    assert find_graphs([player, other]) == {}
    notebook = nbformat.v4.new_notebook(cells=[prose_cell("# Lesson"), question])
    slides = make_slides(notebook, graphs={question.id: "<b>"})
    assert [output.data for cell in slides.cells for output in cell.get("outputs", [])] == [{"text/html": "<b>"}]
