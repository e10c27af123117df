"""The notebook of the final project runs, before and after it is solved, and does not give its answers away."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.waiting import PATIENCE

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOK, SOLUTION = FOLDER / "final_project.ipynb", FOLDER / "solutions" / "final_project.ipynb"


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def run(path: Path, folder: Path) -> Any:
    notebook = read(path)
    NotebookClient(notebook, timeout=int(PATIENCE), resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def printed(notebook: Any) -> str:
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs(notebook))


@pytest.fixture(scope="module", params=[NOTEBOOK, SOLUTION], ids=["student", "solution"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Path]:
    folder = tmp_path_factory.mktemp("project")
    return request.param, run(request.param, folder), folder


def test_it_runs_and_is_graded(ran: tuple[Path, Any, Path]) -> None:
    path, notebook, folder = ran
    verdict = (
        "not yet: Nothing was handed in yet" if path == NOTEBOOK else "right. All three faults, each in its place."
    )
    assert f"Exercise project.1{', ' if path == NOTEBOOK else ': '}{verdict}" in printed(notebook)
    assert not [output for output in outputs(notebook) if output.get("name") == "stderr"]
    assert [file.name for file in folder.iterdir()] == ([] if path == NOTEBOOK else ["answers.json"])


@pytest.mark.parametrize("path", [NOTEBOOK, SOLUTION], ids=["student", "solution"])
def test_it_keeps_within_its_limits(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    assert all(len(cell.splitlines()) <= 40 for cell in code)
    assert max(len(line) for cell in code for line in cell.splitlines()) <= 100


def test_the_students_notebook_has_no_answers() -> None:
    text = "\n".join(cell.source for cell in read(NOTEBOOK).cells)
    assert "assert" not in text and "findings = []" in text
    assert not re.search(r"\"(one_sided|frozen|wrong_copy|wrong_scale|vanishing|dead_units)\"", text)
    assert "### BEGIN" not in text and "Patient 3" not in text
    assert text.count("\n| ") > 8 and "lab book" in text


def test_the_solution_solves_three_patients() -> None:
    text = "\n".join(cell.source for cell in read(SOLUTION).cells)
    assert re.findall(r"## Patient (\d+), solved by hand", text) == ["1", "3", "18"]
    assert len(re.findall(r"assert grade\(\d+, findings\)\.score == 1", text)) == 3
