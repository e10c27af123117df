"""Wheel and sdist hold what a release needs, and what describes it says the same everywhere."""

import re
import sys
import tomllib
from contextlib import chdir
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from hatchling import build
from trove_classifiers import classifiers as valid_classifiers

import hookviz as hv
from tools import release_check

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    with chdir(ROOT):
        return folder / build.build_wheel(str(folder))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    with chdir(ROOT):
        return folder / build.build_sdist(str(folder))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """What the wheel says about itself."""
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def description(metadata: Message) -> str:
    """The text that an index shows."""
    return str(metadata.get_payload())


# -- the files


def test_wheel_holds_all_files_of_the_package_but_the_sources_of_the_player(wheel: Path) -> None:
    packaged = {name for name in release_check.wheel_files(wheel) if name.startswith("hookviz/")}
    files = {path.relative_to(ROOT) for path in (ROOT / "hookviz").rglob("*") if path.is_file()}
    installed = {path for path in files if not {"__pycache__", "browser"} & {*path.parts} and path.suffix != ".pyc"}
    assert packaged == {path.as_posix() for path in installed}


def test_wheel_and_sdist_pass_the_check_of_their_files(wheel: Path, sdist: Path) -> None:
    assert release_check.wheel_problems(release_check.wheel_files(wheel)) == []
    assert release_check.sdist_problems(release_check.sdist_files(sdist)) == []


def test_sdist_is_smaller_than_six_megabytes(sdist: Path) -> None:
    """The pictures that the README shows are half of it."""
    assert sdist.stat().st_size < 6e6


@pytest.mark.parametrize(
    ("stray", "problem"),
    [
        ("tests/unit/test_record.py", "the wheel should not hold tests/unit/test_record.py"),
        ("hookviz/player/browser/player.js", "the wheel should not hold hookviz/player/browser/player.js"),
        ("hookviz/__pycache__/api.pyc", "the wheel should not hold hookviz/__pycache__/api.pyc"),
    ],
)
def test_check_reports_what_does_not_belong_into_the_wheel(wheel: Path, stray: str, problem: str) -> None:
    assert release_check.wheel_problems([*release_check.wheel_files(wheel), stray]) == [problem]


@pytest.mark.parametrize("missing", release_check.NEEDED_IN_WHEEL)
def test_check_reports_what_the_wheel_lacks(wheel: Path, missing: str) -> None:
    files = [name for name in release_check.wheel_files(wheel) if name != missing]
    assert release_check.wheel_problems(files) == [f"the wheel lacks {missing}"]


def test_check_reports_what_the_sdist_lacks_and_what_does_not_belong_there(sdist: Path) -> None:
    files = release_check.sdist_files(sdist)
    assert release_check.sdist_problems([name for name in files if name != "LICENSE"]) == ["the sdist lacks LICENSE"]
    stray = "node_modules/esbuild/package.json"
    assert release_check.sdist_problems([*files, stray]) == [f"the sdist should not hold {stray}"]


# -- what it says about itself


def test_version_and_license_are_the_same_everywhere(metadata: Message) -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert metadata["Version"] == citation["version"] == hv.__version__
    assert metadata["License-Expression"] == citation["license"] == PYPROJECT["project"]["license"]


def test_readme_names_the_wheel_of_this_version(wheel: Path) -> None:
    assert f"pip install {wheel.name}`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_classifiers_exist_and_fit_the_needed_python() -> None:
    classifiers = PYPROJECT["project"]["classifiers"]
    assert [name for name in classifiers if name not in valid_classifiers] == []
    minors = [int(found[1]) for name in classifiers if (found := re.search(r":: 3\.(\d+)$", name))]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert PYPROJECT["project"]["requires-python"] == f">=3.{minors[0]}"
    assert not [name for name in classifiers if name.startswith("License ::")], "an SPDX expression takes their place"


def test_repository_has_an_address_in_pyproject_or_nowhere() -> None:
    urls = PYPROJECT["project"]["urls"]
    assert set(urls) <= {"Repository"}
    assert all(address.startswith("https://") for address in urls.values())


def test_description_leads_to_no_file_of_the_repository(description: str) -> None:
    prose = re.sub(r"(?s)```.*?```", "", description)
    assert len(prose) > 30_000
    links = re.findall(r"\]\(([^)]*)\)", prose)
    assert links and [link for link in links if not link.startswith(("#", "https://"))] == []
    assert "<img" not in prose and "<picture" not in prose and "![" not in prose


def test_description_keeps_the_words_of_links_and_the_readme_its_links(description: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "[CONTRIBUTING.md](CONTRIBUTING.md)" in readme
    assert "CONTRIBUTING.md" in description and "[CONTRIBUTING.md]" not in description


# -- the check itself


def test_ten_lines_are_the_first_example_of_the_readme() -> None:
    code = release_check.ten_lines((ROOT / "README.md").read_text(encoding="utf-8"))
    assert code.startswith(">>> import torch, hookviz as hv\n") and "hv.record()" in code
    with pytest.raises(release_check.CheckFailed, match="has no section Ten lines"):
        release_check.ten_lines("# hookviz")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> release_check.Environment:
    """An environment whose Python is this one."""
    monkeypatch.setattr(release_check.venv, "create", lambda folder, **options: None)
    found = release_check.Environment(tmp_path)
    found.programs.mkdir(parents=True)
    (found.programs / "python").symlink_to(sys.executable)
    return found


def test_failing_program_is_quoted(environment: release_check.Environment) -> None:
    assert environment.run("-c", "print(6)") == "6\n"
    with pytest.raises(release_check.CheckFailed, match="RuntimeError: no such hook"):
        environment.run("-c", "raise RuntimeError('no such hook')")


def test_programs_do_not_see_the_packages_of_the_checkout(
    environment: release_check.Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code = "import os, sys; print([name for name in os.environ if name.startswith('PYTHON')], sys.path[0])"
    assert environment.run("-c", code) == "[] \n"


def test_hookviz_from_elsewhere_fails_the_check(
    environment: release_check.Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*arguments: str, folder: Any = None) -> str:
        return "" if "pip" in arguments else f"0.1.0 2.13.0 {hv.__file__}\n"

    monkeypatch.setattr(environment, "run", answer)
    with pytest.raises(release_check.CheckFailed, match="not from the environment"):
        release_check.install(environment, Path("hookviz.whl"))


def test_failed_step_ends_the_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(folder: Path, report: release_check.Report) -> release_check.Built:
        report.step("build", lambda: "built")
        raise release_check.CheckFailed("twine check")

    monkeypatch.setattr(release_check, "build_release", fail)
    assert release_check.main([]) == 1
    printed = capsys.readouterr()
    assert printed.out == "| build | 0 s | built |\n" and printed.err == "The release is not ready: twine check\n"
