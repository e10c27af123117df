"""The atlas of hooks: the file fits the programs and the installed torch, its differences are explained, and the page.

``make atlas`` runs these tests; ``make test`` does not.
"""

import ast
import sys
from pathlib import Path

import pytest
import torch

from atlas.observer import GROUPS, find_api, observe, prepare, read_program, read_programs, run_alone, run_cell
from atlas.page import make_page
from atlas.results import FILE, QUESTIONS, find_faults, make_atlas, read_atlas, read_differences, runs_of, write_atlas

ATLAS = read_atlas()
PROGRAMS = read_programs()
INSTALLED = torch.__version__.split("+")[0]
PROGRAM = '''"""torch.Tensor.register_hook

An example.
"""

import torch

# %% when it
# It prints, warns
# and fails.
import warnings
print("one", 2)
warnings.warn("careful")
torch.nn.modules.module.register_module_forward_hook(lambda *given: print("global"))
print("<f at 0x7f12ab>")
1 / 0

# %% silent other
# A global hook of another situation is gone.

print(torch.nn.Identity()(torch.ones(1)))

# %% also end alone
# It ends the process.
import os
os.abort()
'''


def test_the_installed_torch_behaves_as_the_atlas_says() -> None:
    here = {"torch": INSTALLED, "python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    # Other Pythons word their errors differently, and on other systems a crash has another name.
    if here not in ATLAS["versions"] or sys.platform != "linux":
        pytest.skip(f"the atlas has no observations of torch {INSTALLED} with this Python on {sys.platform}")
    expected = next(run for run in runs_of(ATLAS, PROGRAMS) if run["torch"] == INSTALLED)
    prepare()
    assert observe() == expected


def test_the_file_is_made_of_the_programs_and_nothing_is_missing_or_unexplained() -> None:
    again = make_atlas(PROGRAMS, runs_of(ATLAS, PROGRAMS))
    assert write_atlas(again) == FILE.read_text(encoding="utf-8"), "run: make atlas"
    assert find_faults(ATLAS) == []
    assert "site-packages" not in FILE.read_text(encoding="utf-8")


def test_code_that_has_changed_and_differences_without_explanation_are_faults() -> None:
    changed, *others = PROGRAMS
    cell = changed.cells[0]._replace(code="print(1)")
    programs = [changed._replace(cells=[cell, *changed.cells[1:]]), *others]
    atlas = make_atlas(programs, runs_of(ATLAS, programs))
    place = f"{changed.key}#{cell.key}"
    assert find_faults(atlas) == [f"torch {version['torch']} has not run {place}" for version in ATLAS["versions"]]
    versions = [version["torch"] for version in ATLAS["versions"]]
    events = [{"versions": versions[:-1], "events": []}, {"versions": versions[-1:], "events": [{"printed": "new"}]}]
    atlas["entries"][0]["situations"][0]["results"] = events
    assert find_faults(atlas) == [f"Not explained in differences.toml: {place} [{tuple(versions[-2:])}]"]


def test_no_way_to_register_in_torch_is_missing() -> None:
    owners = ("Tensor", "nn.Module", "optim.Optimizer", "autograd.graph.Node", "autograd.graph", "nn.modules.module")
    public = {
        f"torch.{owner}.{name}"
        for owner in (*owners, "optim.optimizer")
        for name in dir(find_api(f"torch.{owner}"))
        if name.startswith("register_") and "hook" in name
    }
    assert len(public) > 20
    assert public <= {program.api for program in PROGRAMS}


def test_every_program_answers_every_question() -> None:
    assert {program.key.partition("/")[0] for program in PROGRAMS} == set(GROUPS)
    for program in PROGRAMS:
        asked = {cell.question for cell in program.cells}
        assert asked <= set(QUESTIONS), program.key
        assert not program.registers or asked >= {"when", "arguments", "changes", "silent"}, program.key
        assert "hookviz" not in program.path.read_text(encoding="utf-8")


def words_of_hooks(code: str) -> set[str]:
    """What functions and lambdas of a program print first, where that is a text."""
    functions = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    calls = [node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)]
    prints = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    return {first.value for first in prints if isinstance(first, ast.Constant)}


def test_hooks_that_are_said_to_be_silent_print_nothing() -> None:
    loud, checked = [], 0
    # In disable_saved_tensors_hooks, it is the refusal that does not come.
    for entry in (entry for entry in ATLAS["entries"] if entry["key"] != "graph/disable_saved_tensors_hooks"):
        for situation in (situation for situation in entry["situations"] if situation["question"] == "silent"):
            words = words_of_hooks(f"{entry['preamble']}\n{situation['code']}")
            for result in situation["results"] if words else ():
                printed = [f"{event.get('printed', '')} " for event in result["events"]]
                # A second hook may show that the pass went on.
                loud += [situation] if all(any(p.startswith(f"{w} ") for p in printed) for w in words) else []
                checked += 1
    assert loud == []
    assert checked > 50


def test_a_situation_shows_what_happened_in_its_order_and_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(PROGRAM)
    program = read_program(tmp_path / "example.py")
    first, second, third = program.cells
    assert (first.text, first.alone, third.alone) == ("It prints, warns and fails.", False, True)
    assert [PROGRAM.split("\n")[cell.line] for cell in program.cells] == [
        "import warnings",
        "print(torch.nn.Identity()(torch.ones(1)))",
        "import os",
    ]
    assert run_cell(program, first) == [
        {"printed": "one 2"},
        {"warning": "UserWarning", "text": "careful"},
        {"printed": "<f at 0x…>"},
        {"error": "ZeroDivisionError", "text": "division by zero"},
    ]
    assert run_cell(program, second) == [{"printed": "tensor([1.])"}]
    assert run_alone(program, third) == [{"crash": "SIGABRT", "text": "the process ended here"}]


def test_explanations_name_the_versions_between_which_something_changed() -> None:
    kinds = {difference["kind"] for difference in read_differences()}
    assert kinds == {"behaviour", "interface", "wording", "surprise"}
    page = make_page(ATLAS)
    for difference in read_differences():
        assert f"**{difference['title']}**" in page
        assert bool(difference["meaning"]) or difference["kind"] in ("wording", "surprise")
        assert (f"**{difference['title']}** (changed between" in page) == (difference["kind"] != "surprise")


def test_links_of_the_page_lead_somewhere() -> None:
    page = make_page(ATLAS)
    names = {line.strip("()=") for line in page.split("\n") if line.startswith("(atlas-")} | {"the-file"}
    targets = {part.partition(")")[0] for part in page.split("](#")[1:]}
    assert len(targets) > 50
    assert targets <= names
