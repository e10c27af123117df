"""Gradients that count in a step though they belong to another, or twice, are a finding; the healthy twin has none."""

import linecache

import torch
from test_lost_gradients import X, list_kinds, small_net
from torch import nn
from torch.optim import SGD

import hookviz as hv


def read_line(finding: hv.Finding) -> str:
    """Return the code of the line of a finding in this file."""
    return linecache.getline(__file__, finding.line or 0).strip()


def pass_twice(*, zero: bool) -> hv.Trace:
    net = small_net()
    sgd = SGD(net.parameters(), lr=0.01)
    with hv.record(net) as trace:
        loss = net(X).square().mean()
        loss.backward(retain_graph=True)
        if zero:
            sgd.zero_grad()
        loss.backward()
        sgd.step()
    return trace


def test_two_passes_from_one_loss_before_a_step_are_a_warning_with_the_first_line() -> None:
    (finding,) = pass_twice(zero=False).findings
    assert (finding.kind, finding.severity, finding.certainty) == ("repeated_loss", "warning", "proven")
    assert read_line(finding) == "loss.backward(retain_graph=True)"
    assert list_kinds(pass_twice(zero=True)) == []


def test_parts_of_a_loss_and_rows_of_a_jacobian_count_once() -> None:
    net = small_net()
    sgd = SGD(net.parameters(), lr=0.01)
    with hv.record(net) as trace:
        out = net(X)
        out.mean().backward(retain_graph=True)
        out.square().mean().backward(retain_graph=True)
        for row in torch.eye(2):
            out.backward(row[:, None], retain_graph=True)
        sgd.step()
    assert list_kinds(trace) == []


def sum_losses(*, detach: bool) -> hv.Trace:
    net = nn.Linear(4, 1)
    sgd, total = SGD(net.parameters(), lr=0.01), torch.zeros(())
    with hv.record(net) as trace:
        for _ in range(3):
            sgd.zero_grad()
            loss = net(X).square().mean()
            total = total + (loss.detach() if detach else loss)
            (loss if detach else total).backward(retain_graph=True)
            sgd.step()
    return trace


def test_a_sum_of_losses_with_the_graphs_of_earlier_steps_is_a_warning() -> None:
    (finding,) = sum_losses(detach=False).findings
    assert (finding.kind, finding.passes) == ("repeated_loss", (1, 2))
    assert "belong to a forward from before that step" in finding.sentence
    assert list_kinds(sum_losses(detach=True)) == []


def train_adversaries(*, detach: bool) -> hv.Trace:
    maker, judge = nn.Linear(2, 2), nn.Linear(2, 1)
    first, second = SGD(judge.parameters(), lr=0.1), SGD(maker.parameters(), lr=0.1)
    with hv.record() as trace:
        for _ in range(3):
            second.zero_grad()
            first.zero_grad()
            made = maker(torch.ones(2, 2))
            judge(made.detach() if detach else made).mean().backward()
            first.step()
            (-judge(maker(torch.ones(2, 2)))).mean().backward()
            second.step()
    return trace


def test_gradients_of_the_pass_of_another_optimizer_are_likely_a_mistake() -> None:
    (finding,) = train_adversaries(detach=False).findings
    assert (finding.kind, finding.severity, finding.certainty) == ("not_zeroed", "warning", "likely")
    assert "after which first took its step, also wrote gradients of maker.weight" in finding.sentence
    assert read_line(finding).startswith("judge(made.detach()")
    assert list_kinds(train_adversaries(detach=True)) == []
