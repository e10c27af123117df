"""The cell of the look-up page that uses torchvision works with torchvision; the page's run shows it without."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from torch import nn
from torch.nn import functional

from hookviz.course import vision
from tests.course.reading import PAGE, read_notebook

CELL = next(cell.source for cell in read_notebook(PAGE).cells if cell.id == "pretrained-2")
WEIGHTS = SimpleNamespace(
    transforms=lambda: lambda photo: functional.interpolate(photo[None], (64, 64))[0],
    meta={"categories": [f"category {number}" for number in range(1000)]},
)


def run_cell(monkeypatch: pytest.MonkeyPatch, resnet18: Any) -> list[Any]:
    """Run the cell with a stand-in for torchvision; return what its hook stored."""
    torchvision: Any = ModuleType("torchvision")
    torchvision.models = SimpleNamespace(ResNet18_Weights=SimpleNamespace(DEFAULT=WEIGHTS), resnet18=resnet18)
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    names: dict[str, Any] = {}
    exec(f"import torch\n{CELL}", names)
    features: list[Any] = names["features"]
    return features


def test_cell_reads_the_features_of_the_trained_network_or_says_in_one_line_why_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(*, weights: Any) -> nn.Module:
        assert weights is WEIGHTS
        return vision.resnet18()

    def fail(*, weights: Any) -> nn.Module:
        raise OSError("no connection")

    [features] = run_cell(monkeypatch, load)
    assert features.shape == (1, 512, 1, 1) and capsys.readouterr().out.startswith("category ")
    assert run_cell(monkeypatch, fail) == []
    assert capsys.readouterr().out == "No trained ResNet-18 here: no connection\n"
