"""The sessions of noxfile.py: the releases that they try stand everywhere, and they run what they should."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

import noxfile
from hookviz.analysis.formulas.reasons import _MISSING_VALUES
from hookviz.autograd.torch_internals import TESTED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "site" / "installing.md").read_text(encoding="utf-8")


def test_the_releases_are_those_of_pyproject_the_workflow_and_the_page_on_installing() -> None:
    oldest, *others, newest = noxfile.RELEASES
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {needed.name: needed.specifier for needed in map(Requirement, project["dependencies"])}
    assert str(declared["torch"]) == f">={oldest}" and noxfile.RELEASES[oldest] in declared["ipywidgets"]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    tried = workflow["jobs"]["versions"]["strategy"]["matrix"]["torch"]
    assert [version.removesuffix(".0") for version in tried] == [*noxfile.RELEASES]
    first, last = TESTED
    assert newest == "newest" and f"supports {first} to {last}," in PAGE
    assert all(f"| {release}." in PAGE for release in (oldest, *others, last))
    assert re.search(r'the player says "(.+?)"', PAGE)[1] in _MISSING_VALUES["torch"]  # type: ignore[index]


def test_sessions_that_make_calls_exist() -> None:
    called = re.findall(r"\$\(NOX\) (?:\$\(call sessions,)?([\w ]+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert len(called) == 5
    names = {name for names in called for name in names.split()}
    command = [sys.executable, "-m", "nox", "-l", "-s", *names]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^\* (\w+)", listed, re.MULTILINE)) == names
