"""What hosts and packagers read fits the project: workflows, issue forms, pre-commit, the recipe for conda-forge."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import hookviz as hv

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PINNED_TORCH = re.findall(r"(?m)^torch==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"))
CONDA_NAMES = {"torch": "pytorch", "graphviz": "python-graphviz"}
"""Package → its name on conda-forge, where it has another one."""
FIRST_TORCH_WITH_WHEELS = {11: "2.0", 12: "2.2", 13: "2.5", 14: "2.9"}
"""Minor version of Python → the first torch on the package index with wheels for it on Linux, macOS and Windows."""


def read_yaml(path: Path) -> Any:
    """The content of a YAML file; the key ``on`` of a workflow is read as ``True``."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def matrix() -> dict[str, Any]:
    """The versions and systems on which the unit tests run."""
    jobs = read_yaml(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    found: dict[str, Any] = jobs["versions"]["strategy"]["matrix"]
    return found


# -- schemas


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_file_follows_its_schema(schema: str, paths: list[Path]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert paths and done.returncode == 0, done.stdout + done.stderr


# -- workflows


def test_matrix_begins_with_the_oldest_supported_torch_and_has_the_pinned_one() -> None:
    versions = [Version(name) for name in matrix()["torch"] if name != "newest"]
    (torch,) = [found for found in map(Requirement, PROJECT["dependencies"]) if found.name == "torch"]
    (bound,) = torch.specifier
    assert min(versions) <= Version(bound.version) and Version(PINNED_TORCH[0]) in versions
    assert matrix()["torch"][-1] == "newest"


def test_matrix_excludes_exactly_the_combinations_without_wheels() -> None:
    excluded = {(entry["python"], entry["torch"]) for entry in matrix()["exclude"]}
    assert excluded == {
        (python, torch)
        for python in matrix()["python"]
        for torch in matrix()["torch"]
        if torch != "newest" and Version(torch) < Version(FIRST_TORCH_WITH_WHEELS[int(python.partition(".")[2])])
    }


def test_workflows_run_the_commands_of_the_checkout() -> None:
    jobs = read_yaml(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert commands["everything"] == [".ci/run"]
    for name in ("versions", "nightly"):
        assert 'python -m pip install ".[unit]"' in commands[name]
        assert commands[name][-1].endswith("tests/unit tests/proof")
    assert jobs["nightly"]["continue-on-error"] is True


def test_actions_are_named_by_their_commits() -> None:
    """A tag can be moved to other code; the version stands behind as a comment."""
    used = [line for path in WORKFLOWS for line in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))]
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)] == []


def needed(requirements: Iterable[str], found: set[str]) -> set[str]:
    """Add the names of all distributions that these requirements bring, those of extras too, to ``found``."""
    for requirement in map(Requirement, requirements):
        if requirement.name == "hookviz":
            needed((line for extra in requirement.extras for line in PROJECT["optional-dependencies"][extra]), found)
        elif requirement.name.lower() not in found and (
            not requirement.marker or requirement.marker.evaluate({"extra": ""})
        ):
            found.add(requirement.name.lower())
            needed(metadata.requires(requirement.name) or (), found)
    return found


def test_extra_unit_brings_what_the_unit_tests_and_the_proofs_import_first() -> None:
    """The workflow, ``make matrix`` and ``make dist`` run them with this extra."""
    installed = needed([*PROJECT["dependencies"], "hookviz[unit]"], set())
    files = [path for folder in ("unit", "proof") for path in (ROOT / "tests" / folder).glob("*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in [*files, *(ROOT / "tests").glob("*.py")]]
    imports = [node for tree in trees for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        name
        for node in imports
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    distributions = metadata.packages_distributions()
    tops = {name.partition(".")[0] for name in names if name} & {*distributions} - {"hookviz"}
    assert {"babel", "pytest", "torch"} <= tops
    assert [top for top in tops if installed.isdisjoint(name.lower() for name in distributions[top])] == []


# -- pre-commit


def test_hooks_before_a_commit_are_the_parts_of_make_lint() -> None:
    (lint,) = re.findall(r"(?m)^lint: (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"))
    (repository,) = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == [f"make {part}" for part in lint.split()]
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in repository["hooks"])


# -- the recipe for conda-forge


def recipe() -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(ROOT / "recipe" / "recipe.yaml")
    return found


def recipe_requirements(part: str) -> dict[str, SpecifierSet]:
    """Package → its versions in the recipe, without Python, whose version is a variable there."""
    lines = [line for line in recipe()["requirements"][part] if not line.startswith("python ")]
    return {package.name: package.specifier for package in map(Requirement, lines)}


def specifiers(lines: list[str]) -> dict[str, SpecifierSet]:
    """Package under its name on conda-forge → its versions in ``pyproject.toml``."""
    return {CONDA_NAMES.get(package.name, package.name): package.specifier for package in map(Requirement, lines)}


def test_recipe_needs_what_the_package_needs() -> None:
    assert recipe_requirements("run") == specifiers(PROJECT["dependencies"])
    assert recipe_requirements("host") == specifiers([*PYPROJECT["build-system"]["requires"], "pip"])


def test_recipe_has_the_version_the_license_and_the_summary_of_the_package() -> None:
    context, about = recipe()["context"], recipe()["about"]
    assert context["version"] == hv.__version__
    assert PROJECT["requires-python"] == f">={context['python_min']}"
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
