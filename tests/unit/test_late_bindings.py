"""Hooks that a loop made and that read its variable when they fire are a finding of a recording."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv

SEEN: dict[str, Any] = {}


def lambdas_share_the_name(net: nn.Sequential) -> None:
    for name, module in net.named_children():
        module.register_forward_hook(lambda _module, _inputs, output: SEEN.update({name: output}))  # noqa: B023


def functions_share_the_number(net: nn.Sequential) -> None:
    for number, parameter in enumerate(net.parameters()):

        def scale(grad: torch.Tensor) -> torch.Tensor:
            return grad * number  # noqa: B023

        parameter.register_hook(scale)


def lambdas_share_what_the_loop_computes(net: nn.Sequential) -> None:
    for number, parameter in enumerate(net.parameters()):
        scale = 0.5**number
        parameter.register_hook(lambda grad: grad * scale)  # noqa: B023


def each_binds_its_own(net: nn.Sequential) -> None:
    for name, module in net.named_children():
        module.register_forward_hook(lambda _module, _inputs, output, name=name: SEEN.update({name: output}))


def each_is_made_by_a_function(net: nn.Sequential) -> None:
    def keep(name: str) -> Callable[..., None]:
        return lambda _module, _inputs, output: SEEN.update({name: output})

    for name, module in net.named_children():
        module.register_forward_hook(keep(name))


def each_fires_within_its_turn(net: nn.Sequential) -> None:
    for name, module in net.named_children():
        with module.register_forward_hook(lambda _module, _inputs, output: SEEN.update({name: output})):  # noqa: B023
            net(torch.ones(1, 2))


def an_inner_loop_registers_what_reads_the_outer_one(net: nn.Sequential) -> None:
    for factor in (1.0, 2.0):
        handles = []
        for module in net:
            handles.append(module.register_forward_hook(lambda _module, _inputs, output: output * factor))  # noqa: B023
        net(torch.ones(1, 2)).sum().backward()
        for handle in handles:
            handle.remove()


PROGRAMS: dict[Callable[[nn.Sequential], None], str] = {
    lambdas_share_the_name: "reads name, a variable of the loop",
    functions_share_the_number: "reads number, a variable of the loop",
    lambdas_share_what_the_loop_computes: "reads scale, a variable of the loop",
    each_binds_its_own: "",
    each_is_made_by_a_function: "",
    each_fires_within_its_turn: "",
    an_inner_loop_registers_what_reads_the_outer_one: "",
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_late_binding_is_found_and_its_healthy_twins_are_not(program: Callable[[nn.Sequential], None]) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    with hv.record() as trace:
        program(net)
        net(torch.ones(1, 2)).sum().backward()
    found = [row for row in trace.findings if row.kind == "late_binding"]
    assert [PROGRAMS[program] in row.sentence for row in found] == ([True] if PROGRAMS[program] else [])
