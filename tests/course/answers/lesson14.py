"""Right and wrong answers to what lesson 14 asks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from tests.course.answers.common import changed, raises

KINDS = (nn.Dropout, nn.BatchNorm1d, nn.BatchNorm2d)
Run = Callable[[Any], Any]


STOP_EPOCH = """
def stop_epoch(losses, patience):
    lowest, waited = float("inf"), 0
    for epoch, loss in enumerate(losses, 1):
        waited = 0 if loss < lowest else waited + 1
        lowest = min(lowest, loss)
        if waited == patience:
            return epoch
    return len(losses)
"""
stop_epoch: Any = changed(STOP_EPOCH, "stop_epoch")
counts_rises: Any = changed(STOP_EPOCH, "stop_epoch", ("min(lowest, loss)", "loss"))
never_begins_anew: Any = changed(
    STOP_EPOCH, "stop_epoch", ("= 0 if loss < lowest else waited + 1", "+= loss >= lowest")
)
takes_equals: Any = changed(STOP_EPOCH, "stop_epoch", ("loss < lowest", "loss <= lowest"))


def waits_after_the_best_of_all(losses: list[float], patience: int) -> int:
    return min(losses.index(min(losses)) + 1 + patience, len(losses))


def compares_with_the_first(losses: list[float], patience: int) -> int:
    waited = 0
    for epoch, loss in enumerate(losses, 1):
        waited = 0 if loss < losses[0] else waited + 1
        if waited == patience + 1:
            return epoch
    return len(losses)


def compares_across_patience(losses: list[float], patience: int) -> int:
    late = [epoch + 1 for epoch in range(patience, len(losses)) if losses[epoch] >= losses[epoch - patience]]
    return late[0] if late else len(losses)


def stands_still(losses: list[float], patience: int) -> int:
    epoch = 0
    while epoch < len(losses):
        patience += 1
    return epoch


def returns_only_if_it_stops(losses: list[float], patience: int) -> int | None:
    epoch = stop_epoch(losses, patience)
    return epoch if epoch < len(losses) else None


def is_forgotten(module: nn.Module) -> bool:
    return module.training and not torch.is_grad_enabled()


def called_layers(
    net: nn.Module, run: Run, kinds: Any = KINDS, condition: Callable[[nn.Module], bool] = is_forgotten
) -> list[str]:
    """The names of the layers in the order of their calls, with one name for each call."""
    names = {module: name for name, module in net.named_modules() if isinstance(module, kinds)}
    met: list[str] = []

    def look(module: nn.Module, args: Any) -> None:
        if condition(module):
            met.append(names[module])

    handles = [module.register_forward_pre_hook(look) for module in names]
    try:
        run(net)
    finally:
        for handle in handles:
            handle.remove()
    return met


def finds_modes(
    net: nn.Module, run: Run, kinds: Any = KINDS, condition: Callable[[nn.Module], bool] = is_forgotten
) -> list[str]:
    met = called_layers(net, run, kinds, condition)
    return [name for name, _ in net.named_modules() if name in met]


def orders_by_call(net: nn.Module, run: Run) -> list[str]:
    return list(dict.fromkeys(called_layers(net, run)))


def remembers_the_last_call(net: nn.Module, run: Run) -> list[str]:
    return called_layers(net, run)[-1:]


def looks_only_at_children(net: nn.Module, run: Run) -> list[str]:
    names = {module: name for name, module in net.named_children() if isinstance(module, KINDS)}
    met: set[nn.Module] = set()
    handles = [
        module.register_forward_pre_hook(lambda module, args: met.add(module) if is_forgotten(module) else None)
        for module in names
    ]
    run(net)
    for handle in handles:
        handle.remove()
    return [name for module, name in names.items() if module in met]


def looks_when_the_net_is_called(net: nn.Module, run: Run) -> list[str]:
    met: set[str] = set()

    def look(module: nn.Module, args: Any) -> None:
        met.update(name for name, part in net.named_modules() if isinstance(part, KINDS) and is_forgotten(part))

    with net.register_forward_pre_hook(look):
        run(net)
    return [name for name, _ in net.named_modules() if name in met]


def uses_the_last_name(net: nn.Module, run: Run) -> list[str]:
    last = [name for name, module in net.named_modules() if isinstance(module, KINDS)][-1]
    return [last for _ in called_layers(net, run)]


def returns_modules(net: nn.Module, run: Run) -> list[nn.Module]:
    return [net.get_submodule(name) for name in finds_modes(net, run)]


def looks_afterwards(net: nn.Module, run: Run) -> list[str]:
    run(net)
    return [name for name, module in net.named_modules() if isinstance(module, KINDS) and module.training]


def names_all_layers(net: nn.Module, run: Run) -> list[str]:
    run(net)
    return [name for name, module in net.named_modules() if isinstance(module, KINDS)]


def names_kinds(net: nn.Module, run: Run) -> list[str]:
    return [type(net.get_submodule(name)).__name__ for name in finds_modes(net, run)]


def evaluates(net: nn.Module, run: Run) -> list[str]:
    names = finds_modes(net, run)
    net.eval()
    return names


def evaluates_before(net: nn.Module, run: Run) -> list[str]:
    net.eval()
    return finds_modes(net, run)


def mends_in_the_hook(net: nn.Module, run: Run) -> list[str]:
    def mend(module: nn.Module) -> bool:
        forgotten = is_forgotten(module)
        if forgotten:
            module.eval()
        return forgotten

    return finds_modes(net, run, condition=mend)


def disables_gradients(net: nn.Module, run: Run) -> list[str]:
    with torch.no_grad():
        return finds_modes(net, run)


def runs_twice(net: nn.Module, run: Run) -> list[str]:
    run(net)
    return finds_modes(net, run)


def leaves_a_hook(net: nn.Module, run: Run) -> list[str]:
    net.register_forward_hook(lambda module, args, output: None)
    return finds_modes(net, run)


def leaves_a_global_hook(net: nn.Module, run: Run) -> list[str]:
    register_module_forward_pre_hook(lambda module, args: None)
    return finds_modes(net, run)


def leaves_hooks_after_an_error(net: nn.Module, run: Run) -> list[str]:
    handle = net.register_forward_hook(lambda module, args, output: None)
    names = finds_modes(net, run)
    handle.remove()
    return names


def hides_the_error(net: nn.Module, run: Run) -> list[str]:
    try:
        return finds_modes(net, run)
    except Exception:
        return []


RIGHT: dict[str, Any] = {"14.1": stop_epoch, "14.2": torch.tensor(1.0), "14.3": finds_modes}
WRONG: dict[str, list[Any]] = {
    "14.1": [
        counts_rises,
        never_begins_anew,
        takes_equals,
        lambda losses, patience: losses.index(min(losses)) + 1,
        lambda losses, patience: stop_epoch(losses, patience) - 1,
        lambda losses, patience: stop_epoch(losses, patience + 1),
        waits_after_the_best_of_all,
        compares_with_the_first,
        compares_across_patience,
        stands_still,
        returns_only_if_it_stops,
        lambda losses, patience: 0,
        lambda losses, patience: None,
        raises,
    ],
    "14.2": [0, 10, 9, 5],
    "14.3": [
        looks_afterwards,
        names_all_layers,
        names_kinds,
        called_layers,
        orders_by_call,
        remembers_the_last_call,
        looks_only_at_children,
        looks_when_the_net_is_called,
        uses_the_last_name,
        returns_modules,
        evaluates,
        disables_gradients,
        runs_twice,
        leaves_a_hook,
        leaves_hooks_after_an_error,
        hides_the_error,
        lambda net, run: finds_modes(net, run, condition=lambda module: module.training),
        lambda net, run: finds_modes(net, run, condition=lambda module: not module.training),
        lambda net, run: finds_modes(net, run, condition=lambda module: net.training and not torch.is_grad_enabled()),
        lambda net, run: finds_modes(net, run, kinds=nn.Module),
        lambda net, run: finds_modes(net, run, kinds=nn.BatchNorm1d),
        lambda net, run: run(net) or [],
        lambda net, run: run(net),
        lambda net, run: [],
        raises,
    ],
}
FORGOTTEN_EVAL_WITH_THE_SAME_REASON = {
    "changed the mode": [evaluates_before, mends_in_the_hook],
    "is still registered": [leaves_a_global_hook],
    "in the order of": [lambda net, run: sorted(finds_modes(net, run))],
    "a BatchNorm1d: it had no hook": [lambda net, run: finds_modes(net, run, kinds=nn.Dropout)],
    "returned set": [lambda net, run: {*finds_modes(net, run)}],
}
"""What a reason says → more wrong answers to 14.3 that get it."""
