"""What a hook does beside its gradient: it draws random numbers, or changes a parameter of its module."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv


def draw(*_: Any) -> None:
    torch.rand(1)


def clip_data(module: Any, *_: Any) -> None:
    module.weight.data.clamp_(-0.01, 0.01)


def replace_parameter(module: Any, *_: Any) -> None:
    module.weight = nn.Parameter(module.weight.detach() * 2)


def look(module: Any, *_: Any) -> None:
    module.weight.data.mean()


EFFECTS: dict[Callable[..., None], str] = {
    draw: "It drew random numbers",
    clip_data: "It changed weight of its module.",
    replace_parameter: "It changed weight of its module.",
    look: "",
}


def record_hook(hook: Callable[..., None]) -> hv.Trace:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(100, 100), nn.Tanh(), nn.Linear(100, 1))
    net[2].register_forward_pre_hook(hook)
    with hv.record(net) as trace:
        net(torch.ones(2, 100)).sum().backward()
    return trace


@pytest.mark.parametrize("hook", EFFECTS, ids=lambda hook: hook.__name__)
def test_a_hook_that_does_something_else_says_so(hook: Callable[..., None]) -> None:
    (firing,) = record_hook(hook).firings
    assert (EFFECTS[hook] or "left them unchanged") in firing.sentence
    assert ("It " in firing.sentence) is bool(EFFECTS[hook])


def test_a_comparison_names_what_a_hook_did_beside_its_gradient() -> None:
    difference = record_hook(clip_data).diff(record_hook(look))
    assert "No observed hook causes the difference. But clip_data" in difference.sentence
    assert "changed weight of its module: it may be the cause." in difference.sentence
