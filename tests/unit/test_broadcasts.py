"""A loss of (N, 1) and (N,) is computed from (N, N) pairs: a finding with the line, unless pairs are wanted."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import hookviz as hv

X, Y = torch.randn(6, 4), torch.randn(6)


def subtract_a_vector(net: nn.Module) -> None:
    (net(X) - Y).square().mean().backward()


def multiply_two_outputs(net: nn.Module) -> None:
    (net(X).squeeze(1) * net(X + 1)).sum().backward()


def multiply_a_sum_of_rows(net: nn.Module) -> None:
    (net(X) * torch.tanh(X * net.weight).sum(1)).mean().backward()


def add_squares_of_rows(net: nn.Module) -> None:
    one, other = net(X) * X, net(X + 1) * X
    (one.square().sum(1, keepdim=True) + other.square().sum(1)).exp().mean().backward()


def scale_rows_and_columns(net: nn.Module) -> None:
    square = net(X) * torch.ones(6, 6)
    (square.square().mean(1, keepdim=True) * square.mean(0)).sum().backward()


def scale_a_direction(net: nn.Module) -> None:
    direction = torch.ones(6, requires_grad=True)
    (net(X) * F.normalize(direction, dim=0)).square().mean().backward()


def compare_by_mse_loss(net: nn.Module) -> None:
    F.mse_loss(net(X), Y).backward()


def compare_equal_shapes(net: nn.Module) -> None:
    (net(X).squeeze(1) - Y).square().mean().backward()


def compare_all_pairs(net: nn.Module) -> None:
    out = net(X).squeeze(1)
    (out[:, None] - out).square().mean().backward()


def compare_one_tensor_with_itself(net: nn.Module) -> None:
    out = net(X)
    (out - out.squeeze(1)).square().mean().backward()


def compare_pairs_with_data(net: nn.Module) -> None:
    (net(X) - Y[None, :]).square().mean().backward()


def scale_a_square(net: nn.Module) -> None:
    hidden = net(X) * torch.ones(6, 6)
    hidden.softmax(1).mean().backward()


def record_loss(loss: Callable[[nn.Module], None]) -> hv.Trace:
    net = nn.Linear(4, 1)
    with hv.record(net) as trace:
        loss(net)
    return trace


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    "loss",
    [subtract_a_vector, multiply_two_outputs, multiply_a_sum_of_rows, compare_by_mse_loss],
)
def test_a_loss_of_all_pairs_is_likely_with_its_line(loss: Callable[[nn.Module], None]) -> None:
    (finding,) = [finding for finding in record_loss(loss).findings if finding.kind == "broadcast"]
    assert (finding.severity, finding.certainty, finding.about) == ("warning", "likely", "value")
    assert "(6, 6)" in finding.sentence and "batch" not in finding.text
    assert finding.line == loss.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    "loss",
    [
        compare_equal_shapes,
        compare_all_pairs,
        compare_one_tensor_with_itself,
        compare_pairs_with_data,
        scale_a_square,
        add_squares_of_rows,
        scale_rows_and_columns,
        scale_a_direction,
    ],
)
def test_losses_of_equal_shapes_and_of_wanted_pairs_are_healthy(loss: Callable[[nn.Module], None]) -> None:
    assert "broadcast" not in [finding.kind for finding in record_loss(loss).findings]
