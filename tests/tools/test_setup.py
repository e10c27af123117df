"""``make`` says what is missing, copies the lessons for the student, and installs the same packages in all places."""

import os
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
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools import my_lessons, payload_types

ROOT = Path(__file__).resolve().parents[2]
CONDA_NAMES = {"torch": "pytorch-cpu", "graphviz": "python-graphviz", "matplotlib": "matplotlib-base"}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements(*extras: str) -> list[Requirement]:
    """The requirements of the project with these extras, and with the extras that they include."""
    optional = project()["optional-dependencies"]
    found = [Requirement(line) for line in project()["dependencies"]]
    for extra in extras:
        for requirement in map(Requirement, optional[extra]):
            found += requirements(*requirement.extras) if requirement.name == "hookviz" else [requirement]
    return found


def run_make(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run make with a clean environment, even if make runs these tests."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "MFLAGS"}
    return subprocess.run(["make", *arguments], cwd=folder, env=clean, capture_output=True, text=True)


# -- make


def test_make_without_a_target_lists_the_targets() -> None:
    message = run_make().stdout
    assert all(f"make {target} " in message for target in ("lab", "check", "test", "lint", "site", "slides", "clean"))


def test_make_reports_a_missing_or_old_python_in_one_line(tmp_path: Path) -> None:
    old = tmp_path / "old-python"
    old.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "import sys; sys.version_info = (3, 8); $2"\n')
    old.chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    done = run_make("lab", f"PYTHON={old}", folder=tmp_path)
    assert done.returncode != 0 and not (tmp_path / ".venv").exists()
    assert done.stderr.startswith(f"Python 3.11 or newer is needed, and '{old}' is not one: install it")


def test_make_lab_needs_nothing_of_tests_and_site_and_make_check_nothing_of_the_site() -> None:
    lab, check, dev = ({requirement.name for requirement in requirements(name)} for name in ("lab", "check", "dev"))
    testing = {"pytest", "hypothesis", "ruff", "mypy", "playwright", "marimo", "notebook"}
    publishing = {"sphinx", "myst-nb", "furo", "transformers", "lightning"}
    assert "jupyterlab" in lab and not lab & (testing | publishing)
    assert {"pytest", "ruff", "mypy"} <= check and not check & publishing
    assert testing | publishing | lab <= dev


# -- the student's copies


def test_copies_are_never_overwritten_and_a_newer_lesson_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lessons, mine = tmp_path / "notebooks", tmp_path / "my_lessons"
    lessons.mkdir()
    (lessons / "01.ipynb").write_text("first edition")
    (lessons / "README.md").write_text("[solutions](solutions)")
    assert my_lessons.provide(lessons, mine) == []
    assert (mine / "README.md").read_text() == "[solutions](../notebooks/solutions)"
    (mine / "01.ipynb").write_text("my answers")
    (lessons / "02.ipynb").write_text("another lesson")
    assert my_lessons.provide(lessons, mine) == []
    assert (mine / "02.ipynb").read_text() == "another lesson"
    (lessons / "01.ipynb").write_text("second edition")
    my_lessons.main([str(lessons), str(mine)])
    said = capsys.readouterr().out
    assert (mine / "01.ipynb").read_text() == "my answers" and "Yours stay as they are" in said
    subprocess.run(said.splitlines()[-1].split(), check=True)  # the command that it names
    assert (mine / "new_01.ipynb").read_text() == "second edition"
    my_lessons.main([str(lessons), str(mine)])
    assert capsys.readouterr().out == ""


# -- the player's JavaScript


def test_committed_javascript_types_match_the_python_types() -> None:
    assert payload_types.TARGET.read_text(encoding="utf-8") == payload_types.write_types()


# -- the same packages everywhere


def test_every_requirement_is_pinned_to_an_allowed_version() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pins = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    assert all(pins.values()) and pins["torch"] == "2.13.0"
    for requirement in requirements("dev", "peers"):
        assert Version(pins[canonicalize_name(requirement.name)]) in requirement.specifier, requirement


def conda_packages() -> dict[str, SpecifierSet]:
    """The packages of environment.yml and of its pip section → their version specifiers."""
    entries: list[Any] = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    lines = [line for entry in entries for line in ([entry] if isinstance(entry, str) else entry["pip"])]
    # conda's single = pins as == does.
    parsed = [Requirement(re.sub(r"(?<![=<>!~])=(?!=)", "==", line)) for line in lines]
    return {package.name: package.specifier for package in parsed}


def test_binder_environment_has_the_requirements_of_the_lab_extra() -> None:
    conda = conda_packages()
    for requirement in requirements("lab"):
        name = CONDA_NAMES.get(requirement.name, requirement.name)
        assert conda[name] == requirement.specifier, name
    assert "pytorch" not in conda and "pip" in conda
    python = str(conda["python"])
    assert re.fullmatch(r"==3\.\d+", python) and python.removeprefix("==") in SpecifierSet(project()["requires-python"])
    script = (ROOT / "postBuild").read_text()
    assert script.startswith("#!/bin/bash\nset -e\n") and "pip install --no-deps -e .\n" in script
    assert os.access(ROOT / "postBuild", os.X_OK) and os.access(ROOT / ".ci" / "run", os.X_OK)
