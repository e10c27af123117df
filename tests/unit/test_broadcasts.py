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
    ("loss", "certainty"),
    [(subtract_a_vector, "likely"), (multiply_two_outputs, "proven"), (compare_by_mse_loss, "likely")],
)
def test_a_loss_of_all_pairs_is_a_warning_with_its_line(loss: Callable[[nn.Module], None], certainty: str) -> None:
    (finding,) = [finding for finding in record_loss(loss).findings if finding.kind == "broadcast"]
    assert (finding.severity, finding.certainty, finding.about) == ("warning", certainty, "value")
    assert "(6, 6)" in finding.sentence
    assert finding.line == loss.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    "loss",
    [compare_equal_shapes, compare_all_pairs, compare_one_tensor_with_itself, compare_pairs_with_data, scale_a_square],
)
def test_losses_of_equal_shapes_and_of_wanted_pairs_are_healthy(loss: Callable[[nn.Module], None]) -> None:
    assert "broadcast" not in [finding.kind for finding in record_loss(loss).findings]
