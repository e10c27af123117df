"""The wheel holds what a release needs, and what describes it says the same everywhere."""

import re
import tomllib
from contextlib import chdir
from email import message_from_string
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from hatchling import build

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


# -- what it says about itself


def test_version_and_license_are_the_same_everywhere(metadata: Message, wheel: Path) -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert metadata["Version"] == citation["version"] == hv.__version__
    assert metadata["License-Expression"] == citation["license"] == PYPROJECT["project"]["license"]
    assert f"pip install {wheel.name}`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_description_leads_to_no_file_of_the_repository_and_keeps_the_words_of_links(metadata: Message) -> None:
    description = str(metadata.get_payload())
    prose = re.sub(r"(?s)```.*?```", "", description)
    assert len(prose) > 5_000 and "CONTRIBUTING.md" in prose
    links = re.findall(r"\]\(([^)]*)\)", prose)
    assert [link for link in links if not link.startswith(("#", "https://"))] == []
    assert "<img" not in prose and "<picture" not in prose and "![" not in prose
