"""A loss that is 0, or a term of it that does not count, sends zeros: no fault, unless nothing learns in any pass."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.analysis.findings import Finding

STEPS = 3


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


@pytest.mark.parametrize("is_used_again", [True, False])
def test_later_passes_show_no_zeros_if_they_use_the_same_op(is_used_again: bool) -> None:
    torch.manual_seed(0)
    low_rank, other = nn.Sequential(nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)), nn.Linear(4, 4)
    nn.init.zeros_(low_rank[1].weight)
    sgd = torch.optim.SGD([*low_rank.parameters(), *other.parameters()], 0.1)
    with hv.record(low_rank, other) as trace:
        for number in range(3):
            sgd.zero_grad()
            net = low_rank if is_used_again or not number else other
            (net(torch.rand(8, 4)) - 1).square().mean().backward()
            sgd.step()
    [finding] = [finding for finding in trace.findings.values if finding.kind == "zero"]
    assert ("Later passes do not show this" in finding.sentence) == is_used_again


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


def test_a_term_of_a_loss_that_does_not_count_yet_is_a_remark() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    with hv.record(net) as trace:
        for part in (0.0, 0.0, 0.5, 1.0):
            net(torch.rand(8, 4)).mean().backward()
            (net(torch.rand(8, 4)).square().mean() * part).backward()
    [finding] = trace.findings.values
    assert (finding.kind, finding.severity, finding.when) == ("zero", "remark", "in 2 of 8 passes")


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
