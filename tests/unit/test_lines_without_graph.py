"""A line that runs without a graph made no node: it is not named as the one where NaN begins."""

import torch
from torch import Tensor, nn

import hookviz as hv

FUNCTIONS = {"entropy": torch.log}


def take_entropy(p: Tensor) -> Tensor:
    return p * FUNCTIONS["entropy"](p)


def train_with_a_function(net: nn.Module) -> None:
    p = torch.relu(net(torch.zeros(3, 4)))
    with torch.no_grad():
        print(torch.log(p + 1).mean())
    take_entropy(p).sum().backward()


def test_a_line_without_a_graph_is_not_named() -> None:
    net = nn.Linear(4, 2)
    nn.init.zeros_(net.bias)
    with hv.record(net) as trace:
        train_with_a_function(net)
    [finding] = [finding for finding in trace.findings.values if finding.kind == "nan"]
    assert "logarithm of 0" in finding.sentence
    assert finding.line == take_entropy.__code__.co_firstlineno + 1
