"""What hosts and packagers read fits the project: workflows, issue forms, pre-commit, the recipe for conda-forge."""

import json
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
from packaging.version import Version

import hookviz as hv
from tests.tools.test_setup import CONDA_NAMES, pinned_versions

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
FIRST_TORCH_WITH_WHEELS = {11: "2.0", 12: "2.2", 13: "2.5", 14: "2.9"}
"""Minor version of Python → the first torch on the package index with wheels for it on Linux, macOS and Windows."""


def read_yaml(path: Path) -> Any:
    """The content of a YAML file; the key ``on`` of a workflow is read as ``True``."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def matrix() -> dict[str, Any]:
    """The versions and systems on which the unit tests run."""
    found: dict[str, Any] = read_yaml(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["versions"]["strategy"][
        "matrix"
    ]
    return found


def schema_complaints(schema: str, *paths: Path) -> str:
    """What a schema that comes with check-jsonschema finds wrong in files."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


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
    assert paths and schema_complaints(schema, *paths) == ""


def test_schema_finds_a_wrong_workflow(tmp_path: Path) -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    (tmp_path / "wrong.yml").write_text(text.replace("runs-on:", "runs-upon:"), encoding="utf-8")
    assert "runs-upon" in schema_complaints("github-workflows", tmp_path / "wrong.yml")


# -- workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_says_that_it_was_not_run_and_may_only_read(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# This workflow has not been run yet: ")
    assert read_yaml(path)["permissions"] == {"contents": "read"}
    assert "secrets." not in text


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_major_version(path: Path) -> None:
    actions = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
    assert actions and [action for action in actions if not re.search(r"@(v\d+|release/v\d+)$", action)] == []


def test_matrix_has_all_pythons_of_the_classifiers() -> None:
    named = [found[1] for name in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", name))]
    assert matrix()["python"] == named


def test_matrix_begins_with_the_oldest_supported_torch_and_has_the_pinned_one() -> None:
    versions = [Version(name) for name in matrix()["torch"] if name != "newest"]
    (torch,) = [found for found in map(Requirement, PROJECT["dependencies"]) if found.name == "torch"]
    (bound,) = torch.specifier
    assert min(versions) <= Version(bound.version) and Version(pinned_versions()["torch"]) in versions
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


def test_release_is_published_without_a_password_and_only_after_its_check() -> None:
    jobs = read_yaml(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert "make dist" in [step.get("run") for step in jobs["build"]["steps"]]
    publish = jobs["publish"]
    assert publish["needs"] == "build" and publish["permissions"] == {"id-token": "write"} and publish["environment"]
    assert [step for step in publish["steps"] if "run" in step or "password" in str(step)] == []


# -- pre-commit


def test_hooks_before_a_commit_are_the_parts_of_make_lint() -> None:
    (lint,) = re.findall(r"(?m)^lint: (.+)$", MAKEFILE)
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
    names = {**CONDA_NAMES, "torch": "pytorch"}
    return {names.get(package.name, package.name): package.specifier for package in map(Requirement, lines)}


def test_recipe_needs_what_the_package_needs() -> None:
    assert recipe_requirements("run") == specifiers(PROJECT["dependencies"])
    assert recipe_requirements("host") == specifiers([*PYPROJECT["build-system"]["requires"], "pip"])


def test_recipe_has_the_version_the_license_and_the_summary_of_the_package() -> None:
    context, about = recipe()["context"], recipe()["about"]
    assert context["version"] == hv.__version__
    assert PROJECT["requires-python"] == f">={context['python_min']}"
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])


def test_gaps_of_the_recipe_are_marked() -> None:
    """A hash exists once the sdist is on the index."""
    assert "sha256" not in recipe()["source"] and "extra" not in recipe()
    text = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    assert "# Gap 1" in text and "# Gap 2" in text and "two gaps" in text


# -- for people


def test_reports_of_faults_ask_for_the_output_of_check() -> None:
    form = read_yaml(ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml")
    (field,) = [part for part in form["body"] if part.get("id") == "check"]
    assert "`python -m hookviz check`" in field["attributes"]["label"] and field["validations"]["required"]
    assert "python -m hookviz check" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_development_container_uses_a_target_of_make_and_the_needed_python() -> None:
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    container = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    make, target = container["postCreateCommand"].split()
    assert make == "make" and f"\n{target}: " in MAKEFILE
    assert container["image"].removeprefix("python:") in SpecifierSet(PROJECT["requires-python"])
