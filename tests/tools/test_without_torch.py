"""Traces load, display and save without torch, with only the packages that the site's page on installing names."""

import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sysconfig
import tomllib
import venv
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.requirements import Requirement
from scenes import recorded, scene

import hookviz as hv
from tests.proof.mutants import KINDS_OF_TRACE
from tests.tools.every_view import every_view

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "site" / "installing.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Without PyTorch")[2].partition("\n## ")[0]
(INSTALL_ARGUMENTS,) = re.findall(r"^pip install (?!--)(.+)$", SECTION, re.MULTILINE)
PLAIN_REQUIREMENTS = shlex.split(INSTALL_ARGUMENTS)
WIDGET_REQUIREMENTS = re.findall(r'`"([^"]+)"`', SECTION)


def required_distributions(requirements: Iterable[str]) -> set[str]:
    """The distributions that pip would install for these requirements."""
    found: set[str] = set()
    queue = [Requirement(text) for text in requirements]
    while queue:
        requirement = queue.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name.lower() not in found:
            found.add(requirement.name.lower())
            queue += map(Requirement, importlib.metadata.requires(requirement.name) or ())
    return found


def installed_files(distribution: str) -> Iterator[Path]:
    """Yield the top-level files and folders of an installed distribution."""
    found = importlib.metadata.distribution(distribution)
    names = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
    yield from (Path(str(found.locate_file(name))) for name in names)


def create_environment(folder: Path, requirements: Iterable[str]) -> Path:
    """Create an environment with hookviz and these requirements, as links to installed files; return its Python."""
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    for file in (
        ROOT / "hookviz",
        *(file for name in required_distributions(requirements) for file in installed_files(name)),
    ):
        if not (packages / file.name).exists():  # several distributions may share a folder
            (packages / file.name).symlink_to(file)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def torchless_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_environment(tmp_path_factory.mktemp("bare"), PLAIN_REQUIREMENTS)


def run_isolated(python: Path, *arguments: str | Path) -> str:
    """The output of a Python in isolated mode, whose environment has only PATH."""
    command = [python, "-I", "-B", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert result.returncode == 0, result.stderr
    return result.stdout


def views_in(python: Path, folder: Path, paths: list[Path]) -> dict[str, dict[str, Any]]:
    """File → the views that another Python makes of its trace."""
    run_isolated(python, ROOT / "tests/tools/every_view.py", folder / "views.json", *paths)
    found: dict[str, dict[str, Any]] = json.loads((folder / "views.json").read_text(encoding="utf-8"))
    return found


TRACES = {**KINDS_OF_TRACE, "lesson": recorded}


@pytest.fixture(scope="module")
def saved_traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Newly saved files of traces of each kind."""
    folder = tmp_path_factory.mktemp("fresh")
    torch.manual_seed(0)
    for name, make in TRACES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # for the legacy hook
            make().save(folder / f"{name}.json")
    with hv.record() as plain:
        scene().e.backward()
    plain.save(folder / "lesson.json.other")
    return [folder / f"{name}.json" for name in TRACES]


def test_the_page_on_installing_lists_all_dependencies_except_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted([*PLAIN_REQUIREMENTS, *WIDGET_REQUIREMENTS, "torch>=2.6"]) == sorted(project["dependencies"])


FORMULA_VIEWS = {"why", "page", "page by the command line", "output", "comparison"}
"""The views that show formulas: their values need torch."""


def test_without_torch_every_view_of_a_saved_trace_is_the_same_except_values_of_formulas(
    torchless_python: Path, saved_traces: list[Path], tmp_path: Path
) -> None:
    found = views_in(torchless_python, tmp_path, saved_traces)
    assert len(found) == len(TRACES)
    symbols_only = set()
    for path in saved_traces:
        expected, shown = json.loads(json.dumps(every_view(path))), found[str(path)]
        assert {name for name in expected if shown[name] != expected[name]} <= FORMULA_VIEWS
        assert shown["saved"] == shown["saved twice"] == path.read_text(encoding="utf-8")
        reasons = [reason for found in shown["why"] for reason in found]
        assert [reason[2] for reason in reasons] == [reason[2] for found in expected["why"] for reason in found]
        symbols_only |= {(reason[3], reason[7]) for reason in reasons if reason[6] == "symbols only"}
    assert symbols_only == {("", "No values: they need PyTorch, which is not installed.")}


def test_functions_that_need_torch_raise_an_import_error_and_the_others_are_there(torchless_python: Path) -> None:
    code = """
import importlib.util, hookviz
from hookviz import *
print([importlib.util.find_spec(name) for name in ("torch", "torchgen", "numpy", "IPython")])
print(sorted(set(hookviz.__all__) - set(globals())))
for name in ("record", "hooks", "draw", "whatif", "WhatIf"):
    try:
        getattr(hookviz, name)()
    except ImportError as error:
        print(error)
"""
    needs = 'hookviz.{} needs PyTorch, which is not installed: install it with "pip install torch".'
    missing, not_imported, *errors = run_isolated(torchless_python, "-c", code).splitlines()
    assert (missing, not_imported) == ("[None, None, None, None]", "[]")
    assert errors == [needs.format(name) for name in ("record", "hooks", "draw", "whatif", "WhatIf")]


def test_widget_works_with_ipywidgets_and_anywidget_without_torch(saved_traces: list[Path], tmp_path: Path) -> None:
    python = create_environment(tmp_path, [*PLAIN_REQUIREMENTS, *WIDGET_REQUIREMENTS])
    code = "import sys, hookviz; print(*(hookviz.load(path).player().steps for path in sys.argv[1:]))"
    expected = [str(hv.load(path).player().steps) for path in saved_traces]
    assert run_isolated(python, "-c", code, *saved_traces).split() == expected
    assert run_isolated(python, "-c", "import importlib.util as u; print(u.find_spec('torch'))") == "None\n"
