"""Ops that make no sense in this order are a finding; the healthy twin has none."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import hookviz as hv

X, CLASSES = torch.randn(5, 4), torch.zeros(5, dtype=torch.long)


def record_loss(loss: Callable[[Tensor], Tensor]) -> hv.Trace:
    net = nn.Linear(4, 3)
    with hv.record(net) as trace:
        loss(net(X)).backward()
    return trace


def sigmoid_before_logits(out: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(torch.sigmoid(out).flatten(), torch.ones(15))


def nll_loss_of_scores(out: Tensor) -> Tensor:
    return F.nll_loss(out, CLASSES)


@pytest.mark.parametrize(
    ("loss", "kind", "certainty"),
    [(sigmoid_before_logits, "sigmoid_twice", "proven"), (nll_loss_of_scores, "raw_scores", "likely")],
)
def test_a_loss_that_gets_what_it_does_not_expect_is_a_warning(
    loss: Callable[[Tensor], Tensor], kind: str, certainty: str
) -> None:
    trace = record_loss(loss)
    assert [(row.kind, row.severity, row.certainty) for row in trace.findings] == [(kind, "warning", certainty)]


@pytest.mark.parametrize(
    ("loss", "is_in_loss"),
    [
        (lambda out: F.cross_entropy(out.softmax(1), CLASSES), True),
        (lambda out: F.cross_entropy(out.softmax(-1).view(-1, 3), CLASSES), True),
        (lambda out: out.softmax(-1).softmax(1).square().sum(), False),
    ],
)
def test_a_softmax_along_the_same_dimension_is_a_warning(loss: Callable[[Tensor], Tensor], is_in_loss: bool) -> None:
    [finding] = record_loss(loss).findings
    assert (finding.kind, finding.severity, finding.certainty) == ("softmax_twice", "warning", "proven")
    assert ("cross_entropy expects logits" in finding.text) == is_in_loss


def sigmoid_with_its_loss(out: Tensor) -> Tensor:
    return F.binary_cross_entropy(torch.sigmoid(out), torch.ones(5, 3))


def nll_loss_of_log_softmax(out: Tensor) -> Tensor:
    return F.nll_loss(out.log_softmax(1), CLASSES)


def nll_loss_of_logarithms(out: Tensor) -> Tensor:
    return F.nll_loss(out.softmax(1).log(), CLASSES)


def nll_loss_that_picks_scores(out: Tensor) -> Tensor:
    return (-F.nll_loss(out, CLASSES, reduction="none") - 1).square().mean()


def softmax_along_each_dimension(out: Tensor) -> Tensor:
    return out.softmax(1).softmax(0).square().sum()


def softmax_of_turned_probabilities(out: Tensor) -> Tensor:
    return out.softmax(1).t().softmax(1).square().sum()


@pytest.mark.parametrize(
    "loss",
    [
        sigmoid_with_its_loss,
        nll_loss_of_log_softmax,
        nll_loss_of_logarithms,
        nll_loss_that_picks_scores,
        softmax_along_each_dimension,
        softmax_of_turned_probabilities,
    ],
)
def test_losses_of_what_they_expect_are_healthy(loss: Callable[[Tensor], Tensor]) -> None:
    assert list(record_loss(loss).findings) == []
