"""Parameters that take turns in one module, as in ``functional_call``, are one parameter for the findings."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

import hookviz as hv


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
