"""No lesson reveals the answer to a question in text that is visible before the student has answered.

Visible are prose outside of ``<details>``, the summary line of ``<details>``, and code cells that are not hidden.
The tests search from the heading of the question's section to its *Explain*, and at least three cells after the
question. An answer is revealed by one of its numbers in prose or in a comment, or by its ``words``.
"""

import re
from dataclasses import dataclass
from typing import Any

import pytest

from hookviz.course import check
from tests.course.reading import FOLDER, read_notebook
from tools.lesson_pages import is_check, is_open

MIN_CELLS_AFTER_QUESTION = 3
"""The minimum number of cells to search after a question and after the cell that checks its answer."""
QUESTION_START = re.compile(r"\*\*Predict\.\*\*|\*\*Step through it, and predict\.\*\*|Say first how")
QUESTION_TEXT = re.compile(rf"(?:{QUESTION_START.pattern}).+?(?=\n\n|\Z)", re.DOTALL)
REFERENCES = re.compile(
    r"\[step \d+\]\(#step-\d+\)|\]\([^)]*\)|[Ll]essons? \d+|PyTorch \d"
    r"|\b[Pp]ress (?:\*\*)?\d(?: again(?: and|, then) \d)?|\b(?:then|and) \d (?:again|switches)|\bkeys \d to \d"
)
"""Numbers of steps, lessons, versions and keys, which are not values."""
FOLDED = re.compile(r"<details>\n<summary>(?P<title>.*?)</summary>\n\n(?P<text>.*?)\n\n</details>", re.DOTALL)
"""A folded text, and its title, which always shows."""
EXPLAIN = re.compile("<summary><b>Explain</b></summary>")


@dataclass(frozen=True)
class Question:
    """A question of a lesson, and everything that would reveal its answer."""

    cell: str
    values: tuple[float, ...] = ()
    words: str = ""
    """A pattern for the answer in other words, or for a heading that once revealed it."""
    given: tuple[str, ...] = ()
    """Cells in which these numbers are part of the question, as in *without hooks, layer.weight.grad is 2*."""
    check: str = ""
    """The exercise that checks the answer: ``answer``, or else the first of the values."""
    answer: str | None = None


LESSONS: dict[str, list[Question]] = {
    "01": [
        Question("c07q", words=r"Only `u`|`double\(\)` is one"),
        Question("c16q", (12,), check="01.1"),
        Question("c20", (12, 8)),
        Question("c26q", words=r"`d\.grad` is the seed|'d': 6", check="01.2", answer="d"),
        Question("c40", (60,), check="01.3"),
        Question("c46", (6,), check="01.4"),
        Question("c51", (12,), check="01.5"),
        Question("s01", (14,), words=r"other 14", check="01.6"),
    ],
    "02": [
        Question("c12", (10,), check="02.1"),
        Question("c16", (112, 10, 8)),
        Question("c25", (24,), check="02.2"),
        Question("o03", (21, 17), check="02.3"),
        Question("c37", (1, 12), r"\b[Oo]nce\b", check="02.4"),
        Question("c33", (3001,), r"outlive", check="02.5"),
        Question("c44", (100,), r"[Tt]rap", check="02.6"),
        Question("s01", (2,), words=r"keep_small|`neck_hook` fires"),
        Question("s05a", words=r"[Oo]nly up|pushed one way|every positive", check="02.7", answer="up"),
    ],
    "03": [
        Question("c50", words=r"order is:|1st:|'exit_fwd', 'exit_bwd'", check="03.1", answer="ABDC"),
        Question("c06", (116,), check="03.2"),
        Question("c27", (25,), r"order in which"),
        Question("c14", (6,), r"as if there were no hooks", check="03.3"),
        Question("c18e", (1,), r"a hook gets those only if", check="03.4"),
        Question("c37", (2,), r"those of the second", given=("c35",), check="03.5"),
        Question("c48b", (29, 3)),
    ],
    "04": [
        Question("c06", (12,), check="04.1"),
        Question("c23", (2,), r"those of `second`", given=("c23",), check="04.2"),
        Question("c33", words=r"Only the weight|gets its `.grad`|gradient last", check="04.3", answer="weight"),
        Question("c37", (2,), r"as without hooks", given=("c37",), check="04.4"),
        Question("s03", (9,), r"never fires", check="04.5"),
        Question("s03b", words=r"about 0\.3|0\.3 ×", given=("s03b",)),
    ],
    "05": [
        Question("c13", (6,), r"[Pp]ile up", check="05.1"),
        Question("c21c", words=r"About 10|2000"),
        Question("w00q", words=r"and then no|keeps its logger"),
        Question("c44", (2,), r"drops|leaves the hooks out|leaves\nthe hooks out", check="05.2"),
        Question("c31", (64,), r"[Ll]ate binding", check="05.3"),
        Question("c33", (16, 64)),
        Question("c41c", words=r"C, A, D|bypassed|no_graph", check="05.4", answer="CADFEB"),
        Question("c57b", (210,), r"100 times|grows faster", check="05.5"),
        Question("c61", words=r"has other faults|reads 9 %"),
    ],
    "06": [
        Question("c09", (3,), check="06.1"),
        Question("c14", (2.2,), check="06.2"),
        Question("c42b", (4,), given=("c42b",), check="06.3"),
        Question("c44", (8, 4), given=("c42b",)),
        Question("c20q", words=r"pixel is white|It is 1"),
        Question("c28", (0,), r"[Tt]rap|that is none", check="06.4"),
        Question("c34q", words=r"into the copy|0, 0 and 2"),
        Question("c60a", (0.06,), r"[Bb]lack|\b255\b", check="06.5", answer="smaller"),
        Question("c64a", words=r"second row|0\.5"),
    ],
    "07": [
        Question("c04", (1 / 64,), check="07.1"),
        Question("c09", (1000, 15.625)),
        Question("c14", words=r"[Ss]igmoids leave|vanishes|level: each"),
        Question("c18", (1,), r"^#+ Zero|the bias of the last", given=("c18",), check="07.2"),
        Question("c23", (1,), r"^#+ NaN|not its gradient", check="07.3"),
        Question("c37", (2, 1)),
        Question("c41", (2,), check="07.4"),
        Question("s03", (0.54, 0.84), r"at most 0\.25|is at most"),
    ],
    "08": [
        Question("c08", (2,), check="08.1"),
        Question("c10", (2, -1), given=("c08",)),
        Question("c16", (0,), given=("c14",), check="08.2"),
        Question("c22", (2,), check="08.3"),
        Question("c36a", words=r"corner|[Mm]ark|[Ss]hortcut"),
        Question("c38b", (7,), r"believes|says 7|[Ss]hortcut", given=("c38b",), check="08.4"),
        Question("c60", (8,), r"[Aa]ll eight|same heat", check="08.5"),
    ],
    "09": [
        Question("c14", words=r"`stem` and `head` do not|does not hold|[Ss]eventh", check="09.1", answer="stem, head"),
        Question("c21q", (32,), words=r"All 32|none is left", given=("c21q",)),
        Question("c44", words=r"[Bb]y 0|behind another", check="09.4", answer="0"),
        Question("c51a", words=r"[Ww]ith one:|luck"),
        Question("c57", (57, 76), words=r"[Tt]hree of"),
    ],
    "10": [
        Question("c12n", words=r"[Oo]nly `double`|keeps this 2"),
        Question("c20", (1024,), check="10.5"),
        Question("c26q", words=r"[Oo]nly the gradient of `c`|\bnothing\b|is empty|waits for its node"),
        Question("c28", words=r"'b', 'c'|with `c`|[Tt]he (?:hook|node) of `c`|last goes first"),
        Question("c10t", words=r"^The layer's|leaves the layer first|\['layer'"),
        Question("c13q", words=r"[Oo]nly `neck|never counted|never becomes ready"),
    ],
    "11": [
        Question("c10", (1, 1.05), given=("c13",)),
        Question("c15", (5,), r"as without the hook", given=("c15",), check="11.1"),
        Question("c22", (1,), given=("c13",), check="11.2"),
        Question("c27q", (17,)),
        Question("c31", (30,), r"other gradients", check="11.3"),
        Question("c44a", (2, 1), given=("c38",)),
        Question("c48p", words=r"A ?B ?D", check="11.4", answer="A B D F H C G E"),
        Question("c52", words=r"A ?B ?D"),
        Question("c63", (12,)),
        Question("c57f", words=r"[Tt]he one added after|later hook does run"),
    ],
    "12": [
        Question("c05q", (8,), r"did not record"),
        Question("c12q", (-14,), check="12.1"),
        Question("c16", (-14,)),
        Question("c34", (18,), r"do not know your hooks", check="12.2"),
        Question("c38", words=r"hook of the weight does not"),
        Question("c40a", words=r"raises an error|setup_context"),
        Question("c24", (12,), check="12.3"),
        Question("c41b", (0.155,), r"writes zeros|returns zeros|hook of the parameter"),
    ],
    "13": [
        Question("c05", (0.25,), check="13.1"),
        Question("c15", (4,), given=("c10", "c11"), check="13.2"),
        Question("c18", words=r"below the diagonal|the one before"),
        Question("c21", (4,), r"[Ii]nduction"),
        Question("c26", (-1,)),
        Question("c31", (75, 20), r"the same place|do its work"),
        Question("c36", (13,), r"the last one"),
        Question("c39", words=r"is lost|stops looking"),
        Question("c42", (20, 99), r"the answer moves"),
        Question("c47", words=r"about half|compete"),
        Question("c52", (0,), r"never calls", check="13.3"),
        Question("c63", (29,)),
    ],
    "14": [
        Question("c10", words=r"about ten epochs|jumps from"),
        Question("c09i", words=r"The last line but one"),
        Question("c69q", (6,), r"[Ww]ith six|cannot tell"),
        Question("c71", (13.5,)),
        Question("c66", (1,), r"looking can change", given=("c66",), check="14.2"),
        Question("c69", (0.0154,), r"[Oo]nly dropout|a fifth lower|just misses"),
    ],
}


def revealed_answers(notebook: Any, question: Question) -> list[str]:
    """Each cell in which the answer is visible, with the text that reveals it."""
    return [
        f"{cell}: {revealed}"
        for cell, text, numbers in _open_parts(notebook, question.cell)
        for revealed in _find_answer(question, cell, text, numbers)
    ]


def _find_answer(question: Question, cell: str, text: str, numbers: list[float]) -> list[str]:
    values = () if cell in question.given else question.values
    words = re.findall(question.words, text, re.MULTILINE) if question.words else []
    return [*(f"{number:g}" for number in numbers if number in values), *words]


def _open_parts(notebook: Any, question_id: str) -> list[tuple[str, str, list[float]]]:
    """For each cell around a question: its id, its visible text, and the numbers that it states."""
    parts = []
    for cell, source in _cells_around(notebook, question_id):
        if cell.cell_type == "markdown":
            text = REFERENCES.sub(" ", QUESTION_TEXT.sub(" ", FOLDED.sub(r"\1", source)))
            parts.append((cell.id, text, _numbers_in_text(re.sub(r"`[^`\n]*[a-z(][^`\n]*`", " ", text))))
        elif is_open(cell) and not is_check(cell):
            text = "\n".join(re.findall(r"#\s(.*)$", source, re.MULTILINE))
            parts.append((cell.id, text, _numbers_in_text(text)))
    return parts


def _cells_around(notebook: Any, question_id: str) -> list[tuple[Any, str]]:
    """The cells from the heading of the question's section to its *Explain*, each with its text in that section."""
    cells = notebook.cells
    at = next(n for n, cell in enumerate(cells) if cell.id == question_id)
    first = max((n for n in range(at + 1) if _split_sections(cells[n])[1:]), default=0)
    last = at + MIN_CELLS_AFTER_QUESTION + is_check(cells[at + 1])
    explains = (n for n in range(at, len(cells)) if EXPLAIN.search(cells[n].source))
    last = max(last, next(explains, last))
    found = [(cell, cell.source) for cell in cells[first : last + 1]]
    found[0] = cells[first], _split_sections(cells[first])[-1]
    for n, cell in enumerate(cells[at + 1 : last + 1], at + 1 - first):
        if _split_sections(cell)[1:]:  # the next section begins in this cell
            return [*found[:n], (cell, _split_sections(cell)[0])]
    return found


def _split_sections(cell: Any) -> list[str]:
    """Split the text of a cell before each second-level heading."""
    return re.split(r"^(?=## )", cell.source, flags=re.MULTILINE) if cell.cell_type == "markdown" else [cell.source]


def _numbers_in_text(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w|\.\d)", text)]


def lesson(number: str) -> Any:
    (path,) = FOLDER.glob(f"{number}_*.ipynb")
    return read_notebook(path.name)


@pytest.mark.parametrize("number", LESSONS)
def test_every_question_is_listed_and_its_answer_is_not_visible_before_it_is_asked_for(number: str) -> None:
    notebook, questions = lesson(number), LESSONS[number]
    texts = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    assert [cell.id for cell in texts if QUESTION_START.search(cell.source)] == [
        question.cell for question in questions
    ]
    revealed = {question.cell: revealed_answers(notebook, question) for question in questions}
    assert {cell: found for cell, found in revealed.items() if found} == {}
    for question in questions:
        answer = question.answer or next(iter(question.values), None)
        assert not question.check or check(question.check, answer).right, question


@pytest.mark.parametrize("number", LESSONS)
def test_details_blocks_are_well_formed_and_no_code_is_collapsed(number: str) -> None:
    """Without the empty lines, Markdown between the tags is not rendered. Only the solution checks the lesson."""
    assert all(map(is_open, lesson(number).cells))
    for cell in (cell for cell in lesson(number).cells if cell.cell_type == "markdown"):
        folded = re.findall(
            r"<details>\n<summary><b>[^<]+</b></summary>\n\n(.+?)\n\n</details>(?=\n\n|\Z)", cell.source, re.DOTALL
        )
        assert len(folded) == cell.source.count("<details>") == cell.source.count("</details>")
        assert not any(re.search(r"^#|<", text, re.MULTILINE) for text in folded)
        assert "**Explain.**" not in cell.source
