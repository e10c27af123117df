"""The commands, names, keys, numbers and versions in the README and in the player's manual are correct."""

import re
import tomllib
from pathlib import Path

import nbformat
import pytest
import torch

import hookviz as hv
from hookviz.analysis.formulas import derivatives
from hookviz.analysis.questions import grading
from hookviz.autograd import graph, tensor_statistics
from hookviz.course import quiz
from hookviz.picture.grouping import MAX_VISIBLE_BOXES
from hookviz.player.bundles import read_bundle
from hookviz.player.compression import pack
from hookviz.player.editions import make_editions
from hookviz.player.html_page import page, render_page
from hookviz.player.labels import screen_labels
from hookviz.player.payload import CHUNK_SIZE
from hookviz.player.trace_content import MAX_UNSPLIT_STEPS, OUTPUT_BOXES, OUTPUT_CHUNKS, TraceContent
from hookviz.player.widget import Player
from hookviz.recorder.passes import pass_observer, saved_tensors
from hookviz.support import progress
from hookviz.support.messages import languages
from hookviz.what_if import combinations
from noxfile import CLASSIC
from tests.course.test_notebooks import LESSONS
from tools.lesson_pages import read_facts

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
README_ON_ONE_LINE = " ".join(README.split())
MANUAL = (ROOT / "site" / "player.md").read_text(encoding="utf-8")
MANUAL_ON_ONE_LINE = " ".join(MANUAL.split())
PYTHON: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)


def programs_per_run(file: str) -> int:
    """The default number of programs that a test in tests/proof runs."""
    [count] = re.findall(r'"HOOKVIZ_PROGRAMS", ([\d_]+)\)', (ROOT / "tests" / "proof" / file).read_text())
    return int(count)


@pytest.fixture
def ten_lines() -> hv.Trace:
    """The trace of the README's first example."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    c.register_hook(lambda grad: grad + 2)
    e = c * d
    with hv.record() as trace:
        e.backward()
    return trace


def test_make_targets_and_variables_in_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"(?m)(?:^|`)make (\w+)", README))
    assert {"lab", "site", "test", "slides"} <= targets
    assert [target for target in targets if f"\n{target}: " not in makefile] == []
    variables = set(re.findall(r"\b([A-Z]+(?:_[A-Z]+)?)=", README)) - {languages.VARIABLE}
    assert [name for name in variables if f"\n{name} ?=" not in makefile] == []
    assert f"$({languages.VARIABLE})" in makefile


def test_names_of_the_api_in_the_readme_exist() -> None:
    assert [name for name in re.findall(r"\bhv\.(\w+)", README) if not hasattr(hv, name)] == []
    assert [name for name in re.findall(r"\btrace\.(\w+)\(", README) if not hasattr(hv.Trace, name)] == []
    traits = re.search(r"has the traits (.+?); each", MANUAL_ON_ONE_LINE)
    assert traits and set(re.findall(r"`(\w+)`", traits[1])) <= set(Player.class_trait_names(sync=True))


def read_keys(page: str) -> set[str]:
    """The keys in the table of a page."""
    table = re.search(r"\| key \|.+?\n\n", page, re.DOTALL)
    assert table
    rows = re.findall(r"(?m)^\| (?!key |---)(.+?) \|", table[0])
    return {key for row in rows for key in row.replace("·", " ").split()}


def test_keys_in_the_manual_match_the_key_list_of_the_player_and_the_readme_has_some_of_them() -> None:
    listed = [keys for name, keys in screen_labels().items() if name.startswith("keys_")]
    assert read_keys(MANUAL) == set(" ".join(listed).split())
    assert read_keys(README) < read_keys(MANUAL)


def test_claims_about_the_first_example_are_true(ten_lines: hv.Trace) -> None:
    formula, index = ten_lines.why(7)[0].text, 7
    assert (
        f"`trace.why({index})` | why a gradient is what it is: PyTorch's formula with the saved values, `{formula}`"
        in README_ON_ONE_LINE
    )
    assert quiz(ten_lines).check(1, 6).right
    assert "smaller than 130 KB, and with both languages smaller than 150 KB" in README_ON_ONE_LINE
    both = make_editions(lambda: TraceContent(ten_lines._data).full_content(), ["en", "zh"])
    assert len(page(ten_lines._data).encode()) < 130_000 < len(render_page(both).encode()) < 150_000
    bytes_of_assets = len(pack(read_bundle("page.js"))) + len(read_bundle("player.css").encode())
    assert "its script and style are about 95 KB of it" in README_ON_ONE_LINE and 90_000 < bytes_of_assets < 100_000


def test_numbers_in_the_readme_match_the_constants_of_the_code() -> None:
    total = programs_per_run("test_programs.py") + programs_per_run("test_nets.py")
    for sentence in (
        f"Python {PYTHON.removeprefix('>=')} or newer, make and 3 GB of disk",
        f"{total:,} generated programs, {programs_per_run('test_nets.py'):,} of them networks",
        f"A graph of more than {graph.MAX_DEPTH:,} nodes in a row",
        f"if a tensor has more than {tensor_statistics.MAX_KEPT_NUMBERS} numbers",
        f"if the graph has more than {pass_observer.SMALL_GRAPH} nodes",
        f"would keep more than {saved_tensors.MAX_SAVED_NUMBERS:,} numbers for formulas",
    ):
        assert sentence in README_ON_ONE_LINE, sentence


def test_numbers_in_the_manual_match_the_constants_of_the_code() -> None:
    assert f"Up to five hooks give up to {2**combinations.MAX_COMBINED} passes" in MANUAL_ON_ONE_LINE
    assert combinations.MAX_COMBINED == 5
    assert "Runs longer than a second" in MANUAL_ON_ONE_LINE and progress.DELAY == 1
    assert "within a thousandth" in MANUAL_ON_ONE_LINE and grading.TOLERANCE == 1 / 1000


def test_readme_states_the_number_of_formulas() -> None:
    entries = [row["entry"] for row in derivatives.load_formulas().values()]
    from_torch = len(entries) - entries.count(None)
    assert f"formulas for {len(entries)} kinds of node" in README_ON_ONE_LINE
    assert f"{from_torch} of them are read from entries in PyTorch's" in README_ON_ONE_LINE


def test_versions_in_the_readme_match_the_constraints() -> None:
    environments = re.search(r"\| environment \|.+?\n\n", README, re.DOTALL)
    assert environments
    versions = set(re.findall(r"\b\d+\.\d+\.\d+\b", environments[0]))
    classic = dict(requirement.split("==") for requirement in CLASSIC)
    expected = {PINS[name] for name in ("jupyterlab", "notebook", "nbconvert", "marimo", "anywidget")}
    assert versions == expected | {classic[name] for name in ("nbclassic", "ipywidgets")}


def test_lesson_table_of_the_readme_is_complete() -> None:
    rows = re.findall(r"(?m)^\| \[(\d\d .+?)\]\(notebooks/(.+?)\) \|", README)
    assert rows == [(read_facts(nbformat.read(path, as_version=4)).title, path.name) for path in LESSONS]


def test_limits_of_large_traces_in_the_manual_match_the_code() -> None:
    bounds = re.search(r"more than (\d+) boxes or more than (\d+) steps", MANUAL_ON_ONE_LINE)
    output = re.search(r"the first ([\d,]+) steps and the pictures of the first (\d+) boxes", MANUAL_ON_ONE_LINE)
    assert bounds and (int(bounds[1]), int(bounds[2])) == (MAX_VISIBLE_BOXES, MAX_UNSPLIT_STEPS)
    assert output and (int(output[1].replace(",", "")), int(output[2])) == (CHUNK_SIZE * OUTPUT_CHUNKS, OUTPUT_BOXES)
