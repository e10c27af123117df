"""The predictions of a lesson, as slides and worksheets ask them: without the notebook, and with a graph to draw on."""

import ast
import base64
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tools.lesson_pages import PREDICT

SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\)))(?=\s+[A-Z`(*])|(?<=[。！？])(?![”）])|(?<=[。！？][”）])")
IN_THE_NOTEBOOK = re.compile(r"\bcells?\b|\bShift\+Enter\b|\bscroll\b|\bthe check\b|\bin quotes\b|单元格|检查会|引号")
"""What a sentence says that is about typing an answer into a notebook, and running it."""
STATE = 'class="hv-state"'
STILL = re.compile(r'<figure>.*?src="data:image/svg\+xml;base64,([^"]+)"', re.DOTALL)
"""The picture of a player where no script runs: the end of the pass."""
RESULT = re.compile(r'<text [^>]*class="hv-(?:grad|edge-value|pin-value|memory)"[^>]*>[^<]*</text>')
TO_COME = {
    "#6d28d9": "#7c8798",
    "#faf5ff": "white",
    'stroke-width="5"': 'stroke-width="2"',
    'stroke-width="2.2" class="hv-line"': 'stroke-width="2.2" stroke-dasharray="5 4" class="hv-line"',
}
"""How a box, a pin, a leaf and an arrow look after the pass → before it."""
MAX_BOXES = 12
"""On a graph with more boxes there is no room to write. Nor is there in one with modules, whose frames need it."""
MAX_LINES = 12
"""A worksheet prints no function or class that has more lines."""
PIN = re.compile(r'class="hv-pin-label"[^>]*>([^<]+)<')
"""A hook in a box of a graph."""
NAME = re.compile(r"`([^`]+)`")
NOT_ITS_CODE = re.compile(rf"^#|<details>|{PREDICT.pattern}", re.MULTILINE | re.DOTALL)
"""What ends the code that a question asks about: a section, the answer, or the next question."""


def drop_instructions(text: str) -> str:
    """Return a question without the sentences about cells, which nobody runs on a slide or on paper."""
    text = " ".join(text.split())
    starts = [0, *(match.start() for match in SENTENCE_END.finditer(text)), len(text)]
    sentences = [text[start:end] for start, end in pairwise(starts)]
    return "".join(sentence for sentence in sentences if not IN_THE_NOTEBOOK.search(sentence)).strip()


def find_graphs(cells: Sequence[Any]) -> dict[str, str]:
    """Return the id of each cell with a prediction → the graph that it asks about, as SVG without any gradient.

    It is the graph of the code that answers the question, or the last one before that has a name of the question.
    """
    graphs = {}
    for index, cell in enumerate(cells):
        question = PREDICT.search(cell.source) if cell.cell_type == "markdown" else None
        if question:
            svg = _next_graph(cells[index + 1 :]) or _graph_named_in(question["text"], cells[:index])
            if "hv-module" not in svg and 2 <= svg.count('class="hv-box"') <= MAX_BOXES:
                graphs[cell.id] = erase_results(svg)
    return graphs


def find_code(question: str, svg: str, cells: Sequence[Any]) -> list[str]:
    """Return the short functions and classes of earlier cells that a question, or the graph beside it, names."""
    names = {found[0] for code in NAME.findall(question) if (found := re.match(r"\w+", code))}
    names.update(" ".join(PIN.findall(svg)).split())
    sources = {}
    for cell in cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else []:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names:
                sources[node.name] = ast.get_source_segment(cell.source, node) or ""
    return [source for source in sources.values() if len(source.splitlines()) <= MAX_LINES]


def erase_results(svg: str) -> str:
    """Return a picture as it is before the pass: without what the pass wrote, in the colours of what is to come."""
    blank = RESULT.sub("", svg)
    for done, to_come in TO_COME.items():
        blank = blank.replace(done, to_come)
    return blank


def parts_of(svg: str) -> list[str]:
    """Return the names, hooks and arrows of a picture: two passes through the same graph have the same."""
    return re.findall(r'class="hv-(?:name|op|pin-label)"[^>]*>[^<]+|class="hv-edge"', svg)


def _next_graph(cells: Sequence[Any]) -> str:
    """The first graph before the answer, the next question or section."""
    for cell in cells:
        if cell.cell_type == "markdown" and NOT_ITS_CODE.search(cell.source):
            return ""
        if svg := _graph_of(cell):
            return svg
    return ""


def _graph_named_in(question: str, cells: Sequence[Any]) -> str:
    """The last graph, if it has a name of the question, and no code since then gives such a name to something else."""
    names = {name for code in NAME.findall(question) for name in (code, code.removesuffix(".grad"))}
    for cell in reversed(cells):
        if svg := _graph_of(cell):
            return svg if any(f">{name}<" in svg or f" {name}<" in svg for name in names) else ""
        if cell.cell_type == "code" and names & set(names_given(cell.source)):
            return ""
    return ""


def names_given(source: str) -> Iterator[str]:
    """Yield the names that code gives to values, functions and classes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def _graph_of(cell: Any) -> str:
    """The graph that a cell shows: that of its player, or a drawing."""
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        still = STILL.search(data.get("text/html", "")) if STATE in data.get("text/html", "") else None
        if still:
            return base64.b64decode(still[1]).decode()
        if 'class="hv-svg"' in data.get("image/svg+xml", ""):
            return str(data["image/svg+xml"])
    return ""
