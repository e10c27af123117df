"""The atlas of hooks: its programs, the file that they make, the explained differences, and the page."""

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

from tools.atlas.__main__ import list_pythons
from tools.atlas.atlas_file import FILE, QUESTIONS, find_gaps, merge, observations_of, read_atlas
from tools.atlas.differences import KINDS, boundaries, find_changes, read_explanations, read_surprises
from tools.atlas.environments import PROGRAMS, observe, update_file
from tools.atlas.observer import Program, find_api, normalize, read_program, read_programs, run_alone, run_cell
from tools.atlas.page import GROUPS, make_page, short_name, write_page
from tools.torch_versions import Release

ATLAS = read_atlas()
READ = read_programs(PROGRAMS)
VERSIONS = [version["torch"] for version in ATLAS["versions"]]
INSTALLED = torch.__version__.split("+")[0]


def write_program(folder: Path, *cells: str, preamble: str = "import torch") -> Program:
    path = folder / "tensors" / "example.py"
    path.parent.mkdir(exist_ok=True)
    text = "\n\n".join(f"# %% {cell}" for cell in cells)
    path.write_text(f'"""torch.Tensor.register_hook\n\nAn example.\n"""\n\n{preamble}\n\n{text}\n')
    return read_program(path)


def events_of(tmp_path: Path, code: str) -> list[dict[str, str]]:
    program = write_program(tmp_path, f"when it\n# It happens.\n{code}")
    return run_cell(program, program.cells[0])


# -- the committed file


@pytest.mark.slow
def test_the_installed_torch_behaves_as_the_atlas_says() -> None:
    here = {"torch": INSTALLED, "python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    # Other Pythons word their errors differently, and on other systems a crash has another name.
    if here not in ATLAS["versions"] or sys.platform != "linux":
        pytest.skip(f"the atlas has no observations of torch {INSTALLED} with this Python on {sys.platform}")
    seen = observe(Path(sys.executable))
    assert seen["torch"] == INSTALLED
    assert seen["programs"] == observations_of(ATLAS, INSTALLED, READ)


def test_atlas_covers_many_ways_to_register_and_several_versions() -> None:
    assert len({short_name(entry) for entry in ATLAS["entries"] if entry["registers"]}) >= 30
    assert len(VERSIONS) >= 4
    assert VERSIONS[0] == "2.6.0"


def test_every_program_is_in_the_atlas_as_it_is_now() -> None:
    assert [entry["key"] for entry in ATLAS["entries"]] == [program.key for program in READ]
    for entry, program in zip(ATLAS["entries"], READ, strict=True):
        assert (entry["api"], entry["summary"], entry["preamble"]) == (program.api, program.summary, program.preamble)
        stored = [(one["key"], one["text"], one["code"]) for one in entry["situations"]]
        assert stored == [(cell.key, cell.text, cell.code) for cell in program.cells]


def test_every_situation_was_seen_in_every_version_that_has_the_api() -> None:
    assert find_gaps(ATLAS) == {}
    assert all(entry["exists"] for entry in ATLAS["entries"])


def test_no_way_to_register_in_torch_is_missing() -> None:
    public = {
        f"{owner}.{name}"
        for owner in (
            "torch.Tensor",
            "torch.nn.Module",
            "torch.optim.Optimizer",
            "torch.autograd.graph.Node",
            "torch.autograd.graph",
            "torch.nn.modules.module",
            "torch.optim.optimizer",
        )
        for name in dir(find_api(owner))
        if name.startswith("register_") and "hook" in name
    }
    assert public == {entry["api"] for entry in ATLAS["entries"] if entry["api"] in public}


def test_file_is_what_the_programs_and_observations_make_of_it(tmp_path: Path) -> None:
    again = tmp_path / "atlas.json"
    shutil.copy(FILE, again)
    update_file([], again)
    assert again.read_bytes() == FILE.read_bytes()


def test_file_names_no_place_of_the_machine_that_made_it() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert "site-packages" not in text
    assert str(PROGRAMS.parents[2]) not in text
    assert "0x7f" not in text


# -- programs


@pytest.mark.parametrize("program", READ, ids=lambda program: program.key)
def test_program_answers_every_question(program: Program) -> None:
    asked = {cell.question for cell in program.cells}
    assert asked <= set(QUESTIONS)
    assert program.group == "settings" or asked >= {"when", "arguments", "changes", "silent"}
    keys = [cell.key for cell in program.cells]
    assert len(keys) == len(set(keys))
    assert all(cell.text and cell.code for cell in program.cells)
    assert "hookviz" not in program.path.read_text(encoding="utf-8")


def words_of_hooks(code: str) -> set[str]:
    """What functions and lambdas of a program print first, where that is a text."""
    functions = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    calls = [node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)]
    prints = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    return {first.value for first in prints if isinstance(first, ast.Constant)}


def test_hooks_that_are_said_to_be_silent_print_nothing() -> None:
    loud, checked = [], 0
    for entry in ATLAS["entries"]:
        for situation in entry["situations"]:
            words = words_of_hooks(f"{entry['preamble']}\n{situation['code']}")
            if situation["question"] != "silent" or not words:
                continue
            for result in situation["results"]:
                printed = [event.get("printed", "") for event in result["events"]]
                if entry["key"] == "graph/disable_saved_tensors_hooks":
                    # It is the refusal that does not come.
                    assert not any("error" in event for event in result["events"])
                    continue
                # A second hook may show that the pass went on.
                quiet = {word for word in words if not any(f"{line} ".startswith(f"{word} ") for line in printed)}
                loud += [] if quiet else [f"{entry['key']} {situation['key']}"]
                checked += 1
    assert loud == []
    assert checked > 50


# -- running a program


def test_output_warnings_and_errors_come_in_their_order(tmp_path: Path) -> None:
    code = "import warnings\nprint('one', 2)\nwarnings.warn('careful')\nprint('three')\n1 / 0"
    assert events_of(tmp_path, code) == [
        {"printed": "one 2"},
        {"warning": "UserWarning", "text": "careful"},
        {"printed": "three"},
        {"error": "ZeroDivisionError", "text": "division by zero"},
    ]


def test_program_leaves_no_global_hook_to_the_next(tmp_path: Path) -> None:
    code = "torch.nn.modules.module.register_module_forward_hook(lambda *given: print('global'), with_kwargs=True)"
    events_of(tmp_path, code)
    assert events_of(tmp_path, "print(torch.nn.Identity()(torch.ones(1)))") == [{"printed": "tensor([1.])"}]


@pytest.mark.slow
def test_situation_that_ends_the_process_is_reported(tmp_path: Path) -> None:
    program = write_program(tmp_path, "when it alone\n# It ends.\nimport os\nos.abort()")
    assert program.cells[0].alone
    assert run_alone(program, program.cells[0]) == [{"crash": "SIGABRT", "text": "the process ended here"}]


def test_cell_knows_its_line(tmp_path: Path) -> None:
    program = write_program(tmp_path, "when one\n# A sentence\n# of two lines.\nx = 1", "also two\n# More.\n\n\ny = 2")
    lines = program.path.read_text().split("\n")
    first, second = program.cells
    assert (first.question, first.name, first.text) == ("when", "one", "A sentence of two lines.")
    assert (lines[first.line - 1], lines[second.line - 1]) == ("x = 1", "y = 2")


def test_texts_are_freed_of_what_differs_between_runs() -> None:
    text = "<f at 0x7f12ab> (Triggered internally at /a/b.cpp:12.)\x1b[1m!\x1b[0m\n\nfrom user code:\n File x"
    assert normalize(text) == "<f at 0x…>!"


def test_api_that_torch_lacks_is_not_found() -> None:
    assert find_api("torch.Tensor.register_hook") is torch.Tensor.register_hook
    with pytest.raises(AttributeError, match="register_hock"):
        find_api("torch.Tensor.register_hock")


def test_python_that_fails_is_named(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no torch here >&2\nexit 3\n")
    python.chmod(0o755)
    with pytest.raises(RuntimeError, match=r"python ended with 3:\nno torch here"):
        observe(python)


# -- merging


def run_of(version: str, program: Program, printed: str) -> dict[str, Any]:
    cells = {cell.key: [{"printed": printed}] for cell in program.cells}
    observed = {program.key: {"exists": True, "signature": "(self)", "cells": cells}}
    return {"torch": version, "python": "3.11", "programs": observed}


def test_versions_with_the_same_outcome_stand_together(tmp_path: Path) -> None:
    program = write_program(tmp_path, "when it\n# It happens.\nprint(1)")
    runs = [run_of("2.11.0", program, "a"), run_of("2.6.0", program, "a"), run_of("2.8.0", program, "b")]
    atlas = merge([program], runs, {})
    assert [version["torch"] for version in atlas["versions"]] == ["2.6.0", "2.8.0", "2.11.0"]
    (situation,) = atlas["entries"][0]["situations"]
    assert situation["results"] == [
        {"versions": ["2.6.0", "2.11.0"], "events": [{"printed": "a"}]},
        {"versions": ["2.8.0"], "events": [{"printed": "b"}]},
    ]
    changed = [("2.6.0", "2.8.0"), ("2.8.0", "2.11.0")]
    assert find_changes(atlas) == {"tensors/example#when.it": changed}


def test_observations_of_changed_code_are_dropped(tmp_path: Path) -> None:
    program = write_program(tmp_path, "when it\n# It happens.\nprint(1)", "also more\n# And more.\nprint(2)")
    old = merge([program], [run_of("2.6.0", program, "a")], {})
    changed = write_program(tmp_path, "when it\n# Said anew.\nprint(1)", "also more\n# And more.\nprint(3)")
    atlas = merge([changed], [run_of("2.8.0", changed, "a")], old)
    assert find_gaps(atlas) == {"2.6.0": ["tensors/example#also.more"]}
    assert atlas["entries"][0]["situations"][0]["results"][0]["versions"] == ["2.6.0", "2.8.0"]


# -- differences


def test_every_difference_is_explained_once_and_no_other() -> None:
    explained = [place for difference in read_explanations() for place in difference.places]
    assert sorted(explained) == sorted(find_changes(ATLAS))


def test_explanations_are_in_the_file() -> None:
    written = [*read_explanations(), *read_surprises()]
    assert [difference._asdict() for difference in written] == ATLAS["differences"]


def test_surprises_are_the_same_in_every_version() -> None:
    situations = {f"{entry['key']}#{one['key']}": one for entry in ATLAS["entries"] for one in entry["situations"]}
    for surprise in read_surprises():
        results = [situations[place]["results"] for place in surprise.places]
        assert [[result["versions"] for result in one] for one in results] == [[VERSIONS]] * len(results)


def test_difference_without_an_explanation_is_noticed() -> None:
    atlas = deepcopy(ATLAS)
    atlas["entries"][0]["situations"][0]["results"] = [
        {"versions": VERSIONS[:-1], "events": []},
        {"versions": VERSIONS[-1:], "events": [{"printed": "new"}]},
    ]
    (added,) = find_changes(atlas).keys() - find_changes(ATLAS).keys()
    assert added.startswith(atlas["entries"][0]["key"])


@pytest.mark.parametrize("difference", read_explanations(), ids=lambda difference: difference.title)
def test_explanation_names_the_versions_between_which_it_changed(difference: Any) -> None:
    pairs = boundaries(difference, find_changes(ATLAS))
    assert pairs
    assert difference.kind in KINDS
    assert difference.meaning or difference.kind == "wording"
    named = " ".join([difference.what, difference.meaning])
    assert all(old in named or new in named or "older versions" in named for old, new in pairs)


def test_enough_differences_in_behaviour_are_explained() -> None:
    assert sum(difference.kind == "behaviour" for difference in read_explanations()) >= 5


# -- the page


def test_page_has_a_section_for_every_way_to_register_and_links_that_lead_somewhere() -> None:
    page = make_page(ATLAS)
    for entry in ATLAS["entries"]:
        assert f"### `{short_name(entry)}`\n" in page
    for title in QUESTIONS.values():
        assert page.count(f"**{title}**") == f"\n{page}".count(f"\n\n**{title}**\n\n") > 0
    names = {line.strip("()=") for line in page.split("\n") if line.startswith("(atlas-")}
    targets = {part.partition(")")[0] for part in page.split("](#")[1:]} - {"the-file"}
    assert targets
    assert targets <= names
    assert set(GROUPS) == {entry["key"].split("/")[0] for entry in ATLAS["entries"]}


def test_page_marks_differences_in_words() -> None:
    page = make_page(ATLAS)
    rows = {line.split("`")[1]: line for line in page.split("\n") if line.startswith("| [`")}
    assert len(rows) == len(ATLAS["entries"])
    assert rows["node_creation_hook"].split(" | ")[1:] == [*["absent"] * (len(VERSIONS) - 1), "**new** |"]
    assert "**≠ " in rows["Module.register_full_backward_hook"]
    changed = [place for place in find_changes(ATLAS) if not place.endswith(("#exists", "#signature"))]
    assert page.count("versions differ</span>") == len(changed)


def test_page_and_file_are_written_where_the_site_serves_them(tmp_path: Path) -> None:
    write_page(tmp_path)
    assert "# The atlas of hooks" in (tmp_path / "atlas.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "extra" / "atlas.json").read_text(encoding="utf-8")) == ATLAS


def test_command_explains_itself() -> None:
    ran = subprocess.run([sys.executable, "-m", "tools.atlas", "--help"], capture_output=True, text=True, check=True)
    assert "--python PATH" in ran.stdout


def test_an_environment_for_each_release_goes_before_the_next_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[str] = []

    @contextmanager
    def make(release: Release) -> Iterator[Path]:
        there.append(release.torch)
        yield Path(release.torch)
        there.remove(release.torch)

    monkeypatch.setattr("tools.atlas.__main__.make_environment", make)
    seen = [(python, list(there)) for python in list_pythons([Path("given")], ["2.6", "newest"])]
    assert seen[:2] == [(Path(sys.executable), []), (Path("given"), [])]
    assert seen[2:] == [(Path("2.6"), ["2.6"]), (Path("newest"), ["newest"])] and there == []
