"""A notebook cut into slides: what is asked, code and players are shown, and the prose is said."""

import base64
from pathlib import Path
from typing import Any

import nbformat
import pytest

from hookviz.player.compression import pack, unpack
from tools.slide_cells import MAX_HEIGHT, MAX_HEIGHT_BELOW_HEADING, MAX_WORDS, make_slides
from tools.slides import STATE, embed_drawing, enlarge_output, main

LONG = "It is a long story. " * 20
PLAYER = f'<div class="hv-output"><script class="hv-state">{pack({"steps": 3})}</script></div>'


def prose(source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source)


def code(source: str, **shown: str) -> Any:
    data = {key.replace("_", "/", 1): value for key, value in shown.items()}
    outputs = [nbformat.v4.new_output("display_data", data=data)] if data else []
    return nbformat.v4.new_code_cell(source, outputs=outputs)


def cut(*cells: Any) -> list[list[Any]]:
    """The cells of each slide after the first, which has the title."""
    notebook = make_slides(nbformat.v4.new_notebook(cells=[prose("# Lesson 09 · End\n\n**The question?**"), *cells]))
    slides: list[list[Any]] = []
    for cell in notebook.cells:
        if cell.metadata.slideshow.slide_type == "slide":
            slides.append([])
        slides[-1].append(cell)
    assert [cell.source for cell in slides[0][:2]] == ["# Lesson 09 · End", "**The question?**"]
    return slides[1:]


def shown(slide: list[Any]) -> list[str]:
    return [cell.source for cell in slide if cell.metadata.slideshow.slide_type != "notes"]


def said(slide: list[Any]) -> str:
    return "\n".join(cell.source for cell in slide if cell.metadata.slideshow.slide_type == "notes")


def test_a_heading_begins_a_slide_and_short_prose_is_shown_without_its_links() -> None:
    slides = cut(prose("## One\n\nAs in [lesson 02](02.ipynb)."), prose("## Two\n\nMore."))
    assert [shown(slide) for slide in slides] == [["## One", "As in lesson 02."], ["## Two", "More."]]


def test_of_long_prose_the_beginning_is_shown_and_all_is_said() -> None:
    (slide,) = cut(prose(f"## One\n\n{LONG.strip()}\n\nAnd this."))
    start = shown(slide)[1]
    assert LONG.startswith(start) and start.endswith("story.") and 20 < len(start.split()) <= MAX_WORDS
    assert said(slide) == f"{LONG.strip()}\n\nAnd this."


def test_a_question_has_a_slide_and_the_code_that_answers_it_comes_on_the_next() -> None:
    slides = cut(
        prose("## One\n\nSo.\n\n**Predict.** What is a?"), code("answer = None\nhv.check('1', answer)"), code("a")
    )
    assert [shown(slide) for slide in slides] == [["## One", "So."], ["### Predict\n\nWhat is a?"], ["## One", "a"]]


def test_a_question_right_below_its_heading_shares_its_slide() -> None:
    slides = cut(prose("## Exercises\n\n**09.1** Do it.\n\n**09.2** And this."))
    assert [shown(slide) for slide in slides] == [
        ["## Exercises", "### Exercise 09.1\n\nDo it."],
        ["### Exercise 09.2\n\nAnd this."],
    ]


def test_a_player_has_a_slide_for_itself_and_what_one_does_with_it_is_said() -> None:
    slides = cut(prose("## One"), code("trace", text_html=PLAYER), prose("**Step through it.** Press →."))
    assert shown(slides[0]) == ["## One", "trace"] and slides[0][1].outputs == []
    assert [cell.outputs[0].data["text/html"] for cell in slides[1] if cell.cell_type == "code"] == [PLAYER]
    assert said(slides[1]) == "**Step through it.** Press →."


def test_what_only_asserts_is_said() -> None:
    (slide,) = cut(prose("## One"), code("a = 1\nassert a == 1"))
    assert shown(slide) == ["## One"]
    assert said(slide) == "```python\na = 1\nassert a == 1\n```"


def test_the_bare_address_of_an_object_is_not_shown() -> None:
    (slide,) = cut(prose("## One"), code("x.register_hook(f)", text_plain="<torch.utils.hooks.Handle at 0x7f01>"))
    assert [cell.outputs for cell in slide if cell.cell_type == "code"] == [[]]


def test_code_that_would_not_fit_goes_on_a_slide_with_the_same_heading() -> None:
    slides = cut(prose("## One"), code("a\n" * 9 + "a"), code("b\n" * 9 + "b"))
    assert [shown(slide)[0] for slide in slides] == ["## One", "## One"]
    assert [shown(slide)[1][0] for slide in slides] == ["a", "b"]


def tags(slides: list[list[Any]]) -> list[list[str]]:
    """Of what is shown below the headings."""
    return [cell.metadata.tags for slide in slides for cell in slide[1:]]


def test_code_that_is_wide_or_long_is_set_smaller() -> None:
    assert tags(cut(prose("## One"), code("a" * 78), code("b" * 79))) == [[], ["small"]]
    *_, fits = cut(prose("## One"), code("a\n" * 18))
    *_, long = cut(prose("## One"), code("a\n" * 19))
    assert [slide[-1].metadata.tags for slide in (fits, long)] == [[], ["small"]]


def test_code_between_fences_is_shown_as_one_with_its_empty_lines() -> None:
    fenced = "```python\ndef f(x):\n    return x\n\nf(1)\n```"
    (slide,) = cut(prose(f"## One\n\n{fenced}\nIt is **so**.\n\n{LONG.strip()}"))
    assert shown(slide) == ["## One", fenced] and said(slide) == f"It is **so**.\n\n{LONG.strip()}"


def test_code_between_fences_takes_as_much_room_as_a_cell_of_code() -> None:
    fenced = "\n".join(["```python", *"aaaaaaaaa", "```"])
    slides = cut(prose(f"## One\n\n{fenced}"), code("\n".join("bbbbbbbbb")))
    assert [shown(slide)[0] for slide in slides] == ["## One", "## One"]
    assert tags(cut(prose(f"## One\n\n```python\n{'a' * 79}\n```"))) == [["small"]]


def test_an_explanation_is_shown_up_to_where_it_would_introduce_something() -> None:
    (slide,) = cut(prose("**Explain.** It is 4. (The rest is 5.) Two things are wrong:\n\n- one\n- two"))
    assert shown(slide) == ["## Explain\n\nIt is 4. (The rest is 5.)"]
    assert said(slide).endswith("- one\n- two")


def test_an_explanation_that_is_folded_has_a_slide_and_what_else_is_folded_is_said() -> None:
    folded = "<details>\n<summary><b>{}</b></summary>\n\n{}\n\n</details>"
    seen, explained = folded.format("What you should see", "It is 4."), folded.format("Explain", "Two and two.")
    slides = cut(prose(f"## One\n\nLook.\n\n{seen}\n\n{explained}\n\nGo on."))
    assert [shown(slide) for slide in slides] == [["## One", "Look."], ["## Explain\n\nTwo and two."]]
    assert [said(slide) for slide in slides] == ["It is 4.", "**Explain.** Two and two.\n\nGo on."]


def test_of_a_closed_check_the_code_is_said_and_what_it_shows_is_shown() -> None:
    check = code("# A check\nassert a == 4\na", text_plain="4")
    check.metadata["jupyter"] = {"source_hidden": True}
    (slide,) = cut(prose("## One"), check)
    assert [cell.source for cell in slide] == ["## One", "", "```python\n# A check\nassert a == 4\na\n```"]
    assert [output.data for output in slide[1].outputs] == [{"text/plain": "4"}]


def test_a_table_is_shown_and_nothing_of_a_lesson_is_lost() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    (slide,) = cut(prose(f"## One\n\n{table}\n\n{LONG.strip()}"))
    assert shown(slide) == ["## One", table] and said(slide) == LONG.strip()


def test_the_map_of_the_course_is_neither_shown_nor_said() -> None:
    line = "[The course](README.md): **01**&nbsp;·&nbsp;[02](02_b.ipynb)"
    notebook = make_slides(nbformat.v4.new_notebook(cells=[prose(f"# Lesson 01 · A\n\nIt is short.\n\n{line}")]))
    assert "It is short" in str(notebook.cells) and "The course" not in str(notebook.cells)


def test_a_table_that_would_not_fit_goes_on_with_its_head() -> None:
    rows = [f"| {k} | b |" for k in range(30)]
    slides = cut(prose("\n".join(["## One\n\n| a | b |", "|---|---|", *rows])))
    assert len(slides) > 1 and all(shown(slide)[0] == "## One" for slide in slides)
    tables = [shown(slide)[1].splitlines() for slide in slides]
    assert all(table[:2] == ["| a | b |", "|---|---|"] for table in tables)
    assert [row for table in tables for row in table[2:]] == rows


# -- what is shown is made larger


def test_a_player_is_shown_with_larger_text() -> None:
    (found,) = STATE.findall(enlarge_output({"text/html": PLAYER, "image/svg+xml": "<svg>"})["text/html"])
    assert unpack(found) == {"steps": 3, "large": True}


def test_other_outputs_stay_as_they_are() -> None:
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
def test_a_drawing_is_as_large_as_its_letters_need(width: int, height: int, size: tuple[int, int]) -> None:
    svg = f'<svg viewBox="0.00 0.00 {width}.00 {height}.00"><text font-size="13.00">a</text></svg>'
    made = embed_drawing(svg)
    assert made.endswith(f'width="{size[0]}" height="{size[1]}">')
    assert base64.b64encode(svg.encode()).decode() in made


def test_a_drawing_that_needs_the_whole_slide_gets_it() -> None:
    slides = cut(prose("## One"), code("draw()", text_html='<img width="9" height="690">'))
    assert shown(slides[1]) == [""] and slides[1][0].metadata.tags == ["alone"]


def test_a_lesson_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["77"]) == 1
    assert capsys.readouterr().err.startswith("There is no lesson with one of these numbers: 77. There are 01, 02")
