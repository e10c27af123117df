"""A hook on a parameter that was replaced is a finding with the line that replaces it."""

import pytest
import torch
from torch import nn

import hookviz as hv


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.scale.register_hook(lambda grad: grad * 0.5)

    def reset(self, value: float, *, in_place: bool) -> None:
        if in_place:
            nn.init.constant_(self.scale, value)
        else:
            self.scale = nn.Parameter(torch.full((4,), value))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def reset_scale(*, in_place: bool) -> hv.Trace:
    with hv.record() as trace:
        net = Scaled()
        net.reset(0.5, in_place=in_place)
        net(torch.ones(2, 4)).sum().backward()
    return trace


def test_a_parameter_that_was_replaced_after_its_hook_is_named_with_the_line_that_replaces_it() -> None:
    (finding,) = reset_scale(in_place=False).findings
    assert (finding.kind, finding.severity, finding.line_role) == ("substituted", "warning", "replaces")
    assert "It was registered on self.scale (" in finding.cause
    with open(__file__, encoding="utf-8") as file:
        code = file.read().splitlines()[(finding.line or 0) - 1].strip()
    assert code == "self.scale = nn.Parameter(torch.full((4,), value))"
    assert list(reset_scale(in_place=True).findings) == []


class Tuned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tune = nn.Parameter(torch.ones(4))
        self.tune.register_hook(lambda grad: grad * 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.tune


class Trainer:
    def __init__(self) -> None:
        self.net = Tuned()

    def start(self) -> None:
        self.net.tune = nn.Parameter(torch.full((4,), 0.25))


def test_a_parameter_that_is_replaced_from_outside_is_named_too() -> None:
    with hv.record() as trace:
        trainer = Trainer()
        trainer.start()
        trainer.net(torch.ones(2, 4)).sum().backward()
    (finding,) = trace.findings
    assert finding.line_role == "replaces" and "It was registered on self.tune (" in finding.cause


@pytest.mark.parametrize("trains_new", [True, False])
def test_no_gradient_is_missing_under_the_name_of_a_parameter_that_gets_one(trains_new: bool) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3))
    with hv.record(net) as trace:
        net(torch.ones(1, 2))
        net[1] = nn.Linear(2, 1)
        first = net[0](torch.ones(1, 2))
        (net[1](first) if trains_new else first).sum().backward()
    names = {name for finding in trace.findings if finding.kind == "cut" for name in finding.parameters}
    assert names == (set() if trains_new else {"net.1.weight", "net.1.bias"})
