"""Slides made from a notebook: questions, code and players are shown, and prose goes into the speaker notes."""

import base64
from pathlib import Path
from typing import Any

import nbformat
import pytest

from hookviz.player.compression import pack, unpack
from tools.slide_cells import MAX_HEIGHT, MAX_HEIGHT_BELOW_HEADING, MAX_WORDS, make_slides
from tools.slides import STATE, embed_drawing, enlarge_output, main

LONG_PROSE = "It is a long story. " * 20
PLAYER = f'<div class="hv-output"><script class="hv-state">{pack({"steps": 3})}</script></div>'


def prose_cell(source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source)


def code_cell(source: str, **output: str) -> Any:
    data = {key.replace("_", "/", 1): value for key, value in output.items()}
    outputs = [nbformat.v4.new_output("display_data", data=data)] if data else []
    return nbformat.v4.new_code_cell(source, outputs=outputs)


def slides_of(*cells: Any) -> list[list[Any]]:
    """The cells of each slide of a notebook with these cells, without the title slide."""
    notebook = make_slides(
        nbformat.v4.new_notebook(cells=[prose_cell("# Lesson 09 · End\n\n**The question?**"), *cells])
    )
    slides: list[list[Any]] = []
    for cell in notebook.cells:
        if cell.metadata.slideshow.slide_type == "slide":
            slides.append([])
        slides[-1].append(cell)
    assert [cell.source for cell in slides[0][:2]] == ["# Lesson 09 · End", "**The question?**"]
    return slides[1:]


def shown_sources(slide: list[Any]) -> list[str]:
    return [cell.source for cell in slide if cell.metadata.slideshow.slide_type != "notes"]


def speaker_notes(slide: list[Any]) -> str:
    return "\n".join(cell.source for cell in slide if cell.metadata.slideshow.slide_type == "notes")


def test_heading_starts_a_slide_and_short_prose_is_shown_without_links() -> None:
    slides = slides_of(prose_cell("## One\n\nAs in [lesson 02](02.ipynb)."), prose_cell("## Two\n\nMore."))
    assert [shown_sources(slide) for slide in slides] == [["## One", "As in lesson 02."], ["## Two", "More."]]


def test_long_prose_is_shortened_on_the_slide_and_complete_in_the_notes() -> None:
    (slide,) = slides_of(prose_cell(f"## One\n\n{LONG_PROSE.strip()}\n\nAnd this."))
    start = shown_sources(slide)[1]
    assert LONG_PROSE.startswith(start) and start.endswith("story.") and 20 < len(start.split()) <= MAX_WORDS
    assert speaker_notes(slide) == f"{LONG_PROSE.strip()}\n\nAnd this."


def test_chosen_cells_alone_make_slides_and_the_others_are_notes() -> None:
    player = code_cell("trace", text_html=PLAYER)
    player.metadata["tags"] = ["slide"]
    slides = slides_of(prose_cell("## One\n\nA story."), code_cell("a = 1"), player, prose_cell("## Two\n\nThe end."))
    shown, notes = map(shown_sources, slides), [*map(speaker_notes, slides)]
    assert [*shown] == [["## One", "trace"], [""]]
    assert notes == ["## One\n\nA story.\n\n```python\na = 1\n```", "## Two\n\nThe end."]


def test_question_has_its_own_slide_before_the_code_that_answers_it() -> None:
    slides = slides_of(
        prose_cell("## One\n\nSo.\n\n**Predict.** What is a?"),
        code_cell('answer = None\ncheck("09.1", answer)'),
        code_cell("a"),
    )
    assert [shown_sources(slide) for slide in slides] == [
        ["## One", "So."],
        ["### Predict\n\nWhat is a?"],
        ["## One", "a"],
    ]


def test_question_directly_below_a_heading_shares_its_slide() -> None:
    slides = slides_of(prose_cell("## Exercises\n\n**09.1** Do it.\n\n**09.2** And this."))
    assert [shown_sources(slide) for slide in slides] == [
        ["## Exercises", "### Exercise 09.1\n\nDo it."],
        ["### Exercise 09.2\n\nAnd this."],
    ]


def test_player_has_its_own_slide_with_the_instructions_in_the_notes() -> None:
    slides = slides_of(
        prose_cell("## One"), code_cell("trace", text_html=PLAYER), prose_cell("**Step through it.** Press →.")
    )
    assert shown_sources(slides[0]) == ["## One", "trace"] and slides[0][1].outputs == []
    assert [cell.outputs[0].data["text/html"] for cell in slides[1] if cell.cell_type == "code"] == [PLAYER]
    assert speaker_notes(slides[1]) == "**Step through it.** Press →."


def test_code_that_only_asserts_goes_into_the_notes() -> None:
    (slide,) = slides_of(prose_cell("## One"), code_cell("a = 1\nassert a == 1"))
    assert shown_sources(slide) == ["## One"]
    assert speaker_notes(slide) == "```python\na = 1\nassert a == 1\n```"


def test_default_repr_of_an_object_is_not_shown() -> None:
    (slide,) = slides_of(
        prose_cell("## One"), code_cell("x.register_hook(f)", text_plain="<torch.utils.hooks.Handle at 0x7f01>")
    )
    assert [cell.outputs for cell in slide if cell.cell_type == "code"] == [[]]


def test_code_that_does_not_fit_continues_on_a_slide_with_the_same_heading() -> None:
    slides = slides_of(prose_cell("## One"), code_cell("a\n" * 9 + "a"), code_cell("b\n" * 9 + "b"))
    assert [shown_sources(slide)[0] for slide in slides] == ["## One", "## One"]
    assert [shown_sources(slide)[1][0] for slide in slides] == ["a", "b"]


def tags_below_headings(slides: list[list[Any]]) -> list[list[str]]:
    """The tags of each cell below a heading."""
    return [cell.metadata.tags for slide in slides for cell in slide[1:]]


def test_wide_or_long_code_has_a_smaller_font() -> None:
    assert tags_below_headings(slides_of(prose_cell("## One"), code_cell("a" * 78), code_cell("b" * 79))) == [
        [],
        ["small"],
    ]
    *_, fits = slides_of(prose_cell("## One"), code_cell("a\n" * 18))
    *_, long = slides_of(prose_cell("## One"), code_cell("a\n" * 19))
    assert [slide[-1].metadata.tags for slide in (fits, long)] == [[], ["small"]]


def test_fenced_code_is_kept_together_with_its_empty_lines() -> None:
    code_block = "```python\ndef f(x):\n    return x\n\nf(1)\n```"
    (slide,) = slides_of(prose_cell(f"## One\n\n{code_block}\nIt is **so**.\n\n{LONG_PROSE.strip()}"))
    assert (
        shown_sources(slide) == ["## One", code_block]
        and speaker_notes(slide) == f"It is **so**.\n\n{LONG_PROSE.strip()}"
    )


def test_fenced_code_takes_as_much_space_as_a_code_cell() -> None:
    code_block = "\n".join(["```python", *"aaaaaaaaa", "```"])
    slides = slides_of(prose_cell(f"## One\n\n{code_block}"), code_cell("\n".join("bbbbbbbbb")))
    assert [shown_sources(slide)[0] for slide in slides] == ["## One", "## One"]
    assert tags_below_headings(slides_of(prose_cell(f"## One\n\n```python\n{'a' * 79}\n```"))) == [["small"]]


def test_explanation_is_shown_up_to_a_sentence_that_introduces_a_list() -> None:
    (slide,) = slides_of(prose_cell("**Explain.** It is 4. (The rest is 5.) Two things are wrong:\n\n- one\n- two"))
    assert shown_sources(slide) == ["## Explain\n\nIt is 4. (The rest is 5.)"]
    assert speaker_notes(slide).endswith("- one\n- two")


def test_folded_explanation_has_a_slide_and_other_folded_text_goes_into_the_notes() -> None:
    folded = "<details>\n<summary><b>{}</b></summary>\n\n{}\n\n</details>"
    expected_block, explanation = (
        folded.format("What you should see", "It is 4."),
        folded.format("Explain", "Two and two."),
    )
    slides = slides_of(prose_cell(f"## One\n\nLook.\n\n{expected_block}\n\n{explanation}\n\nGo on."))
    assert [shown_sources(slide) for slide in slides] == [["## One", "Look."], ["## Explain\n\nTwo and two."]]
    assert [speaker_notes(slide) for slide in slides] == ["It is 4.", "**Explain.** Two and two.\n\nGo on."]


def test_hidden_check_shows_its_output_and_has_its_code_in_the_notes() -> None:
    check = code_cell("# A check\nassert a == 4\na", text_plain="4")
    check.metadata["jupyter"] = {"source_hidden": True}
    (slide,) = slides_of(prose_cell("## One"), check)
    assert [cell.source for cell in slide] == ["## One", "", "```python\n# A check\nassert a == 4\na\n```"]
    assert [output.data for output in slide[1].outputs] == [{"text/plain": "4"}]


def test_table_is_shown_and_the_prose_after_it_goes_into_the_notes() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    (slide,) = slides_of(prose_cell(f"## One\n\n{table}\n\n{LONG_PROSE.strip()}"))
    assert shown_sources(slide) == ["## One", table] and speaker_notes(slide) == LONG_PROSE.strip()


def test_course_map_is_left_out_of_slides_and_notes() -> None:
    line = "[The course](README.md): **01**&nbsp;·&nbsp;[02](02_b.ipynb)"
    notebook = make_slides(nbformat.v4.new_notebook(cells=[prose_cell(f"# Lesson 01 · A\n\nIt is short.\n\n{line}")]))
    assert "It is short" in str(notebook.cells) and "The course" not in str(notebook.cells)


def test_table_that_does_not_fit_continues_with_its_header() -> None:
    rows = [f"| {k} | b |" for k in range(30)]
    slides = slides_of(prose_cell("\n".join(["## One\n\n| a | b |", "|---|---|", *rows])))
    assert len(slides) > 1 and all(shown_sources(slide)[0] == "## One" for slide in slides)
    tables = [shown_sources(slide)[1].splitlines() for slide in slides]
    assert all(table[:2] == ["| a | b |", "|---|---|"] for table in tables)
    assert [row for table in tables for row in table[2:]] == rows


# -- enlarged outputs


def test_player_gets_larger_text() -> None:
    (state,) = STATE.findall(enlarge_output({"text/html": PLAYER, "image/svg+xml": "<svg>"})["text/html"])
    assert unpack(state) == {"steps": 3, "large": True}


def test_other_outputs_are_unchanged() -> None:
    data = {"text/html": "<table>", "text/plain": "a"}
    assert enlarge_output(data) == data


@pytest.mark.parametrize(
    ("width", "height", "size"),
    [
        (300, 100, (600, 200)),  # not blown up: letters of 26 pixels
        (380, 380, (MAX_HEIGHT_BELOW_HEADING, MAX_HEIGHT_BELOW_HEADING)),  # as high as there is room
        (690, 690, (MAX_HEIGHT, MAX_HEIGHT)),  # letters would be smaller than 18 pixels below a heading
    ],
)
def test_drawing_is_scaled_to_a_legible_text_size(width: int, height: int, size: tuple[int, int]) -> None:
    svg = f'<svg viewBox="0.00 0.00 {width}.00 {height}.00"><text font-size="13.00">a</text></svg>'
    image = embed_drawing(svg)
    assert image.endswith(f'width="{size[0]}" height="{size[1]}">')
    assert base64.b64encode(svg.encode()).decode() in image


def test_large_drawing_gets_a_whole_slide() -> None:
    slides = slides_of(prose_cell("## One"), code_cell("draw()", text_html='<img width="9" height="690">'))
    assert shown_sources(slides[1]) == [""] and slides[1][0].metadata.tags == ["alone"]


def test_unknown_lesson_number_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["77"]) == 1
    assert capsys.readouterr().err.startswith("There is no lesson with one of these numbers: 77. There are 01, 02")
