"""Make a page of a lesson, without a kernel: questions stand in boxes, and nothing waits for an answer."""

import copy
import re
from dataclasses import dataclass
from typing import Any

import nbformat

from tools.translation.translated import translated

WIDGET = "application/vnd.jupyter.widget-view+json"
PARAGRAPH = r"(?P<text>.+?)(?=\n\n|\Z)"
# The marks of lessons, in English and in Chinese.
PREDICT = re.compile(rf"^\*\*(?P<title>Predict|预测)[.。]\*\* {PARAGRAPH}", re.MULTILINE | re.DOTALL)
EXERCISE = re.compile(rf"^\*\*(?P<number>\d\d\.\d)\*\* {PARAGRAPH}", re.MULTILINE | re.DOTALL)
CHECK = re.compile(r'^check\("(?P<exercise>\d\d\.\d)", (?P<answer>\w+)\)$', re.MULTILINE)
"""The call that checks an answer of the student."""
MAP = re.compile(r"\n\n\[(?:The course|课程)\]\(README\.md\)(?:: |：)(.+)$", re.MULTILINE)
"""The links to all lessons: the site has a menu instead, and slides show one lesson only."""
STEP = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<step>#step-\d+)\)")
TITLE = r"# (?:Lesson (?=\d\d ·)|第 (?=\d\d 课))(\d\d)(?: 课)? · (.+)"
FACTS = (
    r"\*\*(?:The question: |问题：)(.+?)\*\*",
    r"(?:\babout |大约需要 )(\d+) (?:minutes\b|分钟)",
    r"(?:\bYou need |前提：)(.+?)(?:\.(?: |$)|。)",
)
CELL = re.compile(r"\[(?P<text>(?:`[^`]*`|[^\]`])+)\]\((?:(?P<page>\w+)\.ipynb)?#cell-id=(?P<cell>[\w-]+)\)")
"""A link to a cell, in the form that JupyterLab supports."""
NUMBER = '<p class="in" id="cell-id={}">In [{}]</p>'
NOTE = """\
```{{note}}
{played}

{opened} {{download}}`{name} </files/{name}>`
```"""


@dataclass(frozen=True)
class LessonFacts:
    """The facts about a lesson in its first cell."""

    title: str
    question: str
    minutes: int
    needs: str


def read_facts(notebook: Any) -> LessonFacts:
    """Read the facts about a lesson from its first cell.

    Raises:
        ValueError: the cell lacks the title, the question, the time or the requirements.
    """
    source = notebook.cells[0].source
    first = " ".join(source.split())
    matches = [re.match(TITLE, source), *(re.search(pattern, first) for pattern in FACTS)]
    if not all(matches):
        raise ValueError(
            f"a lesson begins with its title, its question, its time and what one needs, not with: {first}"
        )
    number, title, question, minutes, needs = (group for match in matches if match for group in match.groups())
    return LessonFacts(f"{number} {title}", question[0].upper() + question[1:], int(minutes), needs)


def make_page(notebook: Any, name: str, language: str = "en") -> Any:
    """Make the page of a notebook that ran.

    Args:
        notebook: the notebook with its outputs.
        name: the file that the page offers for download.
        language: the language of the notebook.
    """
    page = copy.deepcopy(notebook)
    if any(is_check(cell) for cell in page.cells):
        page.cells.insert(1, markdown_cell(make_note(name, language)))
    page.cells = [cell for cell in page.cells if not is_check(cell)]
    page.metadata.pop("widgets", None)
    page.metadata["hide-toc"] = True
    page.cells = [page_cell for cell in page.cells for page_cell in _page_cells(cell, language)]
    return page


def make_note(name: str, language: str) -> str:
    """Make the note at the top of a page that says what does not work there."""
    played = translated(
        "Everything on this page has already run. Its players and their switches work without a network.", language
    )
    opened = translated(
        "To have an answer checked, to move a slider or to change the code, open the notebook:", language
    )
    return NOTE.format(played=played, opened=opened, name=name)


def _page_cells(cell: Any, language: str) -> list[Any]:
    """Make the cells of a page from one cell: prose with boxes, or code below its number, which players mention."""
    if cell.cell_type == "markdown":
        anchor = "" if cell.source.startswith("# ") else f'<span id="cell-id={cell.id}"></span>\n\n'
        return [markdown_cell(anchor + link_cells(_box_questions(MAP.sub("", cell.source), language)))]
    cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    for output in cell.outputs:
        if "text/html" in output.get("data", {}):
            output.data["text/html"] = output.data["text/html"].replace(".ipynb#cell-id=", ".html#cell-id=")
    return [markdown_cell(NUMBER.format(cell.id, cell.execution_count)), cell]


def link_cells(text: str) -> str:
    """Replace links to cells by HTML, since Sphinx cannot link to a cell."""
    return CELL.sub(
        lambda link: (
            f'<a href="{link["page"] + ".html" if link["page"] else ""}#cell-id={link["cell"]}">{link["text"]}</a>'
        ),
        text,
    )


def markdown_cell(text: str) -> Any:
    """Make a cell of markdown."""
    return nbformat.v4.new_markdown_cell(text)  # type: ignore[no-untyped-call]


def is_open(cell: Any) -> bool:
    """Whether the source of a cell is shown: checks with the answer to a question are collapsed."""
    return not cell.metadata.get("jupyter", {}).get("source_hidden", False)


def is_slide(cell: Any) -> bool:
    """Whether a cell makes a slide of its lesson; a question on a slide is on the worksheet, too."""
    return "slide" in cell.metadata.get("tags", [])


def is_check(cell: Any) -> bool:
    """Whether a cell checks an answer of the student."""
    return cell.cell_type == "code" and CHECK.search(cell.source) is not None


def _box_questions(text: str, language: str) -> str:
    text = PREDICT.sub(lambda match: _box(match["title"], match["text"]), text)
    exercise = translated("Exercise {number}", language)
    text = EXERCISE.sub(lambda match: _box(exercise.format(number=match["number"]), match["text"]), text)
    # As HTML, since Sphinx would look for a heading with that name.
    return STEP.sub(r'<a href="\g<step>">\g<text></a>', text)


def _box(title: str, text: str) -> str:
    return f"````{{admonition}} {title}\n:class: question\n\n{text}\n````"
