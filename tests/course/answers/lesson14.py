"""Right and wrong answers to what lesson 14 asks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tests.course.answers.common import raises

KINDS = (nn.Dropout, nn.BatchNorm1d, nn.BatchNorm2d)
Run = Callable[[Any], Any]


def stop_epoch(losses: list[float], patience: int) -> int:
    lowest, waited = float("inf"), 0
    for epoch, loss in enumerate(losses, 1):
        waited = 0 if loss < lowest else waited + 1
        lowest = min(lowest, loss)
        if waited == patience:
            return epoch
    return len(losses)


def counts_rises(losses: list[float], patience: int) -> int:
    waited = 0
    for epoch in range(2, len(losses) + 1):
        waited = 0 if losses[epoch - 1] < losses[epoch - 2] else waited + 1
        if waited == patience:
            return epoch
    return len(losses)


def never_begins_anew(losses: list[float], patience: int) -> int:
    lowest, waited = float("inf"), 0
    for epoch, loss in enumerate(losses, 1):
        waited += loss >= lowest
        lowest = min(lowest, loss)
        if waited == patience:
            return epoch
    return len(losses)


def takes_equals(losses: list[float], patience: int) -> int:
    lowest, waited = float("inf"), 0
    for epoch, loss in enumerate(losses, 1):
        waited = 0 if loss <= lowest else waited + 1
        lowest = min(lowest, loss)
        if waited == patience:
            return epoch
    return len(losses)


def finds_modes(net: nn.Module, run: Run, kinds: Any = KINDS, always: bool = False) -> list[str]:
    layers = {name: module for name, module in net.named_modules() if isinstance(module, kinds)}
    met: set[nn.Module] = set()

    def look(module: nn.Module, args: Any) -> None:
        if module.training and (always or not torch.is_grad_enabled()):
            met.add(module)

    handles = [module.register_forward_pre_hook(look) for module in layers.values()]
    try:
        run(net)
    finally:
        for handle in handles:
            handle.remove()
    return [name for name, module in layers.items() if module in met]


def leaves_hooks_after_an_error(net: nn.Module, run: Run) -> list[str]:
    handle = net.register_forward_hook(lambda module, args, output: None)
    names = finds_modes(net, run)
    handle.remove()
    return names


def looks_afterwards(net: nn.Module, run: Run) -> list[str]:
    run(net)
    return [name for name, module in net.named_modules() if isinstance(module, KINDS) and module.training]


def names_each_call(net: nn.Module, run: Run) -> list[str]:
    return [name for name in finds_modes(net, run) for _ in range(2)]


def evaluates(net: nn.Module, run: Run) -> list[str]:
    names = finds_modes(net, run)
    net.eval()
    return names


def runs_twice(net: nn.Module, run: Run) -> list[str]:
    run(net)
    return finds_modes(net, run)


RIGHT: dict[str, Any] = {"14.1": stop_epoch, "14.2": torch.tensor(1.0), "14.3": finds_modes}
WRONG: dict[str, list[Any]] = {
    "14.1": [
        counts_rises,
        never_begins_anew,
        takes_equals,
        lambda losses, patience: losses.index(min(losses)) + 1,
        lambda losses, patience: stop_epoch(losses, patience) - 1,
        lambda losses, patience: stop_epoch(losses, patience + 1),
        lambda losses, patience: 0,
        lambda losses, patience: None,
        raises,
    ],
    "14.2": [0, 10, 9, 5],
    "14.3": [
        looks_afterwards,
        names_each_call,
        evaluates,
        runs_twice,
        leaves_hooks_after_an_error,
        lambda net, run: finds_modes(net, run)[::-1],
        lambda net, run: finds_modes(net, run)[:1],
        lambda net, run: finds_modes(net, run, always=True),
        lambda net, run: finds_modes(net, run, kinds=nn.Module),
        lambda net, run: run(net) or ["spare"],
        lambda net, run: run(net) or [],
        lambda net, run: run(net),
        raises,
    ],
}
