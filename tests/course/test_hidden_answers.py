"""No lesson tells what it asks: until a student has answered, the answer stands in nothing that is open.

Open are prose outside of ``<details>``, the line by which one opens ``<details>``, and code cells that are not closed.
We read from the heading of the question's section to its *Explain*, and at least three cells behind the question.
An answer is told by one of its numbers in open prose, in an ``assert`` or in a comment, or by ``words`` that say it.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import nbformat
import pytest

import hookviz as hv
from tests.course.reading import read
from tests.course.test_notebooks import FOLDER
from tools.lesson_pages import EXPLAIN, FOLDED, is_check, is_open

NEAR = 3
"""At least so many cells behind a question, and behind the cell that judges its answer, are read."""
ASKS = re.compile(r"\*\*Predict\.\*\*|\*\*Step through it, and predict\.\*\*|Say first how")
QUESTION = re.compile(rf"(?:{ASKS.pattern}).+?(?=\n\n|\Z)", re.DOTALL)
PLACES = re.compile(
    r"\[step \d+\]\(#step-\d+\)|\]\([^)]*\)|[Ll]essons? \d+|PyTorch \d"
    r"|\b[Pp]ress (?:\*\*)?\d(?: again and \d)?|\b(?:then|and) \d (?:again|switches)|\bkeys \d to \d"
)
"""Numbers of steps, lessons and versions, and those of keys: none of them is a value."""
CHECK = "# A check: open it when you have answered.\n"


@dataclass(frozen=True)
class Asked:
    """A question of a lesson, and all that would tell its answer."""

    cell: str
    values: tuple[float, ...] = ()
    words: str = ""
    """A pattern: what says the answer in other words, or as a heading once did."""
    given: tuple[str, ...] = ()
    """Cells in which these numbers belong to the question, as in *without hooks, layer.weight.grad is 2*."""
    check: str = ""
    """The exercise that judges the answer, which is the first of the values unless it is ``answer``."""
    answer: str | None = None


LESSONS: dict[str, list[Asked]] = {
    "01": [
        Asked("c16", (12,), check="01.1"),
        Asked("c20", (12, 8)),
        Asked("c26", words=r"`d\.grad` is the seed|'d': 6"),
        Asked("c40", (60,), check="01.2"),
        Asked("c46", (6,), check="01.3"),
    ],
    "02": [
        Asked("c12", (10,), check="02.1"),
        Asked("c16", (112, 10, 8)),
        Asked("c25", (24,), check="02.2"),
        Asked("c37", (1, 12), r"\b[Oo]nce\b", check="02.3"),
        Asked("c44", (100,), r"[Tt]rap", check="02.4"),
    ],
    "03": [
        Asked("c06", (116,), check="03.1"),
        Asked("c10", (11, 116)),
        Asked("c14", (6,), r"as if there were no hooks", check="03.2"),
        Asked("c27", (30,), check="03.3"),
        Asked("c37", (2,), r"those of the second", given=("c35",), check="03.4"),
    ],
    "04": [
        Asked("c06", (12,), check="04.1"),
        Asked("c14", (4,), check="04.2"),
        Asked("c23", (2,), r"those of `l2`", given=("c23",), check="04.3"),
        Asked("c33", words=r"The order is|'y', 'layer'"),
        Asked("c37", (2,), r"as without hooks", given=("c37",), check="04.4"),
    ],
    "05": [
        Asked("c13", (6,), r"[Pp]ile up", check="05.1"),
        Asked("c31", (64,), r"[Ll]ate binding", check="05.2"),
        Asked("c33", (16, 64)),
        Asked("c44", (2,), r"drops|leaves its hooks out", check="05.3"),
    ],
    "06": [
        Asked("c09", (3,), check="06.1"),
        Asked("c14", (2.2,), check="06.2"),
        Asked("c28", (0,), r"[Tt]rap|that is none", check="06.3"),
        Asked("c41", (4,), given=("c41",), check="06.4"),
        Asked("c44", (8, 4), given=("c41",)),
    ],
    "07": [
        Asked("c04", (1 / 64,), check="07.1"),
        Asked("c09", (1000, 15.625)),
        Asked("c18", (1,), r"^#+ Zero|the bias of the last", given=("c18",), check="07.2"),
        Asked("c23", (1,), r"^#+ NaN|not its gradient", check="07.3"),
        Asked("c37", (2, 1)),
        Asked("c41", (2,), check="07.4"),
    ],
    "08": [
        Asked("c08", (2,), check="08.1"),
        Asked("c10", (2, -1), given=("c08",)),
        Asked("c16", (0,), given=("c14",), check="08.2"),
        Asked("c22", (2,), check="08.3"),
        Asked("c47", (0.5,), r"two gradients", check="08.4"),
    ],
    "09": [
        Asked("c17", (6,), check="09.1"),
        Asked("c34", (1,), r"looking can change", check="09.2"),
        Asked("c40", (13.5,), check="09.3"),
        Asked("c43", (13.5,)),
    ],
    "10": [
        Asked("c10", (11,)),
        Asked("c20", (1024,), check="10.1"),
        Asked("c28", words=r"'b', 'c'|with `c`|last goes first", check="10.2", answer="c"),
        Asked("c30", (12,)),
        Asked("c37", (0,), r"\bNone\."),
    ],
    "11": [
        Asked("c10", (5,), r"as without the hook", given=("c04", "c05", "c06", "c07"), check="11.1"),
        Asked("c17", (30,), r"other gradients", check="11.2"),
        Asked("c32", (1,), check="11.3"),
        Asked("c34", words=r"tensor hook · |w_tensor any"),
    ],
    "12": [
        Asked("c12", (-14,), check="12.1"),
        Asked("c16", (-14,)),
        Asked("c24", (12,), check="12.2"),
        Asked("c34", (18,), r"do not know your hooks", check="12.3"),
    ],
}


CASES = [(number, asked) for number, questions in LESSONS.items() for asked in questions]


def tellings(notebook: Any, asked: Asked) -> list[str]:
    """Each cell in which the answer stands open, with what tells it."""
    return [
        f"{cell}: {told}"
        for cell, text, numbers in _open_parts(notebook, asked.cell)
        for told in _told(asked, cell, text, numbers)
    ]


def _told(asked: Asked, cell: str, text: str, numbers: list[float]) -> list[str]:
    values = () if cell in asked.given else asked.values
    words = re.findall(asked.words, text, re.MULTILINE) if asked.words else []
    return [*(f"{number:g}" for number in numbers if number in values), *words]


def _open_parts(notebook: Any, question: str) -> list[tuple[str, str, list[float]]]:
    """Of each cell around a question: its id, the open text that may tell an answer, and the numbers that it states."""
    parts = []
    for cell, source in _around(notebook, question):
        if cell.cell_type == "markdown":
            text = PLACES.sub(" ", QUESTION.sub(" ", FOLDED.sub(r"\1", source)))
            parts.append((cell.id, text, _numbers(re.sub(r"`[^`\n]*[a-z(][^`\n]*`", " ", text))))
        elif is_open(cell) and not is_check(cell):
            comments = re.findall(r"#\s(.*)$", source, re.MULTILINE)
            asserts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
            stated = [number for node in asserts for part in ast.walk(node) if (number := _number(part)) is not None]
            text = "\n".join([*comments, *map(ast.unparse, asserts)])
            parts.append((cell.id, text, stated + [number for line in comments for number in _numbers(line)]))
    return parts


def _around(notebook: Any, question: str) -> list[tuple[Any, str]]:
    """The cells from the heading of the question's section to its *Explain*, and what of each belongs there."""
    cells = notebook.cells
    at = next(n for n, cell in enumerate(cells) if cell.id == question)
    first = max((n for n in range(at + 1) if _sections(cells[n])[1:]), default=0)
    last = at + NEAR + is_check(cells[at + 1])
    explains = (n for n in range(at, len(cells)) if EXPLAIN in cells[n].source)
    last = max(last, next(explains, last))
    found = [(cell, cell.source) for cell in cells[first : last + 1]]
    found[0] = cells[first], _sections(cells[first])[-1]
    for n, cell in enumerate(cells[at + 1 : last + 1], at + 1 - first):
        if _sections(cell)[1:]:  # the next section begins in here
            return [*found[:n], (cell, _sections(cell)[0])]
    return found


def _sections(cell: Any) -> list[str]:
    """The text in front of each heading of the second level, and behind the last."""
    return re.split(r"^(?=## )", cell.source, flags=re.MULTILINE) if cell.cell_type == "markdown" else [cell.source]


def _numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w|\.\d)", text)]


def _number(node: ast.AST) -> float | None:
    """What an expression of nothing but numbers comes to."""
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    if not isinstance(node, ast.expr) or not all(isinstance(part, kinds) for part in ast.walk(node)):
        return None
    value = eval(compile(ast.Expression(node), "", "eval"))
    return float(value) if type(value) in (int, float) else None


@cache
def lesson(number: str) -> Any:
    (path,) = FOLDER.glob(f"{number}_*.ipynb")
    return read(path.name)


@pytest.mark.parametrize(("number", "asked"), CASES, ids=[f"{number}-{asked.cell}" for number, asked in CASES])
def test_no_answer_stands_in_plain_sight(number: str, asked: Asked) -> None:
    assert tellings(lesson(number), asked) == []


@pytest.mark.parametrize("number", LESSONS)
def test_every_question_of_a_lesson_is_counted(number: str) -> None:
    asking = [cell.id for cell in lesson(number).cells if cell.cell_type == "markdown" and ASKS.search(cell.source)]
    assert asking == [asked.cell for asked in LESSONS[number]]


@pytest.mark.parametrize(("number", "asked"), [case for case in CASES if case[1].check])
def test_what_is_looked_for_is_the_answer(number: str, asked: Asked) -> None:
    assert hv.check(asked.check, asked.values[0] if asked.answer is None else asked.answer).right


@pytest.mark.parametrize("number", LESSONS)
def test_what_is_folded_opens_and_closes_and_is_read_as_markdown(number: str) -> None:
    """Without the empty lines the text between the tags is shown as it is typed."""
    for cell in (cell for cell in lesson(number).cells if cell.cell_type == "markdown"):
        folded = re.findall(
            r"<details>\n<summary><b>[^<]+</b></summary>\n\n(.+?)\n\n</details>(?=\n\n|\Z)", cell.source, re.DOTALL
        )
        assert len(folded) == cell.source.count("<details>") == cell.source.count("</details>")
        assert not any(re.search(r"^#|<", text, re.MULTILINE) for text in folded)
        assert "**Explain.**" not in cell.source


@pytest.mark.parametrize("number", LESSONS)
def test_a_closed_cell_is_closed_everywhere_and_says_what_it_is(number: str) -> None:
    """In JupyterLab, in Colab and on the site; what is shown of it is its first line."""
    closed = [cell for cell in lesson(number).cells if not is_open(cell)]
    assert closed
    for cell in closed:
        assert cell.metadata["cellView"] == "form" and {"hide-input", "hide-cell"} & set(cell.metadata["tags"])
        assert cell.source.startswith(CHECK) and "assert " in cell.source


def notebook_of(*cells: tuple[str, str]) -> Any:
    make = {"text": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    return nbformat.v4.new_notebook(cells=[make[kind](source, id=f"c{n}") for n, (kind, source) in enumerate(cells)])


ASKING = ("text", "## Section\n\nIt is 7.\n\n**Predict.** The input is 12. What comes out?")


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (("text", "You get 12."), ["c1: 12"]),
        (("text", "You get `[12]`, see [step 12](#step-12), and press 12."), ["c1: 12"]),
        (("text", f"<details>\n{EXPLAIN}\n\nYou get 12.\n\n</details>\n\nSo it is."), []),
        (("text", "<details>\n<summary><b>It is 12</b></summary>\n\nYes.\n\n</details>"), ["c1: 12"]),
        (("text", "It doubles.\n\n## Twelve\n\n12."), ["c1: doubles"]),
        (("code", "assert x == 3 * 4"), ["c1: 12"]),
        (("code", "x = 12\nx  # not 13"), []),
        (("code", "x  # is 12"), ["c1: 12"]),
    ],
)
def test_what_tells_an_answer_is_found(cell: tuple[str, str], told: list[str]) -> None:
    notebook = notebook_of(ASKING, cell)
    assert tellings(notebook, Asked("c0", (12,), r"doubles")) == told
    notebook.cells[1].metadata["jupyter"] = {"source_hidden": True}
    assert cell[0] == "text" or tellings(notebook, Asked("c0", (12,))) == []


def test_it_reads_the_section_of_the_question_to_its_explanation_and_no_further() -> None:
    before, far = ("text", "## Before\n\nThat was 12."), ("code", "assert y == 12")
    cells = [
        before,
        ("text", "One."),
        ASKING,
        *[("code", "x")] * 5,
        ("text", f"<details>\n{EXPLAIN}\n\n3\n\n</details>"),
        far,
    ]
    assert tellings(notebook_of(*cells), Asked("c2", (12, 7))) == ["c2: 7"]
    cells[7] = far
    assert tellings(notebook_of(*cells), Asked("c2", (12,))) == ["c7: 12"]
