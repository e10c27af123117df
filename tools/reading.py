"""A lesson made for reading, where no kernel is: what it asks stands in a box, and nothing waits for an answer."""

import copy
import re
from dataclasses import dataclass
from typing import Any

import nbformat

WIDGET = "application/vnd.jupyter.widget-view+json"
PARAGRAPH = r"(?P<text>.+?)(?=\n\n|\Z)"
PREDICT = re.compile(rf"^\*\*Predict\.\*\* {PARAGRAPH}", re.MULTILINE | re.DOTALL)
EXERCISE = re.compile(rf"^\*\*(?P<number>\d\d\.\d)\*\* {PARAGRAPH}", re.MULTILINE | re.DOTALL)
MAP = re.compile(r"\n\n\[The course\]\(README\.md\): (.+)$", re.MULTILINE)
"""The links to all lessons: a site has its menu in their place, and slides show one lesson only."""
STEP = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<step>#step-\d+)\)")
EXPLAIN = "<summary><b>Explain</b></summary>"
FOLDED = re.compile(r"<details>\n<summary>(?P<title>.*?)</summary>\n\n(?P<text>.*?)\n\n</details>", re.DOTALL)
"""What a reader opens, and the line that shows before that."""
FACTS = (
    r"^# Lesson (\d\d) · (.+?) \*\*",
    r"\*\*The question: (.+?)\*\*",
    r"\babout (\d+) minutes\b",
    r"\bYou need (.+?)\.(?: |$)",
)
CELL = re.compile(r"\[(?P<text>(?:`[^`]*`|[^\]`])+)\]\((?:(?P<page>\w+)\.ipynb)?#cell-id=(?P<cell>[\w-]+)\)")
"""A link to a cell, as JupyterLab follows it."""
NUMBER = '<p class="in" id="cell-id={}">In [{}]</p>'
NOTE = """\
```{{note}}
Everything on this page has run already. The players play and their switches switch, without a network, and nothing is
computed. To answer a question and be told why it is wrong, to move a slider, or to change the code, take the notebook:
{{download}}`{name} </files/{name}>`.
```"""


@dataclass(frozen=True)
class Facts:
    """What the first cell of a lesson tells about it."""

    title: str
    question: str
    minutes: int
    needs: str


def facts(notebook: Any) -> Facts:
    """What the lesson says of itself.

    Raises:
        ValueError: its first cell lacks the title, the question, the time or what one needs.
    """
    first = " ".join(notebook.cells[0].source.split())
    found = [re.search(pattern, first) for pattern in FACTS]
    if not all(found):
        raise ValueError(
            f"a lesson begins with its title, its question, its time and what one needs, not with: {first}"
        )
    number, title, question, minutes, needs = (part for one in found if one for part in one.groups())
    return Facts(f"{number} {title}", question[0].upper() + question[1:], int(minutes), needs)


def readable(notebook: Any, name: str) -> Any:
    """A copy of a notebook that ran, for a page; ``name`` is the file to which a reader is sent for more."""
    made = copy.deepcopy(notebook)
    if any(is_check(cell) for cell in made.cells):
        made.cells.insert(1, prose(NOTE.format(name=name)))
    made.cells = [cell for cell in made.cells if not is_check(cell)]
    made.metadata.pop("widgets", None)
    made.metadata["hide-toc"] = True
    made.cells = [part for cell in made.cells for part in _parts(cell)]
    return made


def _parts(cell: Any) -> list[Any]:
    """A cell of prose with its boxes; a cell of code with its number, as players name the place of a hook by it."""
    if cell.cell_type == "markdown":
        anchor = "" if cell.source.startswith("# ") else f'<span id="cell-id={cell.id}"></span>\n\n'
        return [prose(anchor + to_cells(_boxed(MAP.sub("", cell.source))))]
    cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    return [prose(NUMBER.format(cell.id, cell.execution_count)), cell]


def to_cells(text: str) -> str:
    """Links to cells, as HTML: for Sphinx a cell is no place that one could link to."""
    return CELL.sub(
        lambda found: (
            f'<a href="{found["page"] + ".html" if found["page"] else ""}#cell-id={found["cell"]}">{found["text"]}</a>'
        ),
        text,
    )


def prose(text: str) -> Any:
    """A cell of markdown."""
    return nbformat.v4.new_markdown_cell(text)  # type: ignore[no-untyped-call]


def is_open(cell: Any) -> bool:
    """Whether the source of a cell shows: checks that hold the answer to a question are closed."""
    return not cell.metadata.get("jupyter", {}).get("source_hidden", False)


def is_check(cell: Any) -> bool:
    """Whether a cell is there to be answered."""
    return cell.cell_type == "code" and "hv.check(" in cell.source


def _boxed(text: str) -> str:
    text = PREDICT.sub(lambda found: _box("Predict", found["text"]), text)
    text = EXERCISE.sub(lambda found: _box(f"Exercise {found['number']}", found["text"]), text)
    # As HTML, because Sphinx would look for a heading of that name.
    return STEP.sub(r'<a href="\g<step>">\g<text></a>', text)


def _box(title: str, text: str) -> str:
    return f"````{{admonition}} {title}\n:class: question\n\n{text}\n````"
