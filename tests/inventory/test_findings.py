"""Kinds of findings that the sick trainings of the proofs do not have."""

import pytest
import torch
from torch import nn

import hookviz as hv


def watch(*_: object) -> None:
    """A hook that changes nothing."""


def test_hook_that_did_not_fire_is_a_finding() -> None:
    layer = nn.Linear(1, 1)
    layer.register_forward_hook(watch)
    with hv.record(layer) as trace:
        layer.forward(torch.ones(1)).backward()
    assert [(finding.kind, finding.severity) for finding in trace.findings] == [("unfired", "warning")]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_hook_that_fires_early_is_a_finding() -> None:
    layer = nn.Linear(1, 1)
    layer.register_full_backward_hook(watch)
    with hv.record(layer) as trace:
        layer(torch.ones(1)).backward()
    assert [(finding.kind, finding.severity) for finding in trace.findings] == [("odd_hook", "remark")]


def test_parameters_of_an_optimizer_that_no_gradient_reaches_are_a_finding() -> None:
    used, unused = nn.Linear(1, 1), nn.Linear(1, 1)
    sgd = torch.optim.SGD([*used.parameters(), *unused.parameters()], lr=0.1)
    with hv.record(used, unused) as trace:
        for _ in range(2):
            sgd.zero_grad()
            used(torch.ones(1)).backward()
            sgd.step()
    assert [finding.kind for finding in trace.findings] == ["unreached"]
