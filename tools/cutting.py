"""A notebook cut into slides: questions, code and players are shown, and the prose goes to the speaker's notes."""

import ast
import copy
import math
import re
from dataclasses import dataclass, field
from typing import Any

import nbformat

from tools.reading import EXPLAIN, FOLDED, MAP, WIDGET, is_check, is_open

HEIGHT = 650
"""Pixels of a slide of 720, without its edges."""
TITLE = 76
BELOW_HEADING, ALONE = 550, 690
"""How high a drawing may be below a heading, and without one."""
FIRST = 290
"""Of the slide with the title of the lesson, which has room for its question and no more."""
WORDS = 45
"""More of one thought than these is not read on a wall."""
WIDE, LONG = 78, 18
"""Characters and lines: code that is wider, or too long for a slide of its own, is set smaller."""
BLOCK = re.compile(r"```.*?^```|\S(?:(?!\n\n|\n```).)*", re.DOTALL | re.MULTILINE)
"""A paragraph, a table, a list, or code between fences, in which an empty line is nothing special."""
ASKED = re.compile(r"\*\*(Predict)\.\*\* |\*\*(\d\d\.\d)\*\* ")
EXPLAINED = re.compile(r"\*\*(Explain)\.\*\* ")
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
SENTENCE = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\)))\s+(?=[A-Z`(*])")


@dataclass
class Slide:
    """What is on one slide, what is said to it, and how many pixels are left."""

    cells: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    room: int = HEIGHT
    full: bool = False

    def takes(self, prose: str) -> bool:
        """Whether a piece of prose is shown here: it comes before any code, and leaves room for that.

        Under a heading its beginning is shown, however long it is; further down only what is short.
        """
        if self.full or self.cells[-1].cell_type != "markdown" or re.match(r"\*\*(Run|Step)", prose):
            return False
        return not self.cells[1:] or (_is_short(prose) and _height(prose) <= self.room - HEIGHT // 3)


def slides_of(notebook: Any) -> Any:
    """A notebook with one slide after the other, marked as nbconvert wants them."""
    cut = Cut()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cut.read(cell.source)
        elif not is_check(cell):
            cut.run(cell)
    cut.flush()
    made = nbformat.v4.new_notebook(metadata=copy.deepcopy(notebook.metadata))  # type: ignore[no-untyped-call]
    made.metadata["title"] = notebook.cells[0].source.partition("\n")[0].removeprefix("# ")
    made.metadata.pop("widgets", None)
    made.cells = [cell for slide in cut.slides for cell in _marked(slide)]
    return made


class Cut:
    """The slides so far, and the prose that waits to be said to one."""

    def __init__(self) -> None:
        self.slides: list[Slide] = []
        self.heading = ""
        self.waiting: list[str] = []

    def read(self, source: str) -> None:
        """Take a cell of prose: a folded explanation has a slide of its own, and what else is folded is said."""
        end = 0
        for folded in FOLDED.finditer(source):
            self.lay(source[end : folded.start()])
            if EXPLAIN in folded[0]:
                self.lay(f"**Explain.** {folded['text']}")
            else:
                self.waiting.append(folded["text"])
            end = folded.end()
        self.lay(source[end:])

    def lay(self, prose: str) -> None:
        """Lay out prose of which nothing is folded, one paragraph after the other."""
        for block in BLOCK.findall(MAP.sub("", prose)):
            heading = re.match(r"#+ (.+)", block)
            asked, explained = ASKED.match(block), EXPLAINED.match(block)
            if heading:
                self.heading = heading[1]
                self.begin()
                if not self.slides[1:]:
                    self.slides[0].room = FIRST
                self.show(block, "" if self.slides[1:] else "first")
            elif asked:
                title = asked[1] or f"Exercise {asked[2]}"
                if self.slides[-1].cells[1:] or self.slides[-1].full:
                    self.begin()
                self.slides[-1].full = True
                self.show(f"### {title}\n\n{block[asked.end() :]}", "asks")
            elif explained:
                self.begin()
                self.show(f"## Explain\n\n{_start(block[explained.end() :])}", "explains")
                self.waiting.append(block)
            else:
                self.tell(block)

    def tell(self, block: str) -> None:
        """Show tables, code between fences, and what is short while there is room and no code yet; say the rest."""
        slide = self.slides[-1]
        if block.startswith(("|", "```")):
            for piece in _pages(block) if block.startswith("|") else [block]:
                if self.slides[-1].full or _height(piece) > self.slides[-1].room:
                    self.go_on()
                self.show(piece, "small" if piece.startswith("```") and _is_small(_fenced(piece)) else "")
        elif self.waiting or not slide.takes(block):
            self.waiting.append(block)
        elif slide.cells[1:] or _is_short(block):
            self.show(block)
        else:
            self.show(_start(block))
            self.waiting.append(block)

    def run(self, cell: Any) -> None:
        """Take a cell of code that ran. One that only asserts is said, and so is the code of a closed check."""
        outputs = [output for output in cell.outputs if _is_worth_showing(output)]
        if not is_open(cell) or (not outputs and isinstance(ast.parse(cell.source).body[-1], ast.Assert)):
            self.waiting.append(f"```python\n{cell.source}\n```")
        else:
            self.place(_code(cell.source))
        for output in outputs:
            shown = _code("", output)
            if is_player(output):
                self.begin(full=True)
                self.slides[-1].cells.append(shown)
            else:
                self.place(shown)

    def place(self, cell: Any) -> None:
        """Put code or what it shows onto this slide, or onto the next if there is no room."""
        height, slide = _size(cell), self.slides[-1]
        if slide.full or height > slide.room:
            self.go_on(height)
        self.slides[-1].cells.append(cell)
        self.slides[-1].room -= height
        self.flush()

    def begin(self, *, full: bool = False) -> None:
        """Begin a slide; what waited belongs to the one before."""
        if self.slides:
            self.flush()
        self.slides.append(Slide(full=full))

    def go_on(self, height: int = 0) -> None:
        """Begin a slide in the middle of a section, with its heading if there is room above what is so high."""
        self.slides.append(Slide())
        if height <= HEIGHT - TITLE:
            self.show(f"## {self.heading}")

    def show(self, text: str, tag: str = "") -> None:
        """Put prose onto the slide."""
        cell = nbformat.v4.new_markdown_cell(LINK.sub(r"\1", text))  # type: ignore[no-untyped-call]
        cell.metadata["tags"] = [tag] if tag else []
        self.slides[-1].cells.append(cell)
        self.slides[-1].room -= _height(text)

    def flush(self) -> None:
        """What waited is said to this slide."""
        self.slides[-1].notes += self.waiting
        self.waiting = []


def is_player(output: Any) -> bool:
    """Whether an output of a cell is a player."""
    return "hv-state" in output.get("data", {}).get("text/html", "")


def _is_worth_showing(output: Any) -> bool:
    """Not so a widget, which needs its kernel, and the bare address of an object, as of a handle."""
    data = output.get("data", {})
    return WIDGET not in data and not re.fullmatch(r"<[\w.]+ at 0x[0-9a-f]+>", data.get("text/plain", ""))


def _marked(slide: Slide) -> list[Any]:
    """The cells of a slide, as nbconvert wants them marked; what is said comes last."""
    said = nbformat.v4.new_markdown_cell("\n\n".join(slide.notes))  # type: ignore[no-untyped-call]
    cells = [*slide.cells, *([said] if slide.notes else [])]
    kinds = ["slide", *["-"] * (len(slide.cells) - 1), "notes"]
    for cell, kind in zip(cells, kinds, strict=False):
        cell.metadata["slideshow"] = {"slide_type": kind}
    return cells


def _code(source: str, *outputs: Any) -> Any:
    """A cell of code without outputs, or an output without its code."""
    cell = nbformat.v4.new_code_cell(source, outputs=[copy.deepcopy(output) for output in outputs])  # type: ignore[no-untyped-call]
    tall = any(_shown(output) > HEIGHT for output in outputs)
    cell.metadata["tags"] = [tag for tag, is_so in {"small": _is_small(source), "alone": tall}.items() if is_so]
    cell.metadata["transient"] = {"remove_source": not source}
    return cell


def _is_small(source: str) -> bool:
    lines = source.splitlines()
    return len(lines) > LONG or any(len(line) > WIDE for line in lines)


def _code_height(source: str) -> int:
    """How many pixels of a slide code takes."""
    lines = len(source.splitlines())
    return lines * (27 if _is_small(source) else 33) + 46 if lines else 0


def _fenced(block: str) -> str:
    """The code between its fences."""
    return block.partition("\n")[2].rpartition("\n")[0]


def _pages(table: str) -> list[str]:
    """A table as one, or as several that have each room on a slide, all with its head."""
    head, rows = table.splitlines()[:2], table.splitlines()[2:]
    pages = [head]
    for row in rows:
        if _height("\n".join([*pages[-1], row])) > HEIGHT - TITLE:
            pages.append(head)
        pages[-1] = [*pages[-1], row]
    return ["\n".join(page) for page in pages]


def _is_short(text: str) -> bool:
    return len(text.split()) <= WORDS


def _start(text: str) -> str:
    """The first sentences, as many as are read on a wall."""
    sentences = SENTENCE.split(text)
    end = 1
    while end < len(sentences) and len(" ".join(sentences[: end + 1]).split()) <= WORDS:
        end += 1
    # What ends in a colon introduces something that is not shown.
    while end > 1 and sentences[end - 1].endswith(":"):
        end -= 1
    return " ".join(sentences[:end])


def _size(cell: Any) -> int:
    """How many pixels of a slide a cell of code takes."""
    return _code_height(cell.source) + sum(map(_shown, cell.outputs))


def _shown(output: Any) -> int:
    data = output.get("data", {})
    html: str = data.get("text/html", "")
    drawing = re.search(r'<img .*height="(\d+)"', html)
    if drawing or "image/png" in data:
        return 16 + (int(drawing[1]) if drawing else 480)
    if html:
        return 42 * html.count("<tr") + 16
    text: str = data.get("text/plain", output.get("text", ""))
    return 28 * sum(math.ceil(len(line) / 98) for line in text.splitlines()) + 16


def _height(text: str) -> int:
    """How many pixels of a slide prose takes."""
    if text.startswith("#"):
        head, _, rest = text.partition("\n")
        return TITLE * math.ceil(len(head) / 48) + (_height(rest.strip()) if rest.strip() else 0)
    if text.startswith("```"):
        return _code_height(_fenced(text))
    if text.startswith("|"):
        return sum(12 + 30 * max(math.ceil(len(cell) / 36) for cell in row.split("|")) for row in text.splitlines())
    return 41 * sum(math.ceil(len(part) / 78) for part in text.split("\n- ")) + 18
