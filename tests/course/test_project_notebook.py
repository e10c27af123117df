"""The notebook of the final project runs, before and after it is solved, and does not give its answers away."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from hookviz.course.project import KINDS
from tests.course.reading import FOLDER
from tests.course.test_notebooks import written_to_stderr
from tools.notebook_runs import run_cells

NOTEBOOK, SOLUTION = FOLDER / "final_project.ipynb", FOLDER / "solutions" / "final_project.ipynb"


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def printed(notebook: Any) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


@pytest.fixture(scope="module", params=[NOTEBOOK, SOLUTION], ids=["student", "solution"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Path]:
    folder = tmp_path_factory.mktemp("project")
    return request.param, run_cells(read(request.param), folder), folder


def test_it_runs_and_is_graded(ran: tuple[Path, Any, Path]) -> None:
    path, notebook, folder = ran
    text = printed(notebook)
    if path == NOTEBOOK:
        assert "Exercise project.practice-1, not yet: Hand in three findings." in text
        assert "Exercise project.detectors, not yet: The dict is empty." in text
    else:
        assert "Exercise project.practice-57558: right. Right: 3 of 3. This patient is for practice" in text
        assert "Exercise project.detectors: right. Detectors that pass in this try: 3." in text
    assert written_to_stderr(notebook) == []
    assert [file.name for file in folder.iterdir()] == ([] if path == NOTEBOOK else ["answers.json"])


def test_the_students_notebook_has_no_answers() -> None:
    text = "\n".join(cell.source for cell in read(NOTEBOOK).cells)
    assert "assert" not in text and "findings = []" in text and "detectors = {}" in text
    assert not re.search(r"\"(not_in_optimizer|scaled_gradient|wrong_copy|wrong_scale|vanishing|dead_units)\"", text)
    assert "### BEGIN" not in text and "57558" not in text
    assert "lab book" in text


def test_the_lecturer_reads_the_rule_and_the_points_in_the_words_of_the_notebook() -> None:
    [rules] = [cell.source for cell in read(NOTEBOOK).cells if "\n> " in cell.source]
    page = (FOLDER.parent / "site" / "lecturer.md").read_text()
    for shared in (r"(?m)(^> .+\n)+", r"(?m)^\| lab book, 15 points(.*\n?\|.+)+"):
        found = re.search(shared, rules)
        assert found and found[0] in page


TAUGHT = {
    "called_by_forward": ("05", "not fire"),
    "cut": ("01", "find_silent"),
    "dead_units": ("03", r"0 for every|\bdead\b|0 for \*every"),
    "edits_in_place": ("02", "in place"),
    "frozen": ("01", "requires_grad"),
    "huge_weights": ("07", "[Ee]xplod"),
    "leak": ("05", "keeps its graph alive"),
    "norm_in_eval": ("14", "[Bb]atch norm"),
    "not_in_optimizer": ("09", "stand_still"),
    "one_sided": ("02", r"clamp\(max=0\)"),
    "returning_hook": ("03", "returns replaces"),
    "scaled_gradient": ("04", "grad_input"),
    "shared_weights": ("06", "share"),
    "vanishing": ("07", "[Ss]igmoid"),
    "wrong_copy": ("05", "not fire"),
    "wrong_scale": ("06", "255"),
}
"""Kind → the lesson that teaches what finds it, and what stands there."""


def test_a_lesson_teaches_what_finds_each_kind() -> None:
    assert set(TAUGHT) == set(KINDS)
    for kind, (number, said) in TAUGHT.items():
        [lesson] = FOLDER.glob(f"{number}_*.ipynb")
        assert re.search(said, "\n".join(cell.source for cell in read(lesson).cells)), (kind, number)
    table = "\n".join(cell.source for cell in read(SOLUTION).cells)
    for kind in KINDS:
        [row] = re.findall(rf"^\| `{kind}` \| .+ \| (.+) \|$", table, re.MULTILINE)
        assert row.startswith(TAUGHT[kind][0])
