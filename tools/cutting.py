"""A notebook cut into slides: questions, code and players are shown, and the prose goes to the speaker's notes."""

import ast
import copy
import math
import re
from typing import Any

import nbformat

from tools.reading import EXPLAIN, FOLDED, MAP, WIDGET, is_check, is_open

BELOW_HEADING, ALONE = 550, 690
"""How many pixels high a drawing may be below a heading, and without one."""
WORDS = 45
"""More of one thought than these is not read on a wall."""
WIDE, LONG = 78, 18
"""Characters and lines: code that is wider or longer is set smaller."""
LINES, PROSE, TABLE = 18, 5, 12
"""Lines of code for which a slide has room below its heading; as many as prose takes; lines of a table."""
CELL, PRINTED = 36, 98
"""Characters in one line of a table's cell, and of what code prints."""
BLOCK = re.compile(r"```.*?^```|\S(?:(?!\n\n|\n```).)*", re.DOTALL | re.MULTILINE)
"""A paragraph, a table, a list, or code between fences, in which an empty line is nothing special."""
QUESTION = re.compile(r"\*\*(?:(Predict)\.|(\d\d\.\d))\*\* ")
EXPLANATION = "**Explain.** "
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
SENTENCE = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\)))\s+(?=[A-Z`(*])")


def slides_of(notebook: Any) -> Any:
    """A notebook with the cells of one slide after the other, marked as nbconvert wants them."""
    cutter = Cutter()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cutter.read(cell.source)
        elif not is_check(cell):
            cutter.run(cell)
    cutter.flush()
    made = nbformat.v4.new_notebook(metadata=copy.deepcopy(notebook.metadata))  # type: ignore[no-untyped-call]
    made.metadata["title"] = notebook.cells[0].source.partition("\n")[0].removeprefix("# ")
    made.metadata.pop("widgets", None)
    made.cells = cutter.cells
    return made


class Cutter:
    """Lays out cells: below a heading the beginning of the prose, then code with what it prints, as far as it fits."""

    def __init__(self) -> None:
        self.cells: list[Any] = []
        self._heading = ""
        self._waiting: list[str] = []
        """Prose that is said to this slide, or to the code that comes."""
        self._only_heading = False
        self._room = 0
        """Lines that are left on the slide."""

    def read(self, source: str) -> None:
        """Take a cell of prose: a folded explanation has a slide of its own, and what else is folded is said."""
        end = 0
        for folded in FOLDED.finditer(source):
            self._lay(source[end : folded.start()])
            if EXPLAIN in folded[0]:
                self._explain(folded["text"])
            else:
                self._waiting.append(folded["text"])
            end = folded.end()
        self._lay(source[end:])

    def run(self, cell: Any) -> None:
        """Take a cell of code that ran. One that only asserts is said, and so is the code of a closed check."""
        outputs = [output for output in cell.outputs if _is_worth_showing(output)]
        texts = [output for output in outputs if not _is_picture(output)]
        if not is_open(cell) or (not outputs and isinstance(ast.parse(cell.source).body[-1], ast.Assert)):
            self._waiting.append(f"```python\n{cell.source}\n```")
            if texts:
                self._place(_code("", *texts))
        else:
            self._place(_code(cell.source, *texts))
        for output in outputs:
            if output not in texts:
                self._place_picture(output)

    def _lay(self, prose: str) -> None:
        """Lay out prose of which nothing is folded, one paragraph after the other."""
        for block in BLOCK.findall(MAP.sub("", prose)):
            question = QUESTION.match(block)
            if block.startswith("#"):
                self._begin_section(block)
            elif question:
                title = question[1] or f"Exercise {question[2]}"
                self._ask(f"### {title}\n\n{block[question.end() :]}")
            elif block.startswith(EXPLANATION):
                self._explain(block.removeprefix(EXPLANATION))
            elif block.startswith("|"):
                for page in _pages(block):
                    self._place(_text(page))
                    self._room = 0
            elif block.startswith("```"):
                self._place(_text(block, *_small(block)))
            else:
                self._tell(block)

    def _begin_section(self, heading: str) -> None:
        first = not self.cells
        self._begin(_text(heading, *["first"] * first))
        self._heading = f"## {heading.lstrip('# ')}"
        self._only_heading, self._room = True, 0 if first else LINES

    def _ask(self, question: str) -> None:
        """A question has a slide for itself, but for the heading of its section."""
        if not self._only_heading:
            self.flush()
        self._add(_text(question, "asks"), "-" if self._only_heading else "slide")
        self._room = 0

    def _explain(self, prose: str) -> None:
        self._begin(_text(f"## Explain\n\n{_start(prose)}", "explains"))
        self._waiting.append(EXPLANATION + prose)
        self._room = 0

    def _tell(self, block: str) -> None:
        """Show how the prose below a heading begins; say the rest."""
        shown = _start(block) if self._only_heading and not re.match(r"\*\*(Run|Step)", block) else ""
        if shown:
            self._add(_text(shown))
            self._room -= PROSE
        if shown != block:
            self._waiting.append(block)

    def _place(self, cell: Any) -> None:
        """Put code, a table or a picture onto this slide, or onto the next one, with the same heading."""
        lines = _lines(cell)
        if self._room < lines and not (self._only_heading and self._room):
            self._add(_text(self._heading), "slide")
            self._room = LINES
        self._add(cell)
        self._room -= lines
        self.flush()

    def _place_picture(self, output: Any) -> None:
        """A picture has a slide of its own; a player, and a large drawing, without a heading."""
        cell = _code("", output)
        self._room = 0
        if _is_player(output) or _height(output) > BELOW_HEADING:
            cell.metadata["tags"] = ["alone"]
            self._begin(cell)
        else:
            self._place(cell)
            self._room = 0

    def _begin(self, cell: Any) -> None:
        """Begin a slide; what waited belongs to the one before."""
        self.flush()
        self._add(cell, "slide")

    def flush(self) -> None:
        """What waited is said to this slide."""
        if self._waiting:
            self._add(_text("\n\n".join(self._waiting)), "notes")
            self._waiting = []

    def _add(self, cell: Any, kind: str = "-") -> None:
        cell.metadata["slideshow"] = {"slide_type": kind}
        self.cells.append(cell)
        self._only_heading = False


def _text(source: str, *tags: str) -> Any:
    cell = nbformat.v4.new_markdown_cell(LINK.sub(r"\1", source))  # type: ignore[no-untyped-call]
    cell.metadata["tags"] = list(tags)
    return cell


def _code(source: str, *outputs: Any) -> Any:
    """A cell of code, or outputs without their code."""
    cell = nbformat.v4.new_code_cell(source, outputs=[copy.deepcopy(output) for output in outputs])  # type: ignore[no-untyped-call]
    cell.metadata["tags"] = _small(source)
    cell.metadata["transient"] = {"remove_source": not source}
    return cell


def _small(source: str) -> list[str]:
    """The tag of code that is set smaller."""
    lines = source.splitlines()
    return ["small"] if len(lines) > LONG or any(len(line) > WIDE for line in lines) else []


def _lines(cell: Any) -> int:
    """How many lines of a slide a cell takes, with what the code prints."""
    found = 2 + len(cell.source.splitlines()) if cell.source else 0
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        text = data.get("text/plain", output.get("text", ""))
        table = math.ceil(1.3 * data.get("text/html", "").count("<tr"))
        found += 1 + (table or sum(1 + len(line) // PRINTED for line in text.splitlines()))
    return found


def _is_player(output: Any) -> bool:
    return "hv-state" in output.get("data", {}).get("text/html", "")


def _is_picture(output: Any) -> bool:
    data = output.get("data", {})
    return _is_player(output) or "<img " in data.get("text/html", "") or "image/png" in data


def _height(output: Any) -> int:
    """The pixels of a drawing; those of other pictures are bounded by the style."""
    drawing = re.search(r'<img .*height="(\d+)"', output.get("data", {}).get("text/html", ""))
    return int(drawing[1]) if drawing else 0


def _is_worth_showing(output: Any) -> bool:
    """Not so a widget, which needs its kernel, and the bare address of an object, as of a handle."""
    data = output.get("data", {})
    return WIDGET not in data and not re.fullmatch(r"<[\w.]+ at 0x[0-9a-f]+>", data.get("text/plain", ""))


def _pages(table: str) -> list[str]:
    """A table as one, or as several that have each room on a slide, all with its head."""
    head, rows = table.splitlines()[:2], table.splitlines()[2:]
    pages, room = [head], TABLE
    for row in rows:
        height = max(math.ceil(len(cell) / CELL) for cell in row.split("|"))
        if height > room:
            pages, room = [*pages, head], TABLE
        pages[-1] = [*pages[-1], row]
        room -= height
    return ["\n".join(page) for page in pages]


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
