"""The lessons run, keep within their limits, and a cell asserts every number in their prose."""

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

from hookviz.course.exercises import JUDGES
from hookviz.player.compression import unpack
from tests.course.reading import FOLDER, read_notebook, read_solution
from tools.lesson_pages import MAP, is_check
from tools.lessons import YOUR_LINES
from tools.notebook_runs import run_with_solutions

LESSONS = sorted(FOLDER.glob("[01]*.ipynb"))
NOT_A_CLAIM = re.compile(
    r"^```python$(?s:.*?)^```$"  # programs, which test_other_frameworks.py checks
    r"|`[^`]*(?:def|return) [^`]*`"  # code that a reader is shown or asked for
    r"|\[step \d+\]\(#step-\d+\)|\]\([^)]*\)|\[\d\d [^]]*\]"  # links, and the steps and lessons they lead to
    r"|PyTorch \d(?:\.\d)?|Version \d"
    r"|^\| \d\d (?=\|)"  # the case file numbers its lessons
    r"|^\[The course\]\(README\.md\): .*$"  # the map
    r"|[Ll]esson \d+|\d+ minutes|^\d\. |^# .*$"  # lists, titles
    r"|^\*\*\d\d\.\d\*\*"  # an exercise of a lesson's body
    r"|^## Exercises$(?s:.*?)^(?=## )",  # test_exercises.py checks these
    re.MULTILINE,
)
"""Numbers in prose that are not claims about values."""

USUAL_MEGABYTES, MEGABYTES = 600, {"06": 700, "08": 700, "09": 700, "14": 700}
"""The limit of peak memory, and the higher limits of lessons that train a network on pictures."""
CUDA_MEGABYTES = 350
"""The additional memory of a CUDA build of torch with its compiler imported."""
CUDA_ALLOWANCE = CUDA_MEGABYTES if torch.version.cuda else 0
HANDED_IN = re.compile(r'check\("\d\d\.\d", (\w+)\)')
"""A check of a function or class that has a gap for the student's lines."""
YOUR_OWN_LINES = "# your own lines here"
"""Marks a line that runs until the student writes better ones."""
CASE_FILE_ROW = re.compile(r"^\| (0\d) \|(?: .+ \|)+$", re.MULTILINE)


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def lesson(request: pytest.FixtureRequest) -> Any:
    """A lesson without the cell that installs hookviz."""
    return read_notebook(request.param.name)


@pytest.fixture(scope="module", params=LESSONS, ids=lambda path: path.stem)
def lesson_run(request: pytest.FixtureRequest) -> Any:
    """The lesson's solution after a run in a fresh kernel, without the cell that installs hookviz.

    The student's version is the same without the marked lines; the browser tests run it.
    """
    return run_with_solutions(request.param)


def code(notebook: Any) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook: Any) -> str:
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def steps_of_player(cell: Any) -> int | None:
    """The number of steps of the last player in the outputs of a cell; None if it shows no player."""
    pages = [output.get("data", {}).get("text/html", "") for output in cell.get("outputs", [])]
    found = re.findall(r'class="hv-state">([^<]+)<', "".join(pages))
    return unpack(found[-1])["content"]["runs"][0]["steps"] if found else None


def shows_picture(cell: Any) -> bool:
    shown = [output.get("data", {}) for output in cell.get("outputs", [])]
    return any({"image/svg+xml", "image/png"} & data.keys() or "<svg" in data.get("text/html", "") for data in shown)


def written_to_stderr(notebook: Any) -> list[str]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.text for output in outputs if output.get("name") == "stderr"]


def test_lesson_runs_in_a_fresh_kernel_within_its_memory_limit(lesson_run: Any, request: pytest.FixtureRequest) -> None:
    memory, _ = lesson_run.metadata.used
    assert memory <= MEGABYTES.get(request.node.callspec.id[:2], USUAL_MEGABYTES) + CUDA_ALLOWANCE
    assert written_to_stderr(lesson_run) == []
    assert any(map(shows_picture, lesson_run.cells[:4]))


def test_every_answer_in_the_solution_is_right(lesson_run: Any, request: pytest.FixtureRequest) -> None:
    exercises = [name for name in JUDGES if name.startswith(request.node.callspec.id[:2])]
    printed = [cell.outputs[-1].data["text/plain"] for cell in lesson_run.cells if is_check(cell)]
    assert [text.partition(": right.")[0] for text in printed] == [f"Exercise {name}" for name in exercises]


def test_each_step_link_names_a_step_of_the_player_above_it(lesson_run: Any) -> None:
    steps, linked = 0, 0
    for cell in lesson_run.cells:
        for number in map(int, re.findall(r"\]\(#step-(\d+)\)", cell.source)):
            assert 1 <= number <= steps, f"step {number} of {steps}"
            linked += 1
        steps = steps_of_player(cell) or steps
    assert linked >= 2


def test_notebooks_are_committed_without_outputs_and_with_a_kernelspec() -> None:
    for path in [*FOLDER.glob("*.ipynb"), *FOLDER.glob("solutions/*.ipynb")]:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert all(cell.outputs == [] and cell.execution_count is None for cell in notebook.cells if "outputs" in cell)
        assert notebook.metadata.kernelspec.name == "python3"


def test_lesson_keeps_within_its_size_limits(lesson: Any) -> None:
    """JupyterLab shows 105 characters of a line on a screen 1280 wide with its side bar open."""
    lines = [[line for line in cell.splitlines() if line.strip()] for cell in code(lesson)]
    assert 20 <= len(lesson.cells) <= 90
    assert 1_000 <= len(re.sub(r"</?\w+>", " ", prose(lesson)).split()) <= 4_000
    assert max(map(len, lines)) <= 40
    assert max(len(line) for cell in lines for line in cell) <= 100


def test_lesson_asks_for_predictions_and_uses_predict_a_what_if_and_exercises(lesson: Any) -> None:
    text = prose(lesson)
    assert text.count("**Predict.**") >= 3
    assert text.count("<summary><b>Explain</b></summary>\n") >= 3
    assert re.search(r"[Pp]ress \*\*Predict\*\*", text) and "hv.whatif(" in "\n".join(code(lesson))
    assert len(re.findall(r"^\*\*\d\d\.\d\*\*", text, re.MULTILINE)) >= 2
    assert re.search(r"^\*\*\d\d\.\d\*\*", text.partition("## Exercises")[2], re.MULTILINE)
    assert all((FOLDER / target).exists() for target in re.findall(r"\]\(([\w./]+)\)", text))


def test_each_exercise_has_a_check_with_an_empty_answer(lesson: Any, request: pytest.FixtureRequest) -> None:
    number = request.node.callspec.id[:2]
    exercises = re.findall(r'^check\("(\d\d\.\d)", \w+\)', "\n".join(code(lesson)), re.MULTILINE)
    assert exercises == [name for name in JUDGES if name.startswith(number)]
    cells = [cell.source for cell in lesson.cells if is_check(cell)]
    assert len(cells) == len(exercises)
    assert all(cell.startswith("answer = None") or HANDED_IN.fullmatch(cell) for cell in cells)
    names = [match[1] for cell in cells if (match := HANDED_IN.fullmatch(cell))]
    gaps = [cell for cell in code(lesson) if YOUR_LINES in cell or YOUR_OWN_LINES in cell]
    assert all(any(re.search(rf"^(?:def|class) {name}\b", cell, re.MULTILINE) for cell in gaps) for name in names)


def test_every_number_in_the_prose_is_asserted_by_a_cell_of_the_solution(
    lesson: Any, request: pytest.FixtureRequest
) -> None:
    solution = read_solution(f"{request.node.callspec.id}.ipynb")
    claimed = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", NOT_A_CLAIM.sub(" ", prose(lesson))))
    assert len(claimed) > 5
    assert sorted(claimed - asserted_numbers(solution)) == []


def asserted_numbers(notebook: Any) -> set[str]:
    """The numbers in the ``assert`` statements of a notebook."""
    trees = [ast.walk(ast.parse(cell)) for cell in code(notebook)]
    asserts = [node for tree in trees for node in tree if isinstance(node, ast.Assert)]
    leaves = [leaf for node in asserts for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)]
    return {f"{leaf.value:g}" for leaf in leaves if type(leaf.value) in (int, float)}


def course_map(path: Path) -> str:
    """The course map of a lesson, with the bold number replaced by a link to the lesson."""
    [line] = MAP.findall(prose(nbformat.read(path, as_version=4)))
    assert re.findall(r"\*\*.*?\*\*", line) == [f"**{path.stem[:2]}**"]
    return str(line.replace(f"**{path.stem[:2]}**", f"[{path.stem[:2]}]({path.name})"))


def test_each_lesson_has_the_course_map_with_its_own_number_in_bold() -> None:
    maps = {course_map(path) for path in LESSONS}
    assert len(maps) == 1
    entries = maps.pop().split("&nbsp;·&nbsp;")
    assert entries == [*sorted(entries[:-1]), "[Words](glossary.md)"]
    assert {f"[{path.stem[:2]}]({path.name})" for path in LESSONS} == set(entries[:-1])


def test_each_lesson_ends_with_links_to_the_previous_and_next_lesson() -> None:
    order = re.findall(r"\((\d\d_\w+\.ipynb)\)", course_map(LESSONS[-1]))
    for path in LESSONS:
        index = order.index(path.name)
        end = nbformat.read(path, as_version=4).cells[-1].source
        neighbours = order[max(index - 1, 0) : index] + order[index + 1 : index + 2]
        assert all(f"]({name})" in end for name in neighbours)


def test_lesson_09_has_a_row_of_the_case_file_for_each_lesson_before_it_and_the_others_at_most_their_own() -> None:
    rows = {path.name[:2]: CASE_FILE_ROW.findall(prose(read_notebook(path.name))) for path in LESSONS}
    assert rows.pop("09") == [f"{number:02}" for number in range(1, 9)]
    assert [number for number, shown in rows.items() if not {*shown} <= {number}] == []
