"""A lesson starts with a quiet cell that installs hookviz where it is missing, and with badges if it has an address."""

import importlib.util
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import nbformat
import pytest

from tools.lesson_start import make_install_source
from tools.lessons import make_solution
from tools.translation.message_sources import NOTEBOOKS, ROOT, SOLUTIONS

ADDRESS = "https://github.com/example/hooks"
PIP = [sys.executable, "-m", "pip", "install", "-q", "--upgrade-strategy", "only-if-needed"]


@pytest.mark.parametrize(
    ("repository", "missing", "asked"),
    [
        ("", ["hookviz"], [f"torch=={version('torch')}", f"ipywidgets=={version('ipywidgets')}", f"{ROOT}[lessons]"]),
        (ADDRESS, ["hookviz", "torch", "ipywidgets"], [f"hookviz[lessons] @ git+{ADDRESS}"]),
    ],
)
def test_cell_installs_hookviz_and_keeps_the_versions_of_torch_and_ipywidgets(
    repository: str,
    missing: list[str],
    asked: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else find(name))
    monkeypatch.chdir(NOTEBOOKS)
    calls: list[list[str]] = []

    def note_call(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        return subprocess.CompletedProcess(command, 0, "", "pip's own words")

    monkeypatch.setattr(subprocess, "run", note_call)
    exec(make_install_source(repository), {})
    assert calls == [[*PIP, *asked]]
    said = "pip installs hookviz, and keeps the torch and ipywidgets that are here.\npip's own words\n"
    assert capsys.readouterr() == (said, "")


def test_every_solution_has_the_start_that_is_made_for_it() -> None:
    for path in SOLUTIONS.glob("*.ipynb"):
        assert nbformat.read(path, as_version=nbformat.NO_CONVERT) == make_solution(path), (
            f"{path.name}: run make lessons"
        )
