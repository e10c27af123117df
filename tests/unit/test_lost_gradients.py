"""Gradients that a training computes and does not use, or uses twice, are a finding; the healthy twin has none."""

import torch
from torch import nn
from torch.optim import LBFGS, SGD

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


# -- gradients that are cleared before a step uses them


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


def test_passes_for_a_closure_or_for_gathered_gradients_discard_nothing() -> None:
    net = small_net()
    sgd, lbfgs = SGD(net.parameters(), lr=0.01), LBFGS(net.parameters(), lr=0.1, max_iter=3)

    def closure() -> torch.Tensor:
        lbfgs.zero_grad()
        loss = net(X).square().mean()
        loss.backward()
        return loss

    with hv.record(net) as trace:
        for _ in range(2):
            lbfgs.step(closure)
    assert "discarded" not in list_kinds(trace)
    with hv.record(net) as trace:
        for _ in range(2):  # the gradient of each row by itself, as for private training
            gathered = [torch.zeros_like(parameter) for parameter in net.parameters()]
            for row in X:
                sgd.zero_grad()
                net(row).square().mean().backward()
                for total, parameter in zip(gathered, net.parameters(), strict=True):
                    total += parameter.grad if parameter.grad is not None else 0
            for total, parameter in zip(gathered, net.parameters(), strict=True):
                parameter.grad = total
            sgd.step()
    assert "discarded" not in list_kinds(trace)
