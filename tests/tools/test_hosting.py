"""What hosts and packagers read fits the project: workflows, issue forms, pre-commit, the recipe for conda-forge."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import hookviz as hv

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
CONDA_NAMES = {"torch": "pytorch", "graphviz": "python-graphviz"}
"""Package → its name on conda-forge, where it has another one."""


def read_yaml(path: Path) -> Any:
    """The content of a YAML file; the key ``on`` of a workflow is read as ``True``."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


# -- schemas


@pytest.mark.parametrize(
    ("schema", "paths"),
    [("github-workflows", WORKFLOWS), ("github-issue-forms", FORMS), ("citation-file-format", [ROOT / "CITATION.cff"])],
)
def test_file_follows_its_schema(schema: str, paths: list[Path]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert paths and done.returncode == 0, done.stdout + done.stderr


# -- workflows


def test_actions_are_named_by_their_commits() -> None:
    """A tag can be moved to other code; the version stands behind as a comment."""
    used = [line for path in WORKFLOWS for line in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))]
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)] == []


# -- the recipe for conda-forge


def test_recipe_says_what_the_package_says() -> None:
    recipe = read_yaml(ROOT / "recipe" / "recipe.yaml")

    def specifiers(lines: list[str]) -> dict[str, SpecifierSet]:
        packages = [Requirement(line) for line in lines if not line.startswith("python ")]  # its version is a variable
        return {CONDA_NAMES.get(package.name, package.name): package.specifier for package in packages}

    needed = recipe["requirements"]
    assert specifiers(needed["run"]) == specifiers(PROJECT["dependencies"])
    assert specifiers(needed["host"]) == specifiers([*PYPROJECT["build-system"]["requires"], "pip"])
    context, about = recipe["context"], recipe["about"]
    assert context["version"] == hv.__version__
    assert PROJECT["requires-python"] == f">={context['python_min']}"
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
