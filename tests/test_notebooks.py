"""The lessons run, keep to their bars, and state no number that no cell asserts."""

import ast
import re
import statistics
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"
LESSONS = sorted(FOLDER.glob("[01]*.ipynb"))
NOT_A_CLAIM = re.compile(
    r"`[^`]*`|\]\([^)]*\)|PyTorch \d(\.\d)?|[Ll]esson \d+|\d+ minutes|\[?\d\d [A-Z]|\*\*\d\d\.\d\*\*|^\d\. ", re.M
)
"""Code, links, versions, lessons, how long a lesson takes, exercises, list numbers."""
MEMORY = "import resource; resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024"


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def lesson(request: pytest.FixtureRequest) -> Any:
    return nbformat.read(request.param, as_version=4)


@pytest.fixture(scope="module", params=LESSONS, ids=lambda path: path.stem)
def ran(request: pytest.FixtureRequest) -> tuple[Any, float]:
    """The lesson after it ran in a fresh kernel, and how long that took."""
    notebook = nbformat.read(request.param, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(MEMORY))
    start = time.monotonic()
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(FOLDER)}}).execute()
    return notebook, time.monotonic() - start


def code(notebook: Any) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook: Any) -> str:
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def shows_picture(cell: Any) -> bool:
    kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
    return bool(kinds & {"image/svg+xml", "application/vnd.jupyter.widget-view+json"})


def test_there_are_lessons() -> None:
    assert [path.stem for path in LESSONS][:2] == ["01_the_graph", "02_tensor_hooks"]


def test_it_runs_in_a_fresh_kernel_within_its_time_and_memory(ran: tuple[Any, float]) -> None:
    notebook, seconds = ran
    memory = int(notebook.cells[-1].outputs[0].data["text/plain"])
    print(f"{seconds:.1f} s, {memory} MB at the peak")
    assert seconds <= 30
    assert memory <= 450


def test_the_first_picture_comes_by_the_third_cell(ran: tuple[Any, float]) -> None:
    assert any(shows_picture(cell) for cell in ran[0].cells[:3])


def test_no_cell_writes_to_stderr(ran: tuple[Any, float]) -> None:
    outputs = [output for cell in ran[0].cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


def test_it_is_kept_without_outputs_and_with_a_kernel(lesson: Any) -> None:
    nbformat.validate(lesson)
    assert all(not cell.outputs and cell.execution_count is None for cell in lesson.cells if cell.cell_type == "code")
    assert lesson.metadata.kernelspec.name == "python3"


def test_it_keeps_to_the_size_of_a_lesson(lesson: Any) -> None:
    lines = [len([line for line in cell.splitlines() if line.strip()]) for cell in code(lesson)]
    assert 30 <= len(lesson.cells) <= 60
    assert 1_000 <= len(prose(lesson).split()) <= 2_000
    assert sum(lines) <= 120
    assert statistics.median(lines) <= 4


def test_it_asks_for_a_prediction_three_times_and_explains_each(lesson: Any) -> None:
    assert prose(lesson).count("**Predict.**") >= 3
    assert prose(lesson).count("**Explain.**") >= 3


def test_it_has_two_exercises_that_are_checked(lesson: Any) -> None:
    assert len(re.findall(r'hv\.check\("\d\d\.\d"', "\n".join(code(lesson)))) >= 2


def test_every_number_in_its_prose_is_asserted_or_put_in(lesson: Any) -> None:
    stated = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", NOT_A_CLAIM.sub(" ", prose(lesson))))
    assert sorted(stated - numbers(lesson, ast.Assert) - numbers(lesson, ast.Call, ast.BinOp)) == []


def numbers(notebook: Any, *kinds: type[ast.AST]) -> set[str]:
    """The numbers that stand in an assert, or that a lesson puts in: an argument, a factor."""
    trees = [ast.walk(ast.parse(cell)) for cell in code(notebook)]
    places = [node for tree in trees for node in tree if isinstance(node, kinds)]
    return {f"{leaf.value:g}" for node in places for leaf in ast.walk(node) if is_number(leaf)}  # type: ignore[attr-defined]


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def test_its_links_lead_somewhere(lesson: Any) -> None:
    for target in re.findall(r"\]\(([\w./]+)\)", prose(lesson)):
        assert (FOLDER / target).exists()
