"""A hook on a parameter that was replaced is a finding with the line that does it; parameters may also take turns."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

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


# -- parameters that take turns in one module, as in functional_call


class Learner:
    """Adapts fast weights, which are parameters of their own, in each task."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))

    def list_losses(self, *, detached: bool) -> list[Tensor]:
        """Return the loss of each of three tasks; ``detached``: no fast weight of the first layer gets a gradient."""
        losses: list[Tensor] = []
        x = torch.ones(4, 2)
        for _ in range(3):
            fast: dict[str, Any] = {
                name: nn.Parameter(one.detach() + 0.1) for name, one in self.model.named_parameters()
            }
            functional_call(self.model, fast, (x,)).sum().detach()
            first = {name: one.detach() if detached else one for name, one in fast.items() if name.startswith("0")}
            losses.append(functional_call(self.model, {**fast, **first}, (x,)).square().mean())
        return losses


def list_missing(*, detached: bool) -> list[str]:
    """Return what is said of parameters without a gradient."""
    learner = Learner()
    with hv.record() as trace:
        learner.model(torch.ones(4, 2))
        for loss in learner.list_losses(detached=detached):
            loss.backward()
    return [name for finding in trace.findings if finding.kind == "cut" for name in finding.parameters]


def test_fast_weights_with_gradients_speak_for_the_parameters_of_their_module() -> None:
    assert list_missing(detached=False) == []


def test_fast_weights_without_gradients_are_named_once() -> None:
    assert list_missing(detached=True) == ["learner.model.0.weight", "learner.model.0.bias"]
