"""What a program did with a module in place of calling it, read in its text: it used its forward, or its weights."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from tests.unit.test_missed_calls import find_silent, look


class Wrapped(nn.Module):
    """Calls the forward of its part itself."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 2), nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net.forward(x)


def test_a_forward_call_is_no_reason_for_a_net_that_nobody_used() -> None:
    def program(*, uses_target: bool) -> None:
        policy, target = Wrapped(), Wrapped()
        target.net.register_forward_hook(look)
        (target if uses_target else policy)(torch.ones(2, 4)).sum().backward()

    assert "self.net.forward" not in find_silent(lambda: program(uses_target=False)).cause
    assert "self.net.forward" in find_silent(lambda: program(uses_target=True)).cause


class Functional(nn.Module):
    """Uses a layer without a call; its weights are drawn where it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = nn.Linear(4, 2)
        nn.init.normal_(self.drawn.weight, 0.0, 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, *self.drawn.parameters())


class Direct(nn.Module):
    """Uses the weight of a layer in a function."""

    def __init__(self) -> None:
        super().__init__()
        self.tied = nn.Linear(4, 2)
        nn.init.normal_(self.tied.weight, 0.0, 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.tied.weight)


def test_weights_that_are_drawn_where_a_net_is_made_are_not_used_there() -> None:
    def program(net: nn.Module) -> None:
        for layer in net.children():
            layer.register_forward_hook(look)
        net(torch.ones(2, 4)).sum().backward()

    assert "self.drawn" not in find_silent(lambda: program(Functional())).cause
    finding = find_silent(lambda: program(Direct()))
    assert "Your code uses self.tied.weight" in finding.cause
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert source[(finding.line or 0) - 1].strip() == "return F.linear(x, self.tied.weight)"
