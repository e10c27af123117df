"""A lesson is its solution without the marked lines, and its checks do not pass without them."""

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tools.lessons import NOTEBOOKS, link_lessons, make_student_notebook, remove_solutions

SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def test_each_student_notebook_has_its_solution() -> None:
    assert [path.name for path in SOLUTIONS] == sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_lesson_is_generated_from_its_solution(path: Path) -> None:
    assert read(NOTEBOOKS / path.name) == make_student_notebook(path), "run: make lessons"


def notebook_of(*sources: str) -> Any:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def test_solutions_and_checks_of_what_a_lesson_says_are_removed_with_cells_left_empty() -> None:
    marked = "### BEGIN SOLUTION\nanswer = 7\n### END SOLUTION"
    tests = "### BEGIN HIDDEN TESTS\nassert a == 4\n### END HIDDEN TESTS"
    match = remove_solutions(notebook_of("answer = None\n" + marked + "\ncheck(answer)", marked, "a\n" + tests, tests))
    assert [cell.source for cell in match.cells] == ["answer = None\ncheck(answer)", "a"]


def test_lines_inside_a_function_are_replaced_by_a_line_that_does_nothing() -> None:
    lines = "    ### BEGIN SOLUTION\n    y = x\n\n    y += 1\n    ### END SOLUTION\n"
    [cell] = remove_solutions(notebook_of(f"def f(x):\n    y = 0\n{lines}    return y\n\n\nf(1)")).cells
    assert cell.source == "def f(x):\n    y = 0\n    pass  # your lines\n    return y\n\n\nf(1)"


@pytest.mark.parametrize(
    "source",
    ["### BEGIN SOLUTION\n1", "1\n### END SOLUTION", "### BEGIN SOLUTION\n### END HIDDEN TESTS"],
)
def test_unbalanced_solution_marks_raise_an_error(source: str) -> None:
    with pytest.raises(ValueError, match="not ended, or ended and not begun"):
        remove_solutions(notebook_of(source))


README = """
| [02 Tensor hooks](02_tensor_hooks.ipynb) | Which? | 40 minutes |
| [05 Handles](05_handles.ipynb) | How? | 40 minutes |
| W1a | one | [02, "Values"](02_tensor_hooks.ipynb#cell-id=c09) · [page, "`a`"](page.ipynb#cell-id=two) |
| W1b | other | [02, "Else"](02_tensor_hooks.ipynb#cell-id=c10) · [page, "`b`"](page.ipynb#cell-id=three) |
"""


def test_entries_of_the_page_link_to_the_cells_that_the_map_names_or_to_the_lesson() -> None:
    text = nbformat.v4.new_markdown_cell("### `a`\n\nIt is so.\n\nIn the lessons: 02, 05.")
    cells = [text, nbformat.v4.new_code_cell("1"), nbformat.v4.new_code_cell("2"), nbformat.v4.new_markdown_cell("3")]
    cells[2].id = "two"
    linked = link_lessons(nbformat.v4.new_notebook(cells=[*cells, nbformat.v4.new_code_cell("4")]), README)
    assert linked.cells[0].source == (
        '### `a`\n\nIt is so.\n\nIn the lessons: [02, "Values"](02_tensor_hooks.ipynb#cell-id=c09) · '
        "[05 Handles](05_handles.ipynb)."
    )
    assert linked.cells[1:] == [*cells[1:], linked.cells[-1]] and text.source.endswith("02, 05.")
