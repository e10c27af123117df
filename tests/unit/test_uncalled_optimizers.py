"""An optimizer of a model that is never called is found, and the copy that gets the gradients is named."""

import copy

import pytest
import torch
from torch import nn
from torch.optim import SGD

import hookviz as hv


def learn(*, hands_back: bool) -> hv.Trace:
    """Adapt copies of a net to tasks, as meta-learning does, and take a step of the net itself."""
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    outer = SGD(net.parameters(), 0.1)
    with hv.record() as trace:
        for _ in range(3):
            fast = copy.deepcopy(net)
            inner = SGD(fast.parameters(), 0.1)
            for _ in range(2):
                inner.zero_grad()
                fast(torch.rand(4, 2)).square().mean().backward()
                inner.step()
            for own, other in zip(net.parameters(), fast.parameters(), strict=True):
                own.grad = other.grad if hands_back else None
            outer.step()
    return trace


@pytest.mark.parametrize("hands_back", [False, True])
def test_steps_of_a_model_whose_copy_gets_the_gradients_are_a_warning(hands_back: bool) -> None:
    found = [finding for finding in learn(hands_back=hands_back).findings if finding.kind == "unreached"]
    assert len(found) == (not hands_back)
    for finding in found:
        assert finding.severity == "warning" and finding.sentence.startswith("outer took 3 steps, and none of what it")
        assert finding.cause.startswith("The gradients go to fast, ") and finding.line_role == "update"
