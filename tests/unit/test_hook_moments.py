"""Tensor hooks that read a ``.grad`` too early, or whose tensor is edited later, are a remark; the twins are none."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv

SEEN: list[Any] = []


def read_grad_of_the_parameter(net: nn.Linear) -> Tensor:
    weight = net.weight

    def log(_grad: Tensor) -> None:
        SEEN.append(weight.grad)

    weight.register_hook(log)
    return net(torch.ones(2, 3))


def read_the_argument(net: nn.Linear) -> Tensor:
    net.weight.register_hook(lambda grad: SEEN.append(grad.norm()))
    return net(torch.ones(2, 3))


def read_grad_after_it_was_written(net: nn.Linear) -> Tensor:
    net.weight.register_post_accumulate_grad_hook(lambda weight: SEEN.append(weight.grad))
    return net(torch.ones(2, 3))


def edit_after_the_hook(net: nn.Linear) -> Tensor:
    maps = net(torch.ones(2, 3))
    maps.register_hook(SEEN.append)
    maps.clamp_(min=0).mul_(4.0)
    return maps


def edit_before_the_hook(net: nn.Linear) -> Tensor:
    maps = net(torch.ones(2, 3))
    maps.clamp_(min=0).mul_(4.0)
    maps.register_hook(SEEN.append)
    return maps


def edit_another_tensor(net: nn.Linear) -> Tensor:
    maps = net(torch.ones(2, 3))
    maps.register_hook(SEEN.append)
    maps = maps * 2
    maps += 1
    return maps


def append_to_a_list_named_grad(net: nn.Linear) -> Tensor:
    log = SimpleNamespace(grad=SEEN)
    net.weight.register_hook(lambda grad: log.grad.append(grad.norm()))
    return net(torch.ones(2, 3))


def read_grad_of_another_leaf(net: nn.Linear) -> Tensor:
    weight, scale = net.weight, torch.ones(3, requires_grad=True)
    weight.register_hook(lambda grad: grad if scale.grad is None else grad / scale.grad.norm())
    return net(torch.ones(2, 3)) * scale


def detach_in_place_after_the_hook(net: nn.Linear) -> Tensor:
    maps = net(torch.ones(2, 3))
    maps.register_hook(SEEN.append)
    maps.sum().backward()
    maps.detach_()
    return net(torch.ones(2, 3))


def edit_after_the_pass(net: nn.Linear) -> Tensor:
    maps = net(torch.ones(2, 3))
    maps.register_hook(SEEN.append)
    maps.sum().backward()
    maps.mul_(4.0)
    return net(torch.ones(2, 3))


def edit_in_a_branch(net: nn.Linear) -> Tensor:
    maps = net(torch.ones(2, 3))
    maps.register_hook(SEEN.append)
    if len(SEEN) < 0:
        maps.mul_(4.0)
    return maps


def edit_in_the_branch_of_the_hook(net: nn.Linear) -> Tensor:
    maps = net(torch.ones(2, 3))
    if maps.requires_grad:
        maps.register_hook(SEEN.append)
        maps.mul_(2.0)
    return maps


PROGRAMS: dict[Callable[[nn.Linear], Tensor], tuple[str, str]] = {
    read_grad_of_the_parameter: ("early_read", "SEEN.append(weight.grad)"),
    edit_after_the_hook: ("edited_later", "maps.clamp_(min=0).mul_(4.0)"),
    edit_in_the_branch_of_the_hook: ("edited_later", "maps.mul_(2.0)"),
    append_to_a_list_named_grad: ("", ""),
    read_grad_of_another_leaf: ("", ""),
    detach_in_place_after_the_hook: ("", ""),
    edit_after_the_pass: ("", ""),
    edit_in_a_branch: ("", ""),
    read_the_argument: ("", ""),
    read_grad_after_it_was_written: ("", ""),
    edit_before_the_hook: ("", ""),
    edit_another_tensor: ("", ""),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_hook_at_another_moment_is_a_remark_with_its_line(program: Callable[[nn.Linear], Tensor]) -> None:
    torch.manual_seed(0)
    with hv.record() as trace:
        program(nn.Linear(3, 3)).square().sum().backward()
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    found = [(row.kind, lines[(row.line or 0) - 1].strip()) for row in trace.findings]
    assert found == [one for one in (PROGRAMS[program],) if one[0]]
    assert [row.severity for row in trace.findings] == ["remark"] * len(found)
