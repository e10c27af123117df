"""A loss that is 0, or a term of it that does not count, sends zeros: no fault, unless nothing learns in any pass."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.analysis.findings import Finding

STEPS = 3


def train_margin(loss: Callable[[Tensor], Tensor], steps: int) -> Finding:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    with hv.record(net) as trace:
        for _ in range(steps):
            sgd.zero_grad()
            loss(net(torch.rand(8, 4))).backward()
            sgd.step()
    [finding] = trace.findings.values
    return finding


@pytest.mark.parametrize(
    "loss",
    [
        lambda out: torch.relu(out - 9).mean(),
        lambda out: (9 + out).clamp(max=0).square().mean(),
        lambda out: nn.MarginRankingLoss(0.1)(out + 9, torch.zeros(8, 1), torch.ones(8, 1)),
    ],
)
@pytest.mark.parametrize("steps", [1, STEPS])
def test_a_margin_that_each_example_has_is_a_remark(loss: Callable[[Tensor], Tensor], steps: int) -> None:
    finding = train_margin(loss, steps)
    assert (finding.kind, finding.severity) == ("zero", "remark") and "never learned" not in finding.sentence


@pytest.mark.parametrize(("steps", "severity"), [(1, "remark"), (STEPS, "warning")])
def test_an_op_outside_of_modules_that_is_constant_in_each_pass_of_a_loss_is_a_warning(
    steps: int, severity: str
) -> None:
    finding = train_margin(lambda out: (torch.relu(out - 9) - 1).square().mean(), steps)
    assert (finding.kind, finding.severity) == ("zero", severity)


def test_a_term_of_a_loss_that_does_not_count_yet_is_a_remark() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    with hv.record(net) as trace:
        for part in (0.0, 0.0, 0.5, 1.0):
            net(torch.rand(8, 4)).mean().backward()
            (net(torch.rand(8, 4)).square().mean() * part).backward()
    [finding] = trace.findings.values
    assert (finding.kind, finding.severity, finding.when) == ("zero", "remark", "in 2 of 8 passes")
