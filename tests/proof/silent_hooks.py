"""Constructions that keep a hook from firing, for the random programs; some of them only where no pass comes later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from .machine import Machine


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(0.5, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Net(nn.Module):
    """A model that is never called, with modules that the program calls, or uses without a call."""

    def __init__(self) -> None:
        super().__init__()
        self.called, self.bypassed, self.uncalled, self.unrecorded = (Scale() for _ in range(4))


def on_new_leaf(machine: Machine, target: int) -> None:
    leaf = torch.ones(2, dtype=torch.float64, requires_grad=True)
    machine.hook_named(leaf, "frozen", ("tensor", "post_accumulate")[target % 2])
    leaf.requires_grad_(False)


def on_detached_copy(machine: Machine, target: int) -> None:
    machine.hook_named(machine.pick_with_grad(target).detach().clone().requires_grad_(), "detached", "tensor")


def on_view(machine: Machine, target: int) -> None:
    """Hook a view that is made only for the hook."""
    machine.hook_named(machine.pick_with_grad(target)[...], "view", "tensor")


def on_kept_tensor(machine: Machine, target: int) -> None:
    """Hook a tensor of the program that stays in a variable: a positive control."""
    machine.hook_named(machine.pick_with_grad(target), "kept", "tensor")


def on_dropped_tensor(machine: Machine, target: int) -> None:
    machine.hook_tensors([machine.pick_with_grad(target) * 2], "dropped", "tensor")


def on_unused_node(machine: Machine, target: int) -> None:
    unused = machine.pick_with_grad(target) * 2
    machine.name_tensor(unused, "node")
    machine.hook_tensors([unused], "node", ("node_pre", "node_post")[target % 2])


def removed_at_once(machine: Machine, target: int) -> None:
    machine.hook_tensors([machine.pick_with_grad(target)], "removed", ("tensor", "multi")[target % 2])
    machine.remove(len(machine.handles) - 1)


def named_and_removed(machine: Machine, target: int) -> None:
    on_kept_tensor(machine, target)
    machine.ledger.hooks[-1].kind = "named removed"
    machine.remove(len(machine.handles) - 1)


def on_several(machine: Machine, target: int) -> None:
    """Register a multi-grad hook on a tensor of the program and on one outside of its graph."""
    inside, outside = machine.pick_with_grad(target), torch.ones(2, dtype=torch.float64, requires_grad=True)
    names = (machine.name_tensor(inside, "partly"), machine.name_tensor(outside, "outside"))
    order = (inside, outside) if target % 2 else (outside, inside)
    machine.hook_tensors(order, "partly", ("multi", "multi any")[target // 2 % 2], names)


def on_several_outside(machine: Machine, target: int) -> None:
    several = [torch.ones(2, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    names = tuple(machine.name_tensor(one, "outside") for one in several)
    machine.hook_tensors(several, "multi outside", ("multi", "multi any")[target % 2], names)


def on_called_module(machine: Machine, target: int) -> None:
    """Hook a module and call it: a positive control."""
    machine.hook_module("called", target)
    x = machine.pick_with_grad(target)
    with machine.ledger.call("called"):
        y = machine.net.called(x)
    machine.pool.append(y)
    machine.tracked[f"called.output {machine.ledger.calls['called']}"] = y


def on_module_too_late(machine: Machine, target: int) -> None:
    on_called_module(machine, target)
    machine.hook_module("called", target + 1)
    machine.ledger.hooks[-1].kind = "module late"


def on_uncalled_module(machine: Machine, target: int) -> None:
    machine.hook_module("uncalled", target)


def on_bypassed_module(machine: Machine, target: int) -> None:
    machine.hook_module("bypassed", target)
    machine.pool.append(machine.net.bypassed.forward(machine.pick_with_grad(target)))


def on_unrecorded_module(machine: Machine, target: int) -> None:
    machine.hook_module("unrecorded", target)
    with machine.ledger.call("unrecorded"), torch.no_grad():
        machine.net.unrecorded(machine.pick_with_grad(target))


def on_idle_optimizer(machine: Machine, target: int) -> None:
    machine.hook_optimizer(target, "optimizer idle")


def on_optimizer_too_late(machine: Machine, target: int) -> None:
    with machine.ledger.call("optimizer"):
        machine.make_optimizer().step()
    machine.hook_optimizer(target, "optimizer late")


SILENT: dict[str, Callable[[Machine, int], None]] = {
    "frozen": on_new_leaf,
    "detached": on_detached_copy,
    "view": on_view,
    "kept": on_kept_tensor,
    "dropped": on_dropped_tensor,
    "node": on_unused_node,
    "removed": removed_at_once,
    "named removed": named_and_removed,
    "partly": on_several,
    "multi outside": on_several_outside,
    "module called": on_called_module,
    "module late": on_module_too_late,
    "module uncalled": on_uncalled_module,
    "module bypassed": on_bypassed_module,
    "module unrecorded": on_unrecorded_module,
    "optimizer idle": on_idle_optimizer,
    "optimizer late": on_optimizer_too_late,
}
"""Construction → what it does. In each of them a hook can stay silent."""
