"""What switched the graph off for a call, read in the text: short enough here that all of it is recorded."""

from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv


def evaluate_for_good(net: nn.Module) -> None:
    torch.set_grad_enabled(False)
    net(torch.ones(2))
    torch.set_grad_enabled(True)


def encode(net: nn.Module) -> Any:
    return net(torch.ones(2))


@torch.no_grad()
def frozen_features(net: nn.Module) -> Any:
    return encode(net)


def features_for_good(net: nn.Module) -> Any:
    torch.set_grad_enabled(False)
    features = net(torch.ones(2))
    torch.set_grad_enabled(True)
    return features


@pytest.mark.parametrize("cuts", [False, True])
def test_code_that_is_not_around_a_call_is_not_said_to_have_switched_its_graph_off(cuts: bool) -> None:
    for compute, text in (
        (frozen_features, ""),
        (features_for_good, "set_grad_enabled(False) at "),
    ):
        net, head = nn.Linear(2, 2), nn.Linear(2, 1)
        with hv.record(net, head, cuts=cuts) as trace:
            head(compute(net)).sum().backward()
            evaluate_for_good(head)
        (finding,) = [row for row in trace.findings if "net.weight" in row.parameters]
        assert ("holds until" in finding.cause) == text.startswith("set_grad")
        assert text in finding.cause and "numpy" not in finding.advice
