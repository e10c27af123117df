"""Findings on gradients of 0 say why they are 0, with the line, and are no fault unless nothing learns in any pass."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.analysis.findings import Finding
from tests.marked_lines import find_fault
from tests.requirements import needs_saved_tensors

STEPS = 3


class Rounded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.round(x * 8) / 8  # fault


class Straight(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + (torch.round(x * 8) / 8 - x).detach()


class Clamped(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x + 3).clamp(0, 1)  # fault


class Large(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 1e4


class Dead(nn.Module):
    """Takes two ReLUs in two lines, of which the first one is dead."""

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 4)
        nn.init.constant_(self.first.bias, bias)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))  # fault
        return torch.relu(self.second(h) + 1)


class LowRank(nn.Module):
    def __init__(self, spread: float) -> None:
        super().__init__()
        self.base = nn.Linear(4, 4).requires_grad_(False)
        self.down = nn.Parameter(torch.randn(2, 4) * spread)
        self.up = nn.Parameter(torch.zeros(4, 2))  # fault

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.base(x) + x @ self.down.t() @ self.up.t()
        return y


def list_found(*layers: nn.Module) -> list[Finding]:
    """Train a layer and others for some steps, and return the findings about the gradients."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), *layers)
    nn.init.uniform_(net[0].weight, -0.3, 0.3)
    sgd = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1)
    with hv.record(net) as trace:
        for _ in range(STEPS):
            sgd.zero_grad()
            (net(torch.rand(8, 4)) - torch.rand(8, 4)).square().mean().backward()
            sgd.step()
    return list(trace.findings.values)


# -- flat ops and zeros of parameters


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (Rounded(), ["at RoundBackward0 #5 of net.1 (Rounded)", "The derivative of round is 0 everywhere."]),
        pytest.param(
            Clamped(),
            ["at ClampBackward1 #5 of net.1 (Clamped)", "No number that comes in is below its limit, 1"],
            marks=needs_saved_tensors,
        ),
        (
            Dead(-20.0),
            [
                "net.1.first (Linear) returned no number above 0: they lie between -",
                "first.bias is -20 everywhere; without it, they would reach ",
            ],
        ),
    ],
)
def test_an_op_that_is_constant_is_named_with_its_line_in_the_forward(layer: nn.Module, words: list[str]) -> None:
    [finding] = list_found(layer)
    assert (finding.kind, finding.severity, finding.line) == (
        "zero",
        "warning",
        find_fault(__file__, f"class {type(layer).__name__}("),
    )
    assert all(part in finding.sentence for part in words)
    assert re.search(r"Beyond it, a gradient of 0 goes to net\.", finding.sentence)
    assert finding.sentence.endswith("got a gradient of 0: after 2 steps, they never learned.")


@pytest.mark.parametrize("layer", [nn.Softmax(1), nn.LayerNorm(1, bias=False)])
def test_an_op_that_runs_over_one_number_is_named(layer: nn.Module) -> None:
    [finding] = list_found(nn.Linear(4, 1), layer, nn.Linear(1, 4))
    assert finding.kind == "zero" and "It runs over a dimension of size 1" in finding.sentence


def test_a_saturated_tanh_is_named() -> None:
    [finding] = list_found(Large(), nn.Tanh())
    assert (finding.kind, finding.severity) == ("zero", "warning")
    assert "It is saturated: its outputs are -1 or 1" in finding.sentence
    assert "What comes in lies between" in finding.sentence


def test_two_factors_of_zeros_are_named_with_the_line_that_made_one_0() -> None:
    [finding] = list_found(LowRank(0.0))
    assert (finding.severity, finding.line, finding.line_role) == (
        "warning",
        find_fault(__file__, "class LowRank("),
        "zeros",
    )
    assert "It multiplies by net.1.up: all 0." in finding.sentence
    assert "This pass multiplies by more that is all 0: net.1.down." in finding.sentence
    [finding] = list_found(nn.Linear(4, 4), LowRank(1.0))
    assert finding.severity == "remark" and "Later passes do not show this" in finding.sentence


@pytest.mark.parametrize("make", [Straight, lambda: Dead(0.1), nn.Tanh])
def test_a_gradient_that_flows_is_no_finding(make: Callable[[], nn.Module]) -> None:
    assert list_found(make()) == []


# -- which passes show it


@pytest.mark.parametrize(("removed", "when"), [(True, "in 2 of 4 passes"), (False, "in 4 of 4 passes")])
def test_zeros_of_a_hook_are_counted_in_the_passes_in_which_that_hook_fired(removed: bool, when: str) -> None:
    net = nn.Linear(2, 3)
    net.weight.register_hook(torch.zeros_like)
    handle = net.bias.register_hook(torch.zeros_like)
    with hv.record(net) as trace:
        for number in range(4):
            if number == 2 and removed:
                handle.remove()
            net(torch.ones(1, 2)).square().sum().backward()
    zeros = {finding.sentence.partition(" replaced")[0]: finding for finding in trace.findings}
    finding = zeros["The gradient becomes 0 here: zeros_like on net.bias"]
    assert (finding.kind, finding.when) == ("zero", when)
    assert "starts at 0" not in finding.sentence
