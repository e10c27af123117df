"""Students keep their tools: ``keep`` writes what is right into ``my_hooks.py``, and ``kept`` brings it back."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from hookviz.course import course_tools, keep, kept
from hookviz.course.exercises import JUDGES
from hookviz.course.toolbox import TOOLS

LIMIT = 3


def find_silent(model: nn.Module, loss: torch.Tensor) -> list[str]:
    model.zero_grad()
    torch.autograd.backward(loss)
    return [name for name, weight in model.named_parameters() if asks(weight) and weight.grad is None]


def asks(weight: torch.Tensor) -> bool:
    return weight.requires_grad and LIMIT > 2


class Scale:
    def __call__(self, grad: torch.Tensor) -> torch.Tensor:
        return grad * LIMIT


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("tool", TOOLS)
def test_the_tool_of_the_course_is_right(tool: str) -> None:
    assert JUDGES[TOOLS[tool]](getattr(course_tools, tool)).name == "right"


def test_a_right_tool_is_written_with_what_it_needs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert keep(find_silent) is None
    assert capsys.readouterr().out == "my_hooks.py has find_silent now.\n"
    program = "import torch\nfrom my_hooks import find_silent\nlayer = torch.nn.Linear(1, 1)\n"
    program += "layer.bias.requires_grad_(False)\nprint(find_silent(layer, torch.ones(1, requires_grad=True).sum()))"
    ran = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert ran.stdout == "['weight']\n"


def test_a_wrong_tool_gets_its_reason_and_is_not_written(folder: Path) -> None:
    def watch(model: nn.Module) -> dict[str, float]:
        return {}

    verdict = keep(watch)
    assert verdict is not None and not verdict.right and verdict.exercise == TOOLS["watch"]
    assert not list(folder.iterdir())


def test_a_second_version_replaces_the_first_and_the_rest_of_the_file_stays(folder: Path) -> None:
    file = folder / "my_hooks.py"
    file.write_text('"""Mine."""\n\n\nclass Scale:\n    pass\n\n\nlast = 1  # my own line\n', encoding="utf-8")
    keep(Scale)
    keep(Scale)
    text = file.read_text(encoding="utf-8")
    assert text.startswith('"""Mine."""\n') and text.endswith("last = 1  # my own line\n")
    assert text.count("class Scale") == text.count("LIMIT = 3") == text.count("import torch") == 1


def test_a_kept_tool_comes_back_from_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    keep(Scale)
    scale = kept("Scale")
    assert scale()(2) == 2 * LIMIT and scale is not Scale
    assert capsys.readouterr().out.endswith("Scale: yours, from my_hooks.py.\n")


def test_who_kept_nothing_gets_the_tool_of_the_course(capsys: pytest.CaptureFixture[str]) -> None:
    assert kept("find_nan") is course_tools.find_nan
    assert "the course's own" in capsys.readouterr().out
    with pytest.raises(ValueError, match="The tools of the course are find_silent"):
        kept("find_everything")
