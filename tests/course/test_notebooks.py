"""The lessons run, keep to their bars, and state no number that no cell asserts."""

import ast
import re
import statistics
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from hookviz.course.exercises import JUDGES
from hookviz.player.compression import unpack
from tests.waiting import PATIENCE
from tools.lesson_pages import MAP, is_open

FOLDER = Path(__file__).parents[2] / "notebooks"
LESSONS = sorted(FOLDER.glob("[01]*.ipynb"))
NOT_A_CLAIM = re.compile(
    r"`[^`]*(?:def|return) [^`]*`"  # code that a reader is shown or asked for
    r"|\[step \d+\]\(#step-\d+\)|\]\([^)]*\)|\[\d\d [^]]*\]"  # links, and the steps and lessons they lead to
    r"|PyTorch \d(?:\.\d)?|Version \d"
    r"|^\[The course\]\(README\.md\): .*$"  # the map
    r"|[Ll]esson \d+|\d+ minutes|^\d\. |^# .*$"  # lists, titles
    r"|^## Exercises$(?s:.*?)^(?=## )",  # what they ask is in test_quiz.py
    re.MULTILINE,
)
"""Numbers in prose that state nothing a cell could assert."""
USED = """import time
with open("/proc/self/status") as status:
    peak = [int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM")]
peak[0], time.process_time()"""
"""The peak of the kernel alone: ``ru_maxrss`` begins with the peak of the process that started it."""


USUAL, MEGABYTES = 450, {"08": 700, "09": 700}
"""How much memory a lesson may take at its peak, and those that take more: they train a network on pictures."""
CUDA = 350
"""A build of torch for CUDA takes up to so much more, once it and what it compiles with are imported."""
ROOM = CUDA if torch.version.cuda else 0

RANDOM = [path for path in LESSONS if path.name[:2] in ("04", "05", "06", "10")]
"""Lessons whose players show weights that torch draws."""


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def lesson(request: pytest.FixtureRequest) -> Any:
    return nbformat.read(request.param, as_version=4)


@pytest.fixture(scope="module", params=LESSONS, ids=lambda path: path.stem)
def ran(request: pytest.FixtureRequest) -> tuple[Any, float]:
    """The lesson with its solutions after it ran in a fresh kernel, and how long that took.

    The student's version is the same without some lines; the tests in a browser run that.
    """
    start = time.monotonic()
    return run(FOLDER / "solutions" / request.param.name), time.monotonic() - start


def run(path: Path) -> Any:
    """The notebook at ``path`` after it ran; its last cell tells what it took."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(USED))
    NotebookClient(notebook, timeout=int(PATIENCE), resources={"metadata": {"path": str(FOLDER)}}).execute()
    return notebook


def code(notebook: Any) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook: Any) -> str:
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def states(cell: Any) -> list[str]:
    """What is in the players that the cell shows, packed."""
    pages = [output.get("data", {}).get("text/html", "") for output in cell.get("outputs", [])]
    return re.findall(r'class="hv-state">([^<]+)<', "".join(pages))


def steps_of_player(cell: Any) -> int | None:
    """How many steps the player has that the cell shows; None if it shows none."""
    found = states(cell)
    return unpack(found[-1])["content"]["runs"][0]["steps"] if found else None


def used(notebook: Any, waited: float) -> tuple[int, float]:
    """(megabytes at the peak, seconds) that a notebook took: of a processor's time, since other tests run beside it."""
    memory, seconds = ast.literal_eval(notebook.cells[-1].outputs[0].data["text/plain"])
    print(f"{seconds:.1f} s of a processor's time, {waited:.1f} s by the clock, {memory} MB at the peak")
    return memory, seconds


def shows_picture(cell: Any) -> bool:
    kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
    return "image/svg+xml" in kinds


def test_there_are_lessons() -> None:
    assert [path.stem for path in LESSONS][:2] == ["01_the_graph", "02_tensor_hooks"]


def test_it_runs_in_a_fresh_kernel_within_its_time_and_memory(
    ran: tuple[Any, float], request: pytest.FixtureRequest
) -> None:
    memory, seconds = used(*ran)
    assert seconds <= 30
    assert memory <= MEGABYTES.get(request.node.callspec.id[:2], USUAL) + ROOM


@pytest.mark.parametrize("ran", RANDOM, ids=lambda path: path.stem, indirect=True)
def test_networks_with_weights_that_torch_draws_look_the_same_each_time(
    ran: tuple[Any, float], request: pytest.FixtureRequest
) -> None:
    again = run(FOLDER / "solutions" / f"{request.node.callspec.id}.ipynb")
    assert [*map(states, again.cells)] == [*map(states, ran[0].cells)]


def test_the_first_picture_comes_by_the_third_cell(ran: tuple[Any, float]) -> None:
    assert any(shows_picture(cell) for cell in ran[0].cells[:3])


def test_every_answer_of_its_solution_is_right(ran: tuple[Any, float], request: pytest.FixtureRequest) -> None:
    asked = [name for name in JUDGES if name.startswith(request.node.callspec.id[:2])]
    checks = [cell for cell in ran[0].cells if "hv.check(" in cell.source]
    expected = [f"Exercise {name}: right." for name in asked]
    said = [cell.outputs[-1].data["text/plain"] for cell in checks]
    assert [text[: len(right)] for text, right in zip(said, expected, strict=True)] == expected


def test_each_link_to_a_step_names_one_of_the_player_above_it(ran: tuple[Any, float]) -> None:
    steps, linked = 0, 0
    for cell in ran[0].cells:
        for number in map(int, re.findall(r"\]\(#step-(\d+)\)", cell.source)):
            assert 1 <= number <= steps, f"step {number} of {steps}"
            linked += 1
        steps = steps_of_player(cell) or steps
    assert linked >= 2


def test_no_cell_writes_to_stderr(ran: tuple[Any, float]) -> None:
    outputs = [output for cell in ran[0].cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


def test_it_is_kept_without_outputs_and_with_a_kernel(lesson: Any) -> None:
    nbformat.validate(lesson)
    assert all(not cell.outputs and cell.execution_count is None for cell in lesson.cells if cell.cell_type == "code")
    assert lesson.metadata.kernelspec.name == "python3"


def test_it_keeps_to_the_size_of_a_lesson(lesson: Any) -> None:
    """A closed check takes one line of a screen: it does not count as a cell."""
    lines = [len([line for line in cell.splitlines() if line.strip()]) for cell in code(lesson)]
    assert 30 <= sum(map(is_open, lesson.cells)) <= 60
    assert 1_000 <= len(re.sub(r"</?\w+>", " ", prose(lesson)).split()) <= 2_000
    assert max(lines) <= 40
    assert statistics.median(lines) <= 4


def test_no_line_of_code_runs_past_the_edge_of_a_cell(lesson: Any) -> None:
    """JupyterLab shows 105 characters on a screen 1280 wide with its side bar open."""
    assert max(len(line) for cell in code(lesson) for line in cell.splitlines()) <= 100


def test_it_asks_for_a_prediction_three_times_and_explains_each(lesson: Any) -> None:
    assert prose(lesson).count("**Predict.**") >= 3
    assert prose(lesson).count("<summary><b>Explain</b></summary>\n") >= 3


def test_one_pass_is_predicted_in_the_player_and_one_is_run_with_something_changed(lesson: Any) -> None:
    assert re.search(r"[Pp]ress \*\*Predict\*\*", prose(lesson))
    assert "hv.whatif(" in "\n".join(code(lesson))


def test_each_of_its_questions_has_a_check_and_waits_for_an_answer(lesson: Any, request: pytest.FixtureRequest) -> None:
    number = request.node.callspec.id[:2]
    asked = re.findall(r'hv\.check\("(\d\d\.\d)", answer\)', "\n".join(code(lesson)))
    assert asked == [name for name in JUDGES if name.startswith(number)]
    cells = [cell for cell in code(lesson) if "hv.check" in cell]
    assert len(cells) == len(asked) and all(cell.startswith("answer = None") for cell in cells)


def test_it_has_two_exercises_or_more(lesson: Any) -> None:
    exercises = prose(lesson).partition("## Exercises")[2]
    assert len(re.findall(r"^\*\*\d\d\.\d\*\*", exercises, re.MULTILINE)) >= 2


def test_every_number_in_its_prose_is_asserted(lesson: Any) -> None:
    stated = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", NOT_A_CLAIM.sub(" ", prose(lesson))))
    assert len(stated) > 5
    assert sorted(stated - asserted(lesson)) == []


def asserted(notebook: Any) -> set[str]:
    """The numbers that stand in an assert."""
    trees = [ast.walk(ast.parse(cell)) for cell in code(notebook)]
    asserts = [node for tree in trees for node in tree if isinstance(node, ast.Assert)]
    return {f"{leaf.value:g}" for node in asserts for leaf in ast.walk(node) if is_number(leaf)}  # type: ignore[attr-defined]


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def test_its_links_lead_somewhere(lesson: Any) -> None:
    for target in re.findall(r"\]\(([\w./]+)\)", prose(lesson)):
        assert (FOLDER / target).exists()


def map_of(path: Path) -> str:
    """The map in a lesson's first cell, with a link to the lesson itself where its number is bold."""
    [line] = MAP.findall(nbformat.read(path, as_version=4).cells[0].source)
    assert re.findall(r"\*\*.*?\*\*", line) == [f"**{path.stem[:2]}**"]
    return str(line.replace(f"**{path.stem[:2]}**", f"[{path.stem[:2]}]({path.name})"))


def test_each_lesson_begins_with_the_same_map_in_which_it_is_bold() -> None:
    maps = {map_of(path) for path in LESSONS}
    assert len(maps) == 1
    places = maps.pop().split("&nbsp;·&nbsp;")
    assert places == [*sorted(places[:-1]), "[Words](glossary.md)"]
    assert {f"[{path.stem[:2]}]({path.name})" for path in LESSONS} <= set(places)


def test_each_lesson_ends_with_links_to_its_neighbours() -> None:
    order = re.findall(r"\((\d\d_\w+\.ipynb)\)", map_of(LESSONS[0]))
    for path in LESSONS:
        place = order.index(path.name)
        end = nbformat.read(path, as_version=4).cells[-1].source
        neighbours = order[max(place - 1, 0) : place] + order[place + 1 : place + 2]
        assert all(f"]({name})" in end for name in neighbours)
