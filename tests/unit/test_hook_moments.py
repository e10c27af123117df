"""Tensor hooks that read a ``.grad`` too early, or whose tensor is edited later, are a remark; the twins are none."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv

SEEN: list[Any] = []


def read_grad_of_the_parameter(net: nn.Linear, maps: Tensor) -> None:
    weight = net.weight

    def log(_grad: Tensor) -> None:
        SEEN.append(weight.grad)

    weight.register_hook(log)


def read_grad_after_it_was_written(net: nn.Linear, maps: Tensor) -> None:
    net.weight.register_post_accumulate_grad_hook(lambda weight: SEEN.append(weight.grad))


def edit_after_the_hook(net: nn.Linear, maps: Tensor) -> None:
    maps.register_hook(SEEN.append)
    maps.clamp_(min=0).mul_(4.0)


def edit_before_the_hook(net: nn.Linear, maps: Tensor) -> None:
    maps.clamp_(min=0).mul_(4.0)
    maps.register_hook(SEEN.append)


def edit_another_tensor(net: nn.Linear, maps: Tensor) -> None:
    maps.register_hook(SEEN.append)
    maps = maps * 2
    maps += 1


def read_grad_of_another_leaf(net: nn.Linear, maps: Tensor) -> None:
    weight, scale = net.weight, torch.ones(3, requires_grad=True)
    weight.register_hook(lambda grad: grad if scale.grad is None else grad / scale.grad.norm())


def edit_after_the_pass(net: nn.Linear, maps: Tensor) -> None:
    maps.register_hook(SEEN.append)
    maps.sum().backward(retain_graph=True)
    maps.mul_(4.0)


def edit_in_a_branch(net: nn.Linear, maps: Tensor) -> None:
    maps.register_hook(SEEN.append)
    if len(SEEN) < 0:
        maps.mul_(4.0)


PROGRAMS: dict[Callable[[nn.Linear, Tensor], None], list[tuple[str, str, str]]] = {
    read_grad_of_the_parameter: [("early_read", "remark", "SEEN.append(weight.grad)")],
    edit_after_the_hook: [("edited_later", "remark", "maps.clamp_(min=0).mul_(4.0)")],
    read_grad_of_another_leaf: [],
    edit_after_the_pass: [],
    edit_in_a_branch: [],
    read_grad_after_it_was_written: [],
    edit_before_the_hook: [],
    edit_another_tensor: [],
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_hook_at_another_moment_is_a_remark_with_its_line(program: Callable[[nn.Linear, Tensor], None]) -> None:
    torch.manual_seed(0)
    with hv.record() as trace:
        net = nn.Linear(3, 3)
        maps = net(torch.ones(2, 3))
        program(net, maps)
        if program is edit_after_the_pass:
            maps = net(torch.ones(2, 3))
        maps.square().sum().backward()
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    found = [(row.kind, row.severity, lines[(row.line or 0) - 1].strip()) for row in trace.findings]
    assert found == PROGRAMS[program]
