"""Make the cells of slides from a notebook: its chosen cells show, and all other text goes to the speaker's notes."""

import ast
import copy
import re
from collections.abc import Mapping
from typing import Any

import nbformat

from tools.lesson_pages import MAP, PREDICT, WIDGET, is_check, is_open, is_slide, markdown_cell
from tools.predictions import SENTENCE_END, drop_instructions
from tools.translation.translated import translated

MAX_WORDS = 45
"""A slide shows at most this many words of one paragraph."""
SMALL_IF_WIDER, SMALL_IF_LONGER = 78, 18
"""Characters and lines: wider or longer code is set in a smaller font."""
MAX_LINES, LINES_OF_A_PICTURE = 16, 7
"""A slide shows at most this many lines of several cells of code; a picture or a question takes the room of so many."""
LINES_OF_A_PLOT = 13
"""The letters of a plot are legible only if it has most of the slide."""
SHORT = 3
"""Code of so few lines that makes a player has no slide of its own: the player shows its lines."""
BLOCK = re.compile(r"```.*?^```|\S(?:(?!\n\n|\n```).)*", re.DOTALL | re.MULTILINE)
"""A paragraph, a table, a list, or code between fences, which may contain empty lines."""
QUESTION = re.compile(r"\*\*(?:(Predict|预测)[.。]|(\d\d\.\d))\*\* ")
LIST = re.compile(r"(?:[-*]|\d+\.) ")
ANSWER = re.compile(r"<details>(.*?</details>)", re.DOTALL)
"""A fold of a lesson: the answer to the question before it."""
SIZE = re.compile(r' width="(\d+)" height="(\d+)"')
INSTRUCTION = re.compile(r"\*\*(?:Run|Step|运行|单步)")
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
HAN = re.compile(r"[\u3400-\u9fff]")
WORDS_PER_HAN = 0.6
"""English says with one word what Chinese says with some 1.7 characters."""


def make_slides(notebook: Any, language: str = "en", graphs: Mapping[str, str] | None = None) -> Any:
    """Make a notebook with the cells of all slides, with the metadata that nbconvert needs.

    The first cell and those with the tag ``slide`` make slides; the others go to the speaker's notes.

    Args:
        notebook: the notebook with its outputs.
        language: the language of the notebook.
        graphs: id of a cell → HTML of the graph that its prediction is about.
    """
    builder = SlideBuilder(language)
    for cell in notebook.cells:
        if is_check(cell):
            continue
        if cell is not notebook.cells[0] and not is_slide(cell):
            builder.add_note(cell)
        elif cell.cell_type == "markdown":
            builder.add_prose(cell.source, (graphs or {}).get(cell.get("id", ""), ""))
        else:
            builder.add_code(cell)
    builder.flush_notes()
    slides = nbformat.v4.new_notebook(metadata=copy.deepcopy(notebook.metadata))  # type: ignore[no-untyped-call]
    slides.metadata["title"] = notebook.cells[0].source.partition("\n")[0].removeprefix("# ")
    slides.metadata.pop("widgets", None)
    slides.cells = builder.cells
    return slides


class SlideBuilder:
    """Lays out cells on slides: a heading with the first sentences of prose, then code with its output."""

    def __init__(self, language: str) -> None:
        self._language = language
        self.cells: list[Any] = []
        self._heading = ""
        self._notes: list[str] = []
        """Prose for the speaker's notes of this slide, or of the code that follows."""
        self._has_only_heading = False
        self._has_lead_in = False
        """Whether a paragraph below the heading shows whole, so that a list may follow it."""
        self._after_question: int | None = None
        """The index behind the last question, whose answer is still to come."""
        self._has_room = False
        """Whether the slide has nothing but a heading and prose."""
        self._lines_left = 0
        """How many lines of code may be added below the code or the question on the slide."""
        self._is_asking = False
        """Whether the slide has a question, whose answer is still to come."""

    def add_note(self, cell: Any) -> None:
        """Add a whole cell to the notes of the last slide; its heading is that of the slides to come."""
        if cell.cell_type != "markdown":
            self._notes.append(f"```python\n{cell.source}\n```")
            return
        headings = re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE)
        if headings:
            self._heading = f"## {headings[-1]}"
            self._close_slide()
        prose = ANSWER.sub(self._note_answer, MAP.sub("", cell.source)).strip()
        if PREDICT.search(prose):
            self._after_question = None
        if prose:
            self._notes.append(prose)

    def _note_answer(self, answer: re.Match[str]) -> str:
        """Put an answer, unfolded, into the notes of the question's slide; returns what stays where it is."""
        unfolded = f"<details open>{answer[1]}"
        if self._after_question is None:
            return unfolded
        note = _markdown_cell(unfolded)
        note.metadata["slideshow"] = {"slide_type": "notes"}
        self.cells.insert(self._after_question, note)
        self._after_question = None
        return ""

    def add_prose(self, source: str, graph: str = "") -> None:
        """Add a cell of prose, paragraph by paragraph; ``graph`` is what its question is about."""
        for block in BLOCK.findall(MAP.sub("", source)):
            question = QUESTION.match(block)
            if block.startswith("#"):
                self._begin_section(block)
            elif question:
                self._add_question(question, block[question.end() :], graph)
            elif block.startswith(("|", "```")):
                self._place(_markdown_cell(block, *_size_tags(block)))
            elif LIST.match(block) and (self._has_only_heading or self._has_lead_in):
                self._add(_markdown_cell(block), "-")
            else:
                self._add_paragraph(block)

    def add_code(self, cell: Any) -> None:
        """Add a cell of code with its outputs. Code that only asserts, or that is hidden, goes to the notes.

        A player has a slide of its own, and its code one before it: that of the question, if there is room.
        """
        outputs = [output for output in cell.outputs if _is_worth_showing(output)]
        players = [output for output in outputs if _is_player(output)]
        texts = [output for output in outputs if not _is_picture(output)]
        drawings = [output for output in outputs if output not in texts and output not in players]
        is_shown = is_open(cell) and bool(outputs or not isinstance(ast.parse(cell.source).body[-1], ast.Assert))
        if is_shown:
            is_shown = self._add_source(cell.source, texts, drawings, players)
        elif texts:
            self._place(_code_cell("", *texts))
        for output in drawings:
            self._add_drawing(_code_cell("", output))
        for output in players:
            self.flush_notes()
            self._add(_code_cell("", output), "slide")
        if not is_shown:
            self._notes.append(f"```python\n{cell.source}\n```")

    def _add_source(self, source: str, texts: list[Any], drawings: list[Any], players: list[Any]) -> bool:
        """Show code with its texts: below the code or the question before it if there is room, or on a new slide.

        Short code of a player for which there is no room is not shown; returns whether it is.
        """
        count = len(source.splitlines())
        is_answer = self._is_asking and bool(texts or drawings)
        left, is_asking = self._lines_left - count, self._is_asking
        if is_answer or left < (LINES_OF_A_PICTURE if drawings else 0):
            if players and count <= SHORT:
                return False
            self._place(_code_cell(source, *texts))
            left, is_asking = MAX_LINES - count, False
        else:
            self._add(_code_cell(source, *texts), "-")
            self.flush_notes()
        if not texts:
            self._lines_left, self._is_asking = left, is_asking
        return True

    def _add_drawing(self, cell: Any) -> None:
        """Put a drawing below its code, or beside it if it is tall; without room, on a slide with the same heading."""
        html = cell.outputs[0].get("data", {}).get("text/html", "")
        is_plot = '<p class="plot">' in html
        if self._lines_left < (LINES_OF_A_PLOT if is_plot else LINES_OF_A_PICTURE):
            self._place(cell)
        else:
            size = SIZE.search(html)
            cell.metadata["tags"] = ["graph"] if size and int(size[2]) > int(size[1]) else []
            self._add(cell, "-")
            self.flush_notes()

    def _begin_section(self, heading: str) -> None:
        first = not self.cells
        self.flush_notes()
        self._add(_markdown_cell(heading, *["first"] * first), "slide")
        self._heading = f"## {heading.lstrip('# ')}"
        self._has_only_heading, self._has_room = True, not first

    def _add_question(self, question: re.Match[str], text: str, graph: str) -> None:
        """Put a question below the heading and the prose of its section, or below short code; or on its own slide."""
        exercise = translated("Exercise {number}", self._language)
        title = question[1] or exercise.format(number=question[2])
        cell = _markdown_cell(f"### {title}\n\n{drop_instructions(text)}", "asks")
        left = MAX_LINES if self._has_only_heading or self._has_room else self._lines_left
        joins = left >= LINES_OF_A_PICTURE and not self._is_asking
        if not joins:
            self.flush_notes()
        self._add(cell, "-" if joins else "slide")
        if graph:
            self._add(_graph_cell(graph), "-")
        self._after_question = len(self.cells)
        self._lines_left, self._is_asking = (left if joins else MAX_LINES) - LINES_OF_A_PICTURE, True

    def _add_paragraph(self, block: str) -> None:
        """Show the first sentences of the prose below a heading; the rest goes to the notes."""
        is_shown = self._has_only_heading and not INSTRUCTION.match(block)
        shown = drop_instructions(_first_sentences(block)) if is_shown else ""
        is_whole = shown == " ".join(block.split())
        if shown:
            has_room = self._has_room
            self._add(_markdown_cell(shown), "-")
            self._has_room, self._has_lead_in = has_room, is_whole
        if not is_whole:
            self._notes.append(block)

    def _place(self, cell: Any) -> None:
        """Put code, a table or a picture below the heading on this slide, or on a new one with the same heading."""
        if not self._has_room:
            self._add(_markdown_cell(self._heading), "slide")
        self._add(cell, "-")
        self.flush_notes()

    def flush_notes(self) -> None:
        """Add the collected notes to this slide."""
        if self._notes:
            self._add(_markdown_cell("\n\n".join(self._notes)), "notes")
            self._notes = []

    def _add(self, cell: Any, kind: str) -> None:
        cell.metadata["slideshow"] = {"slide_type": kind}
        self.cells.append(cell)
        if kind != "notes":
            self._close_slide()

    def _close_slide(self) -> None:
        """Let nothing more be added to this slide, until somebody says that there is room."""
        self._has_only_heading = self._has_lead_in = self._has_room = self._is_asking = False
        self._lines_left = 0


def _markdown_cell(source: str, *tags: str) -> Any:
    cell = markdown_cell(LINK.sub(r"\1", source))
    cell.metadata["tags"] = list(tags)
    return cell


def _code_cell(source: str, *outputs: Any) -> Any:
    """Make a cell of code with outputs; without ``source``, only the outputs show."""
    cell = nbformat.v4.new_code_cell(source, outputs=[copy.deepcopy(output) for output in outputs])  # type: ignore[no-untyped-call]
    cell.metadata["tags"] = _size_tags(source)
    cell.metadata["transient"] = {"remove_source": not source}
    return cell


def _graph_cell(html: str) -> Any:
    output = nbformat.v4.new_output("display_data", data={"text/html": html})  # type: ignore[no-untyped-call]
    cell = _code_cell("", output)
    cell.metadata["tags"] = ["graph"]
    return cell


def _size_tags(source: str) -> list[str]:
    """The tag ``small`` for long or wide code, else no tag."""
    lines = [] if source.startswith("|") else source.splitlines()
    return ["small"] if len(lines) > SMALL_IF_LONGER or any(len(line) > SMALL_IF_WIDER for line in lines) else []


def _is_player(output: Any) -> bool:
    return "hv-state" in output.get("data", {}).get("text/html", "")


def _is_picture(output: Any) -> bool:
    data = output.get("data", {})
    return _is_player(output) or "<img " in data.get("text/html", "") or "image/png" in data


def _is_worth_showing(output: Any) -> bool:
    """Whether an output is not a widget, which needs its kernel, or the default repr of an object, such as a handle."""
    data = output.get("data", {})
    return WIDGET not in data and not re.fullmatch(r"<[\w.]+ at 0x[0-9a-f]+>", data.get("text/plain", ""))


def _first_sentences(text: str) -> str:
    """The first sentences of a text, up to ``MAX_WORDS`` words but at least one sentence."""
    ends = [*(match.start() for match in SENTENCE_END.finditer(text) if match.start() < len(text)), len(text)]
    shown = [text[:end] for end in ends]
    # A sentence that ends in a colon introduces something that is not shown.
    while len(shown) > 1 and (_count_words(shown[-1]) > MAX_WORDS or shown[-1].endswith((":", "："))):
        del shown[-1]
    return shown[-1]


def _count_words(text: str) -> float:
    return len(HAN.sub(" ", text).split()) + WORDS_PER_HAN * len(HAN.findall(text))
