"""A loss that grew before NaN or Inf is named if it is the same loss; the optimizer, if its steps moved far."""

import pytest
import torch
from torch import nn

import hookviz as hv

ROSE, TOO_LARGE = "Before that, the loss rose from", "the steps of the optimizer are too large"


def train(rate: float, scales: list[float], *, is_stepping: bool = True) -> str:
    """Train with a loss of data whose scale the program chooses, and that is Inf in the last pass."""
    torch.manual_seed(0)
    net = nn.Linear(4, 1)
    sgd = torch.optim.SGD(net.parameters(), rate)
    with hv.record(net) as trace:
        for scale in [*scales, torch.inf]:
            sgd.zero_grad()
            ((net(torch.ones(8, 4)) - 1).square().mean() * scale).backward()
            if is_stepping:
                sgd.step()
    return next(finding for finding in trace.findings.values if finding.kind in ("nan", "inf")).sentence


def test_a_loss_that_grows_by_steps_that_move_far_is_blamed_on_them() -> None:
    sentence = train(30.0, [1.0] * 6)
    assert ROSE in sentence and TOO_LARGE in sentence


@pytest.mark.parametrize(("is_stepping", "is_said"), [(True, True), (False, False)])
def test_a_loss_that_the_data_make_larger_is_not_blamed_on_the_optimizer(is_stepping: bool, is_said: bool) -> None:
    sentence = train(1e-9, [1e-3, 1.0, 1e3], is_stepping=is_stepping)
    assert (ROSE in sentence) == is_said and TOO_LARGE not in sentence
