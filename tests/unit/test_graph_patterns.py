"""Ops that make no sense in this order, or of these shapes, are a finding; the healthy twin has none."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import hookviz as hv

X, Y, CLASSES = torch.randn(6, 4), torch.randn(6), torch.zeros(6, dtype=torch.long)

Loss = Callable[[nn.Module], Tensor]


def record_loss(loss: Loss) -> hv.Trace:
    net = nn.Linear(4, 3)
    with hv.record(net) as trace:
        loss(net).backward()
    return trace


# -- a function of probabilities, logits or logarithms


@pytest.mark.parametrize(
    ("loss", "kind", "certainty"),
    [
        (lambda net: F.binary_cross_entropy_with_logits(net(X).sigmoid(), torch.ones(6, 3)), "sigmoid_twice", "proven"),
        (lambda net: F.nll_loss(net(X), CLASSES), "raw_scores", "likely"),
    ],
)
def test_a_loss_that_gets_what_it_does_not_expect_is_a_warning(loss: Loss, kind: str, certainty: str) -> None:
    findings = record_loss(loss).findings
    assert [(row.kind, row.severity, row.certainty) for row in findings] == [(kind, "warning", certainty)]


@pytest.mark.parametrize(
    ("loss", "is_in_loss"),
    [
        (lambda net: F.cross_entropy(net(X).softmax(1), CLASSES), True),
        (lambda net: net(X).softmax(-1).softmax(1).square().sum(), False),
    ],
)
def test_a_softmax_along_the_same_dimension_is_a_warning(loss: Loss, is_in_loss: bool) -> None:
    [finding] = record_loss(loss).findings
    assert (finding.kind, finding.severity, finding.certainty) == ("softmax_twice", "warning", "proven")
    assert ("cross_entropy expects logits" in finding.text) == is_in_loss


@pytest.mark.parametrize(
    "loss",
    [
        lambda net: F.binary_cross_entropy(net(X).sigmoid(), torch.ones(6, 3)),
        lambda net: F.nll_loss(net(X).log_softmax(1), CLASSES),
        lambda net: F.nll_loss(net(X).softmax(1).log(), CLASSES),
        lambda net: net(X).softmax(1).softmax(0).square().sum(),
    ],
)
def test_losses_of_what_they_expect_are_healthy(loss: Loss) -> None:
    assert list(record_loss(loss).findings) == []


# -- a loss of (N, 1) and (N,), which is computed from (N, N) pairs


def subtract_a_vector(net: nn.Module) -> None:
    (net(X) - Y).square().mean().backward()


def multiply_two_outputs(net: nn.Module) -> None:
    (net(X).squeeze(1) * net(X + 1)).sum().backward()


def add_squares_of_rows(net: nn.Module) -> None:
    one, other = net(X) * X, net(X + 1) * X
    (one.square().sum(1, keepdim=True) + other.square().sum(1)).exp().mean().backward()


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


def record_pairs(run: Callable[[nn.Module], None]) -> hv.Trace:
    net = nn.Linear(4, 1)
    with hv.record(net) as trace:
        run(net)
    return trace


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    "run",
    [subtract_a_vector, multiply_two_outputs, compare_by_mse_loss],
)
def test_a_loss_of_all_pairs_is_likely_with_its_line(run: Callable[[nn.Module], None]) -> None:
    (finding,) = [finding for finding in record_pairs(run).findings if finding.kind == "broadcast"]
    assert (finding.severity, finding.certainty, finding.about) == ("warning", "likely", "value")
    assert "(6, 6)" in finding.sentence and "batch" not in finding.text
    assert finding.line == run.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    "run",
    [
        compare_equal_shapes,
        compare_all_pairs,
        compare_one_tensor_with_itself,
        compare_pairs_with_data,
        add_squares_of_rows,
        scale_a_direction,
    ],
)
def test_losses_of_equal_shapes_and_of_wanted_pairs_are_healthy(run: Callable[[nn.Module], None]) -> None:
    assert "broadcast" not in [finding.kind for finding in record_pairs(run).findings]
