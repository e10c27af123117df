"""A sigmoid, tanh or softmax whose outputs lie at its limits is a remark; one that works is none."""

from collections.abc import Callable
from typing import cast

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.analysis.findings import Finding
from tests.requirements import needs_saved_tensors


class Gated(nn.Module):
    """A gate between two layers, whose inputs are as large as its first layer makes them."""

    def __init__(self, function: Callable[[Tensor], Tensor], size: float) -> None:
        super().__init__()
        self.function, self.inner, self.outer = function, nn.Linear(4, 8), nn.Linear(8, 1)
        nn.init.constant_(self.inner.weight, size)
        nn.init.zeros_(self.inner.bias)

    def forward(self, x: Tensor) -> Tensor:
        gates = self.function(self.inner(x))
        scores: Tensor = self.outer(gates)
        return scores


def choose(x: Tensor) -> Tensor:
    """Choose the last number of each row, the surer the larger they are."""
    return (x * torch.arange(8)).softmax(-1)


def find_saturated(function: Callable[[Tensor], Tensor], size: float, rows: int = 3) -> list[Finding]:
    torch.manual_seed(0)
    net = Gated(function, size)
    with hv.record(net) as trace:
        net(torch.ones(rows, 4)).sum().backward()
    assert not any(finding.is_bad for finding in trace.findings)
    return [finding for finding in trace.findings if finding.kind == "saturated"]


@needs_saved_tensors
@pytest.mark.parametrize(("function", "size"), [(torch.sigmoid, 3.5), (torch.tanh, 1.75)])
def test_a_saturated_function_is_a_remark(function: Callable[[Tensor], Tensor], size: float) -> None:
    [finding] = find_saturated(function, size)
    assert (finding.severity, finding.about) == ("remark", "value")
    assert f"at the limits of {function.__name__}" in finding.sentence
    assert "24 of 24 outputs are within 0.001 of a limit" in finding.sentence
    [of_many] = find_saturated(function, -size, rows=30)
    assert "outputs are within" not in of_many.sentence


@pytest.mark.parametrize("loss", [nn.BCELoss(), lambda out, y: -(y * out.log() + (1 - y) * (1 - out).log()).mean()])
def test_a_sigmoid_before_a_logarithm_is_not_flat(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Sigmoid())
    nn.init.constant_(cast("nn.Linear", net[0]).weight, 12.0)
    with hv.record(net) as trace:
        loss(net(torch.tensor([[1.0], [-0.1]])), torch.zeros(2, 1)).backward()
    assert list(trace.findings) == []


@pytest.mark.parametrize("function", [torch.sigmoid, torch.tanh, choose])
def test_a_function_that_works_is_no_finding(function: Callable[[Tensor], Tensor]) -> None:
    assert find_saturated(function, 0.5) == []
