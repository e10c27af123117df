"""Gradients that a training computes and does not use are a finding; the healthy twin has none."""

import contextlib
import warnings

import pytest
import torch
from torch import nn
from torch.optim import SGD

import hookviz as hv

X = torch.ones(2, 4)


def small_net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def list_kinds(trace: hv.Trace) -> list[str]:
    return [finding.kind for finding in trace.findings]


def read_line(finding: hv.Finding) -> str:
    """Return the code of the line of a finding in this file."""
    with open(__file__, encoding="utf-8") as file:
        return file.read().splitlines()[(finding.line or 0) - 1].strip()


def test_gradients_of_earlier_passes_that_no_step_uses_are_a_warning_with_the_line() -> None:
    net = small_net()
    sgd = SGD(net.parameters(), lr=0.01)
    with hv.record(net) as trace:
        for number in range(6):
            sgd.zero_grad()
            (net(X).square().mean() / 2).backward()
            if number % 2:
                sgd.step()
    (finding,) = trace.findings
    assert (finding.kind, finding.severity, finding.passes) == ("discarded", "warning", (0, 2, 4))
    assert finding.sentence.startswith("Each step of sgd came after 2 passes and used the gradients of the last one")
    assert (read_line(finding), finding.line_role) == ("sgd.zero_grad()", "clears")


@pytest.mark.parametrize("is_written", [True, False])
def test_gathered_gradients_that_were_written_back_are_not_those_of_the_last_pass(is_written: bool) -> None:
    """As for private training, the gradient of each row is gathered by itself."""
    net = small_net()
    sgd = SGD(net.parameters(), lr=0.01)
    with hv.record(net) as trace:
        for _ in range(2):
            sums = [torch.zeros_like(parameter) for parameter in net.parameters()]
            for row in X:
                sgd.zero_grad()
                net(row).square().mean().backward()
                for total, parameter in zip(sums, net.parameters(), strict=True):
                    total += parameter.grad if parameter.grad is not None else 0
            for total, parameter in zip(sums, net.parameters(), strict=True):
                if is_written:
                    parameter.grad = total
            sgd.step()
    assert list_kinds(trace) == ([] if is_written else ["discarded"])


class Scaled(nn.Module):
    def __init__(self, *, is_parameter: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)
        if is_parameter:
            self.scale = nn.Parameter(torch.ones(1))
        else:
            self.scale = torch.ones(1, requires_grad=True)  # type: ignore[assignment]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * self.scale


def train_scaled(x: torch.Tensor, *, is_parameter: bool) -> hv.Trace:
    net = Scaled(is_parameter=is_parameter)
    sgd = SGD(net.parameters(), lr=0.01)
    with hv.record() as trace:
        for _ in range(3):
            sgd.zero_grad()
            net(x).square().mean().backward()
            sgd.step()
    return trace


def test_a_tensor_that_should_be_a_parameter_is_a_warning_and_an_input_is_none() -> None:
    (finding,) = train_scaled(X, is_parameter=False).findings
    assert (finding.kind, finding.severity) == ("missing", "warning")
    assert "net uses a tensor of shape (1,), which requires grad" in finding.sentence
    assert read_line(finding).startswith("self.scale = torch.ones(1, requires_grad=True)")
    assert list_kinds(train_scaled(X, is_parameter=True)) == []
    assert list_kinds(train_scaled(X.clone().requires_grad_(), is_parameter=True)) == []


def update_in_place() -> hv.Trace:
    net = small_net()
    with hv.record(net) as trace:
        for _ in range(2):
            net.zero_grad()
            net(X).square().mean().backward()
            with torch.no_grad():
                for p in net.parameters():
                    assert p.grad is not None
                    p -= 0.1 * p.grad
    return trace


def update_in_vain() -> hv.Trace:
    net = small_net()
    with hv.record(net) as trace:
        for _ in range(2):
            net.zero_grad()
            net(X).square().mean().backward()
            with torch.no_grad():
                for p in net.parameters():
                    assert p.grad is not None
                    p = p - 0.1 * p.grad  # type: ignore[assignment]
    return trace


def test_an_update_that_only_binds_the_variable_of_a_loop_is_a_warning_with_its_line() -> None:
    (finding,) = update_in_vain().findings
    assert (finding.kind, finding.severity, finding.passes) == ("rebound", "warning", (0, 1))
    assert read_line(finding).startswith("p = p - 0.1 * p.grad")
    assert list_kinds(update_in_place()) == []


def test_a_leaf_that_an_update_replaced_explains_why_its_grad_is_none() -> None:
    w = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(), contextlib.suppress(TypeError), hv.record() as trace:
        warnings.simplefilter("ignore")  # torch warns of .grad of a tensor that is not a leaf
        for _ in range(2):
            w.sum().backward()
            w = w - 0.1 * w.grad
    (finding,) = trace.findings
    assert finding.kind == "exception" and "made w the result of an op" in finding.cause
