"""Right and wrong answers to what lesson 14 asks."""

from functools import partial
from typing import Any

import torch

from tests.course.answers.common import changed, raises

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


forgotten_eval = partial(
    changed,
    """
import torch
from torch import nn

def forgotten_eval(net, run):
    kinds = (nn.Dropout, nn.BatchNorm1d, nn.BatchNorm2d)
    names = {module: name for name, module in net.named_modules() if isinstance(module, kinds)}
    met = []

    def look(module, args):
        if module.training and not torch.is_grad_enabled():
            met.append(names[module])

    handles = [module.register_forward_pre_hook(look) for module in names]
    try:
        run(net)
    finally:
        for handle in handles:
            handle.remove()
    return [name for name in names.values() if name in met]
""",
    "forgotten_eval",
)
FORGOTTEN, NOTE = "module.training and not torch.is_grad_enabled()", "met.append(names[module])"
RESULT = "[name for name in names.values() if name in met]"


RIGHT: dict[str, Any] = {"14.1": stop_epoch, "14.2": torch.tensor(1.0), "14.3": forgotten_eval()}
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
        forgotten_eval((FORGOTTEN, "False"), (RESULT, "[name for module, name in names.items() if module.training]")),
        forgotten_eval((RESULT, "[*names.values()]")),
        forgotten_eval((RESULT, "[type(module).__name__ for module, name in names.items() if name in met]")),
        forgotten_eval((RESULT, "met")),
        forgotten_eval((RESULT, "list(dict.fromkeys(met))")),
        forgotten_eval((RESULT, "met[-1:]")),
        forgotten_eval(("named_modules", "named_children")),
        forgotten_eval(
            (f"if {FORGOTTEN}", "for module in names if not torch.is_grad_enabled() else []"),
            (NOTE, f"{NOTE} if module.training else None"),
            ("look) for module in names", "look) for module in [net]"),
        ),
        forgotten_eval((NOTE, "met.append([*names.values()][-1])"), (RESULT, "met")),
        forgotten_eval((RESULT, "[module for module, name in names.items() if name in met]")),
        forgotten_eval(("return [", "net.eval()\n    return [")),
        forgotten_eval(("        run(net)", "        with torch.no_grad():\n            run(net)")),
        forgotten_eval(("        run(net)", "        run(net), run(net)")),
        forgotten_eval(("met = []", "met = []\n    net.register_forward_hook(lambda *given: None)")),
        forgotten_eval(("finally:", "except ValueError:\n        raise\n    else:")),
        forgotten_eval(("finally:", "except Exception:\n        met = []\n    finally:")),
        forgotten_eval((FORGOTTEN, "module.training")),
        forgotten_eval((FORGOTTEN, "not module.training")),
        forgotten_eval((FORGOTTEN, "net.training and not torch.is_grad_enabled()")),
        forgotten_eval(("(module, kinds)", "(module, nn.Module)")),
        forgotten_eval(("(module, kinds)", "(module, nn.BatchNorm1d)")),
        lambda net, run: run(net) or [],
        lambda net, run: run(net),
        lambda net, run: [],
        raises,
    ],
}
