"""What ``make matrix`` makes of the programs that it runs; the releases themselves are tried by that command."""

import doctest
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from hookviz.autograd.torch_internals import TESTED
from hookviz.support.messages import say
from tools import matrix, torch_versions
from tools.matrix import ReleaseResult, SuiteResult
from tools.torch_versions import NEWEST, RELEASES, Release

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", [matrix, torch_versions])
def test_examples(module: object) -> None:
    results = doctest.testmod(module)  # type: ignore[arg-type]
    assert results.attempted and not results.failed


def test_the_oldest_release_is_the_one_that_pyproject_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {needed.name: str(needed.specifier) for needed in map(Requirement, project["dependencies"])}
    assert declared["torch"] == f">={RELEASES[0].torch}"
    assert all(release.ipywidgets == NEWEST or release.ipywidgets in Requirement(f"x{declared['ipywidgets']}").specifier
               for release in RELEASES)  # fmt: skip


def test_the_workflow_tries_the_same_releases() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    tried = workflow["jobs"]["versions"]["strategy"]["matrix"]["torch"]
    assert [version.removesuffix(".0") for version in tried] == [release.torch for release in RELEASES]


def test_the_readme_has_a_row_for_each_release_and_quotes_the_screen() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, last = TESTED
    assert f"supports {first} to {last}," in text
    assert RELEASES[-1].torch == "newest" and f"| {last}." in text
    assert all(f"| {release.torch}." in text for release in RELEASES[:-1])
    assert re.search(r'the player says "(.+?)"', text)[1] in say("why.torch")  # type: ignore[index]


def test_an_environment_is_removed_even_if_a_program_in_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_versions, "FOLDER", tmp_path)
    monkeypatch.setattr(torch_versions, "install", lambda python, *requirements: None)

    def work() -> None:
        with torch_versions.make_environment(Release("2.6", "7.7.1")) as python:
            assert python.exists() and python.is_relative_to(tmp_path)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert list(tmp_path.iterdir()) == []


def test_the_ten_lines_must_print_what_stands_in_the_readme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ_python = Path(sys.executable)
    assert matrix.run_ten_lines(environ_python, tmp_path)
    (tmp_path / "torch.py").write_text("raise ImportError('another torch')")
    assert not matrix.run_ten_lines(environ_python, tmp_path)
    assert "Failed example" in capsys.readouterr().err


def test_sentences_of_the_check_are_those_between_its_table_and_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(text: str) -> list[str]:
        done = subprocess.CompletedProcess([], 0, text, "")
        monkeypatch.setattr(matrix, "run", lambda *_, **__: done)
        return matrix.read_missing(Path("python"), tmp_path)

    assert read("PyTorch 2.6\n\n  passes  9 points\n\nThis is left out.\nAnd this.\n\n2 of 9 points\n") == [
        "This is left out.",
        "And this.",
    ]
    assert read("PyTorch 2.13\n\n  passes  9 points\n\nAll 9 points are as hookviz expects.\n") == []


def test_the_table_has_a_row_for_each_release_and_says_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    good = {"unit": SuiteResult(9), "proof": SuiteResult(4, left_out={"it needs PyTorch 2.10": 3})}
    bad = {"unit": SuiteResult(8, ["tests.test_x"]), "proof": SuiteResult(4)}
    for release, version, suites in (("2.13", "2.13.0", bad), ("2.6", "2.6.0", good)):
        versions = {"python": "3.11.7", "torch": version, "ipywidgets": "7.7.1"}
        matrix.write_result(ReleaseResult(release, versions, True, True, True, [], suites, 5.2))
    results = matrix.read_results()
    assert [(result.release, result.is_good()) for result in results] == [("2.6", True), ("2.13", False)]
    table = matrix.format_table(results)
    assert "| 3.11.7 | 2.6.0 | 7.7.1 | yes | yes | yes | 9 passed, 0 failed, 0 left out | 4 passed, 0 failed" in table
    assert "- 3 left out: it needs PyTorch 2.10" in table and "- failed: tests.test_x" in table
    assert json.loads((tmp_path / "2.6.json").read_text(encoding="utf-8"))["release"] == "2.6"
