"""Findings on gradients of 0 say why, with the line, and are no fault unless nothing learns in any pass.

A function at its limits, whose gradients are nearly 0, is a remark.
"""

import re
from collections.abc import Callable
from typing import cast

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


# -- in a loss


def find_in_loss(net: nn.Module, loss: Callable[[Tensor], Tensor], steps: int) -> Finding:
    """Train a net with a loss, and return the only finding about the gradients."""
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    with hv.record(net) as trace:
        for _ in range(steps):
            sgd.zero_grad()
            loss(net(torch.rand(8, 4))).backward()
            sgd.step()
    [finding] = trace.findings.values
    return finding


def test_a_margin_that_each_example_has_is_a_remark() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    finding = find_in_loss(net, lambda out: torch.relu(out - 9).mean(), STEPS)
    assert (finding.kind, finding.severity) == ("zero", "remark") and "never learned" not in finding.sentence


@pytest.mark.parametrize(("steps", "severity"), [(1, "remark"), (STEPS, "warning")])
def test_an_op_outside_of_modules_that_is_constant_in_each_pass_of_a_loss_is_a_warning(
    steps: int, severity: str
) -> None:
    finding = find_in_loss(nn.Linear(4, 1), lambda out: (torch.relu(out - 9) - 1).square().mean(), steps)
    assert (finding.kind, finding.severity) == ("zero", severity)


@pytest.mark.parametrize("is_detached", [False, True])
def test_gradients_that_cancel_are_a_warning_that_names_both_paths(is_detached: bool) -> None:
    torch.manual_seed(0)
    net = nn.Linear(4, 3)
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    with hv.record(net) as trace:
        for _ in range(3):
            sgd.zero_grad()
            scores = net(torch.rand(8, 4)).log_softmax(1)
            new, old = scores.select(1, 0), scores.select(1, 0)
            ratio = (new - (old.detach() if is_detached else old)).exp()
            (ratio * torch.rand(8)).mean().backward()
            sgd.step()
    findings = list(trace.findings.values)
    assert len(findings) == (not is_detached)
    for finding in findings:
        assert (finding.kind, finding.severity) == ("zero", "warning") and "never learned" in finding.sentence
        assert "what arrives there from old, new adds up to 0" in finding.sentence.replace("new, old", "old, new")


# -- functions at their limits


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


def test_a_parameter_of_zeros_is_named_though_it_is_too_large_to_be_read() -> None:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer, self.gate = nn.Linear(4, 2000), nn.Linear(2000, 1), nn.Parameter(torch.zeros(2000))

        def forward(self, x: Tensor) -> Tensor:
            return cast("Tensor", self.outer(self.inner(x) * self.gate))

    net = Gated()
    with hv.record(net) as trace:
        net(torch.randn(3, 4)).sum().backward()
    [finding] = trace.findings
    assert finding.kind == "zero" and finding.text.endswith("It multiplies by net.gate: all 0.")


@pytest.mark.parametrize("function", [torch.sigmoid, torch.tanh, choose])
def test_a_function_that_works_is_no_finding(function: Callable[[Tensor], Tensor]) -> None:
    assert find_saturated(function, 0.5) == []
