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


@pytest.mark.parametrize("is_everywhere", [True, False])
def test_a_weight_is_0_where_a_gradient_shows_it(is_everywhere: bool) -> None:
    head = nn.Linear(4, 40)
    with torch.no_grad():
        head.weight[0 if is_everywhere else 20 :] = 0
    net = nn.Sequential(nn.Linear(4, 4), head)
    finding = find_in_loss(net, lambda out: (out if is_everywhere else out[:, 20:]).square().sum(), 1)
    assert finding.kind == "zero" and ("1.weight: all 0" in finding.sentence) == is_everywhere


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


def test_the_steps_of_the_optimizer_of_what_never_learned_are_counted() -> None:
    body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 4)
    nn.init.constant_(body[0].bias, -50.0)
    optimizers = [torch.optim.SGD(body.parameters(), 0.1), torch.optim.SGD(head.parameters(), 0.1)]
    with hv.record(body, head) as trace:
        for _ in range(STEPS):
            (head(body(torch.rand(8, 4))) - 1).square().mean().backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
    [finding] = [finding for finding in trace.findings.values if finding.kind == "zero"]
    assert "In each pass body.0.weight, body.0.bias got a gradient of 0: after 2 steps" in finding.sentence


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
    finding = find_in_loss(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)), loss, steps)
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


def test_a_bias_whose_parts_cancel_in_the_loss_of_a_critic_is_no_finding() -> None:
    critic = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    with hv.record(critic) as trace:
        (critic(torch.rand(8, 4)).mean() - critic(torch.rand(8, 4)).mean()).backward()
    assert critic[2].bias.grad is not None and not critic[2].bias.grad.any()
    assert list(trace.findings.values) == []
