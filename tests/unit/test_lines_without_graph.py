"""A line that runs without a graph made no node: it is not named as the one where NaN begins."""

from collections.abc import Callable

import pytest
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


def train_with_a_line(net: nn.Module) -> None:
    p = torch.relu(net(torch.zeros(3, 4)))
    with torch.no_grad():
        print(torch.log(p + 1).mean())
    logarithm = torch.log(p)
    (p * logarithm).sum().backward()


@pytest.mark.parametrize(
    ("program", "place"), [(train_with_a_function, (take_entropy, 1)), (train_with_a_line, (train_with_a_line, 5))]
)
def test_a_line_without_a_graph_is_not_named(
    program: Callable[[nn.Module], None], place: tuple[Callable[..., object], int]
) -> None:
    net = nn.Linear(4, 2)
    nn.init.zeros_(net.bias)
    with hv.record(net) as trace:
        program(net)
    [finding] = [finding for finding in trace.findings.values if finding.kind == "nan"]
    assert "logarithm of 0" in finding.sentence
    assert finding.line == place[0].__code__.co_firstlineno + place[1]
