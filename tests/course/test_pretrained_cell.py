"""The cell of the look-up page that uses torchvision works with torchvision, and says so where it is missing."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hookviz.course import vision
from tests.course.reading import PAGE, read_notebook

CELL = next(cell.source for cell in read_notebook(PAGE).cells if cell.id == "pretrained-2")
WEIGHTS = SimpleNamespace(
    transforms=lambda: lambda photo: functional.interpolate(photo[None], (64, 64))[0],
    meta={"categories": [f"category {number}" for number in range(1000)]},
)


def run_cell(monkeypatch: pytest.MonkeyPatch, models: Any) -> torch.Tensor | None:
    """Run the cell with a stand-in for torchvision; return what its hook stored."""
    torchvision: Any = ModuleType("torchvision")
    torchvision.models = models
    monkeypatch.setitem(sys.modules, "torchvision", torchvision if models else None)
    names: dict[str, Any] = {"torch": torch}
    exec(CELL, names)
    return names["features"][0] if names["features"] else None


def test_cell_reads_the_features_of_the_trained_network(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = []

    def resnet18(*, weights: Any) -> nn.Module:
        given.append(weights)
        return vision.resnet18()

    models = SimpleNamespace(ResNet18_Weights=SimpleNamespace(DEFAULT=WEIGHTS), resnet18=resnet18)
    features = run_cell(monkeypatch, models)
    assert features is not None and features.shape == (1, 512, 1, 1)
    assert given == [WEIGHTS] and capsys.readouterr().out.startswith("category ")


def test_cell_prints_one_line_without_torchvision(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cell(monkeypatch, None) is None
    assert capsys.readouterr().out.splitlines()[0].startswith("No trained ResNet-18 here: ")


def test_cell_prints_one_line_without_a_connection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def resnet18(*, weights: Any) -> nn.Module:
        raise OSError("no connection")

    models = SimpleNamespace(ResNet18_Weights=SimpleNamespace(DEFAULT=WEIGHTS), resnet18=resnet18)
    assert run_cell(monkeypatch, models) is None
    assert capsys.readouterr().out == "No trained ResNet-18 here: no connection\n"
