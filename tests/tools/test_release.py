"""Wheel and sdist hold what a release needs, and what describes it says the same everywhere."""

import re
import subprocess
import tarfile
import tomllib
from contextlib import chdir
from email import message_from_string
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from hatchling import build
from trove_classifiers import classifiers as valid_classifiers

import hookviz as hv

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    with chdir(ROOT):
        return folder / build.build_wheel(str(folder))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """What the wheel says about itself."""
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


# -- the files


def test_wheel_holds_all_files_of_the_package_but_the_sources_of_the_player(wheel: Path) -> None:
    packaged = set(ZipFile(wheel).namelist())
    files = {path.relative_to(ROOT) for path in (ROOT / "hookviz").rglob("*") if path.is_file()}
    installed = {path for path in files if not {"__pycache__", "browser"} & {*path.parts} and path.suffix != ".pyc"}
    assert {name for name in packaged if ".dist-info/" not in name} == {path.as_posix() for path in installed}


def test_sdist_holds_what_the_repository_holds_and_is_smaller_than_six_megabytes(tmp_path: Path) -> None:
    """The pictures that the README shows are half of it."""
    with chdir(ROOT):
        sdist = tmp_path / build.build_sdist(str(tmp_path))
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in listed.splitlines() if (ROOT / name).exists()} <= held
    assert held.isdisjoint({"dist", "build/site"}) and not any(name.endswith(".pyc") for name in held)
    assert sdist.stat().st_size < 6e6


# -- what it says about itself


def test_version_and_license_are_the_same_everywhere(metadata: Message, wheel: Path) -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert metadata["Version"] == citation["version"] == hv.__version__
    assert metadata["License-Expression"] == citation["license"] == PYPROJECT["project"]["license"]
    assert f"pip install {wheel.name}`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_classifiers_exist_and_fit_the_needed_python() -> None:
    classifiers = PYPROJECT["project"]["classifiers"]
    assert [name for name in classifiers if name not in valid_classifiers] == []
    minors = [int(found[1]) for name in classifiers if (found := re.search(r":: 3\.(\d+)$", name))]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert PYPROJECT["project"]["requires-python"] == f">=3.{minors[0]}"


def test_description_leads_to_no_file_of_the_repository_and_keeps_the_words_of_links(metadata: Message) -> None:
    description = str(metadata.get_payload())
    prose = re.sub(r"(?s)```.*?```", "", description)
    assert len(prose) > 5_000 and "CONTRIBUTING.md" in prose
    links = re.findall(r"\]\(([^)]*)\)", prose)
    assert [link for link in links if not link.startswith(("#", "https://"))] == []
    assert "<img" not in prose and "<picture" not in prose and "![" not in prose
