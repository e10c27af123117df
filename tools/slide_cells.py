"""Make the cells of slides from a notebook: questions, code and players show, prose goes to the speaker's notes."""

import ast
import copy
import math
import re
from typing import Any

import nbformat

from tools.lesson_pages import EXPLAIN, FOLDED, MAP, WIDGET, is_check, is_open
from tools.translation.translated import translated

MAX_HEIGHT_BELOW_HEADING, MAX_HEIGHT = 550, 690
"""The largest height of a drawing in pixels: below a heading, and on a slide without one."""
MAX_WORDS = 45
"""A slide shows at most this many words of one paragraph."""
SMALL_IF_WIDER, SMALL_IF_LONGER = 78, 18
"""Characters and lines: wider or longer code is set in a smaller font."""
SLIDE_LINES, PROSE_LINES, TABLE_LINES = 18, 5, 12
"""Lines of code that fit below a heading; lines of code as high as one paragraph; rows of a table that fit."""
TABLE_CELL_WIDTH, OUTPUT_WIDTH = 36, 98
"""Characters in a line of a table cell, and in a line of printed output."""
BLOCK = re.compile(r"```.*?^```|\S(?:(?!\n\n|\n```).)*", re.DOTALL | re.MULTILINE)
"""A paragraph, a table, a list, or code between fences, which may contain empty lines."""
QUESTION = re.compile(r"\*\*(?:(Predict|预测)[.。]|(\d\d\.\d))\*\* ")
EXPLANATION = re.compile(r"\*\*(?P<title>Explain|解释)[.。]\*\* ")
INSTRUCTION = re.compile(r"\*\*(?:Run|Step|运行|单步)")
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\)))(?=\s+[A-Z`(*])|(?<=[。！？])(?![”）])|(?<=[。！？][”）])")
HAN = re.compile(r"[\u3400-\u9fff]")
WORDS_PER_HAN = 0.6
"""English says with one word what Chinese says with some 1.7 characters."""


def make_slides(notebook: Any, language: str = "en") -> Any:
    """Make a notebook with the cells of all slides, with the metadata that nbconvert needs.

    If cells have the tag ``slide``, they and the first cell alone make slides; the others go to the speaker's notes.
    """
    builder = SlideBuilder(language)
    has_chosen_cells = any(map(_is_chosen, notebook.cells))
    for cell in notebook.cells:
        if is_check(cell):
            continue
        if has_chosen_cells and cell is not notebook.cells[0] and not _is_chosen(cell):
            builder.add_note(cell)
        elif cell.cell_type == "markdown":
            builder.add_prose(cell.source)
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

    def __init__(self, language: str = "en") -> None:
        self._language = language
        self.cells: list[Any] = []
        self._heading = ""
        self._notes: list[str] = []
        """Prose for the speaker's notes of this slide, or of the code that follows."""
        self._has_only_heading = False
        self._lines_left = 0
        """Lines of code that still fit on the slide."""

    def add_note(self, cell: Any) -> None:
        """Add a whole cell to the notes of the last slide; its heading is that of the slides to come."""
        is_prose = cell.cell_type == "markdown"
        headings = re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE) if is_prose else []
        if headings:
            self._heading, self._lines_left = f"## {headings[-1]}", 0
        self._notes.append(MAP.sub("", cell.source) if is_prose else _as_fenced_code(cell.source))

    def add_prose(self, source: str) -> None:
        """Add a cell of prose. A folded explanation gets its own slide; other folded text goes to the notes."""
        end = 0
        for folded in FOLDED.finditer(source):
            self._lay_out(source[end : folded.start()])
            explain = EXPLAIN.search(folded[0])
            if explain:
                self._add_explanation(explain["title"], folded["text"])
            else:
                self._notes.append(folded["text"])
            end = folded.end()
        self._lay_out(source[end:])

    def add_code(self, cell: Any) -> None:
        """Add a cell of code with its outputs. Code that only asserts, or that is hidden, goes to the notes."""
        outputs = [output for output in cell.outputs if _is_worth_showing(output)]
        texts = [output for output in outputs if not _is_picture(output)]
        if not is_open(cell) or (not outputs and isinstance(ast.parse(cell.source).body[-1], ast.Assert)):
            self._notes.append(_as_fenced_code(cell.source))
            if texts:
                self._place(_code_cell("", *texts))
        else:
            self._place(_code_cell(cell.source, *texts))
        for output in outputs:
            if output not in texts:
                self._place_picture(output)

    def _lay_out(self, prose: str) -> None:
        """Lay out prose without folded parts, paragraph by paragraph."""
        for block in BLOCK.findall(MAP.sub("", prose)):
            question, explanation = QUESTION.match(block), EXPLANATION.match(block)
            if block.startswith("#"):
                self._begin_section(block)
            elif question:
                exercise = translated("Exercise {number}", self._language)
                title = question[1] or exercise.format(number=question[2])
                self._add_question(f"### {title}\n\n{block[question.end() :]}")
            elif explanation:
                self._add_explanation(explanation["title"], block[explanation.end() :])
            elif block.startswith("|"):
                for page in _split_table(block):
                    self._place(_markdown_cell(page))
                    self._lines_left = 0
            elif block.startswith("```"):
                self._place(_markdown_cell(block, *_size_tags(block)))
            else:
                self._add_paragraph(block)

    def _begin_section(self, heading: str) -> None:
        first = not self.cells
        self._begin_slide(_markdown_cell(heading, *["first"] * first))
        self._heading = f"## {heading.lstrip('# ')}"
        self._has_only_heading, self._lines_left = True, 0 if first else SLIDE_LINES

    def _add_question(self, question: str) -> None:
        """Put a question on its own slide, below the heading of its section if there is nothing else yet."""
        if not self._has_only_heading:
            self.flush_notes()
        self._add(_markdown_cell(question, "asks"), "-" if self._has_only_heading else "slide")
        self._lines_left = 0

    def _add_explanation(self, title: str, prose: str) -> None:
        self._begin_slide(_markdown_cell(f"## {title}\n\n{_first_sentences(prose)}", "explains"))
        self._notes.append(f"**{title}{'。' if self._language == 'zh' else '.'}** {prose}")
        self._lines_left = 0

    def _add_paragraph(self, block: str) -> None:
        """Show the first sentences of the prose below a heading; the rest goes to the notes."""
        shown = _first_sentences(block) if self._has_only_heading and not INSTRUCTION.match(block) else ""
        if shown:
            self._add(_markdown_cell(shown))
            self._lines_left -= PROSE_LINES
        if shown != block:
            self._notes.append(block)

    def _place(self, cell: Any) -> None:
        """Put code, a table or a picture on this slide, or on a new one with the same heading."""
        lines = _count_lines(cell)
        if self._lines_left < lines and not (self._has_only_heading and self._lines_left):
            self._add(_markdown_cell(self._heading), "slide")
            self._lines_left = SLIDE_LINES
        self._add(cell)
        self._lines_left -= lines
        self.flush_notes()

    def _place_picture(self, output: Any) -> None:
        """Put a picture on its own slide; a player or a large drawing has no heading above it."""
        cell = _code_cell("", output)
        self._lines_left = 0
        if _is_player(output) or _height(output) > MAX_HEIGHT_BELOW_HEADING:
            cell.metadata["tags"] = ["alone"]
            self._begin_slide(cell)
        else:
            self._place(cell)
            self._lines_left = 0

    def _begin_slide(self, cell: Any) -> None:
        """Begin a slide; the notes collected so far belong to the one before."""
        self.flush_notes()
        self._add(cell, "slide")

    def flush_notes(self) -> None:
        """Add the collected notes to this slide."""
        if self._notes:
            self._add(_markdown_cell("\n\n".join(self._notes)), "notes")
            self._notes = []

    def _add(self, cell: Any, kind: str = "-") -> None:
        cell.metadata["slideshow"] = {"slide_type": kind}
        self.cells.append(cell)
        self._has_only_heading = False


def _is_chosen(cell: Any) -> bool:
    return "slide" in cell.metadata.get("tags", [])


def _as_fenced_code(source: str) -> str:
    return f"```python\n{source}\n```"


def _markdown_cell(source: str, *tags: str) -> Any:
    cell = nbformat.v4.new_markdown_cell(LINK.sub(r"\1", source))  # type: ignore[no-untyped-call]
    cell.metadata["tags"] = list(tags)
    return cell


def _code_cell(source: str, *outputs: Any) -> Any:
    """Make a cell of code with outputs; without ``source``, only the outputs show."""
    cell = nbformat.v4.new_code_cell(source, outputs=[copy.deepcopy(output) for output in outputs])  # type: ignore[no-untyped-call]
    cell.metadata["tags"] = _size_tags(source)
    cell.metadata["transient"] = {"remove_source": not source}
    return cell


def _size_tags(source: str) -> list[str]:
    """The tag ``small`` for long or wide code, else no tag."""
    lines = source.splitlines()
    return ["small"] if len(lines) > SMALL_IF_LONGER or any(len(line) > SMALL_IF_WIDER for line in lines) else []


def _count_lines(cell: Any) -> int:
    """The number of lines that a cell takes on a slide, with its output."""
    count = 2 + len(cell.source.splitlines()) if cell.source else 0
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        text = data.get("text/plain", output.get("text", ""))
        table = math.ceil(1.3 * data.get("text/html", "").count("<tr"))
        count += 1 + (table or sum(1 + len(line) // OUTPUT_WIDTH for line in text.splitlines()))
    return count


def _is_player(output: Any) -> bool:
    return "hv-state" in output.get("data", {}).get("text/html", "")


def _is_picture(output: Any) -> bool:
    data = output.get("data", {})
    return _is_player(output) or "<img " in data.get("text/html", "") or "image/png" in data


def _height(output: Any) -> int:
    """The height of a drawing in pixels; 0 for other pictures, which the style sheet limits."""
    drawing = re.search(r'<img .*height="(\d+)"', output.get("data", {}).get("text/html", ""))
    return int(drawing[1]) if drawing else 0


def _is_worth_showing(output: Any) -> bool:
    """Whether an output is not a widget, which needs its kernel, or the default repr of an object, such as a handle."""
    data = output.get("data", {})
    return WIDGET not in data and not re.fullmatch(r"<[\w.]+ at 0x[0-9a-f]+>", data.get("text/plain", ""))


def _split_table(table: str) -> list[str]:
    """Split a table into tables that fit on a slide each, all with its head."""
    head, rows = table.splitlines()[:2], table.splitlines()[2:]
    pages, room = [head], TABLE_LINES
    for row in rows:
        height = max(math.ceil(_count_columns(cell) / TABLE_CELL_WIDTH) for cell in row.split("|"))
        if height > room:
            pages, room = [*pages, head], TABLE_LINES
        pages[-1] = [*pages[-1], row]
        room -= height
    return ["\n".join(page) for page in pages]


def _first_sentences(text: str) -> str:
    """The first sentences of a text, up to ``MAX_WORDS`` words but at least one sentence."""
    ends = [*(match.start() for match in SENTENCE_END.finditer(text) if match.start() < len(text)), len(text)]
    shown = [text[:end] for end in ends]
    while len(shown) > 1 and _count_words(shown[-1]) > MAX_WORDS:
        del shown[-1]
    # A sentence that ends in a colon introduces something that is not shown.
    while len(shown) > 1 and shown[-1].endswith((":", "：")):
        del shown[-1]
    return shown[-1]


def _count_words(text: str) -> float:
    return len(HAN.sub(" ", text).split()) + WORDS_PER_HAN * len(HAN.findall(text))


def _count_columns(text: str) -> int:
    """The width of a text in Latin letters; a Chinese character is twice as wide."""
    return len(text) + len(HAN.findall(text))
