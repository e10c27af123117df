"""Findings on gradients that vanish or explode name the weights, the sigmoids or the softmax that do it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.analysis.findings import Finding
from tests.marked_lines import find_fault
from tests.requirements import needs_saved_tensors


def list_found(net: nn.Module, x: Tensor) -> list[Finding]:
    with hv.record(net) as trace:
        net(x).square().mean().backward()
    return [row for row in trace.findings.values if row.kind in ("vanishing", "exploding")]


def draw(net: nn.Module, spread: float) -> None:
    for parameter in net.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=spread)  # fault
        else:
            nn.init.zeros_(parameter)


@pytest.mark.parametrize(
    ("spread", "kind", "word"), [(0.01, "vanishing", "too small"), (1.0, "exploding", "too large"), (0.2, "", "")]
)
def test_weights_of_the_wrong_size_are_named(spread: float, kind: str, word: str) -> None:
    torch.manual_seed(0)
    parts = [part for _ in range(8) for part in (nn.Linear(48, 48), nn.ReLU())]
    net = nn.Sequential(*parts, nn.Linear(48, 1))
    draw(net, spread)
    found = list_found(net, torch.randn(16, 48))
    assert [finding.kind for finding in found] == ([kind] if kind else [])
    for finding in found:
        assert f"Their weights are {word}: in the forward, each of them makes" in finding.sentence


class Deep(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(nn.Linear(8, 8) for _ in range(10))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.function(layer(x))
        return x


@pytest.mark.parametrize(("function", "is_named"), [(torch.sigmoid, True), (torch.tanh, False)])
def test_sigmoids_between_shrinking_gradients_are_named(function: Callable[[Tensor], Tensor], is_named: bool) -> None:
    torch.manual_seed(0)
    found = list_found(Deep(function), torch.randn(8, 8))
    assert ["sigmoids, whose slope is 0.25 or less" in finding.sentence for finding in found] == [True] * is_named


class Attention(nn.Module):
    """Weighs three rows by products, whose size is that of its factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor, self.query, self.value, self.out = factor, nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ x.t() * self.factor
        y: Tensor = self.out(scores.softmax(-1) @ self.value(x))  # fault
        return y


@pytest.mark.parametrize(("factor", "is_flat"), [pytest.param(200.0, True, marks=needs_saved_tensors), (1.0, False)])
def test_a_softmax_that_keeps_a_gradient_off_is_named_with_its_line(factor: float, is_flat: bool) -> None:
    torch.manual_seed(3)
    found = list_found(Attention(factor), torch.eye(3, 4) + torch.ones(3, 4))
    assert len(found) == is_flat
    for finding in found:
        assert (finding.severity, finding.line) == ("warning", find_fault(__file__, "class Attention("))
        assert "Hardly any gradient comes to net.query.weight" in finding.sentence
        assert "its outputs lie at its limits" in finding.sentence


class Part(nn.Module):
    """Leaves a part of the gradient: its own op a tenth, the layer in it half."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        with torch.no_grad():
            nn.init.eye_(self.inner.weight).mul_(0.5)

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = self.inner(x)
        return inner * 0.1


def test_what_each_module_of_a_chain_leaves_includes_the_modules_in_it() -> None:
    net = nn.Sequential(nn.Linear(4, 4), *(Part() for _ in range(6)))
    with hv.record(net) as trace:
        net(torch.rand(3, 4)).sum().backward()
    [finding] = [finding for finding in trace.findings if finding.kind == "vanishing"]
    assert "each of 6 Part leaves about 0.05 of it." in finding.sentence
