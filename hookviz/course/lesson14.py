"""Judges the answers to the exercises of lesson 14."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from hookviz.course.judges import (
    EndlessLoopError,
    Feedback,
    Judge,
    as_float,
    call_safely,
    check_callable,
    has_forward_hook,
    ignore_rounding,
    judge_number,
    limit_lines,
)

# Early stopping

TO_AND_FRO = [3.0, 1.0, 2.0, 1.5, 1.6, 1.7, 1.1]
TWO_WAITS = [3.0, 1.0, 2.0, 2.5, 0.5, 0.6, 0.4]
BETTER_LATER = [2.0, 3.0, 1.0, 2.5, 0.9, 1.1, 1.2, 1.3, 0.5]
EQUAL = [3.0, 1.0, 1.0, 1.0, 0.9]
FALLS = [3.0, 2.0, 1.0]
STOPS: list[tuple[list[float], int, int, dict[float, str]]] = [
    (TO_AND_FRO, 2, 4, {1: "best", 2: "best", 3: "early", 5: "one_more", 6: "rises", 7: "no_stop"}),
    (TO_AND_FRO, 3, 5, {}),
    (TWO_WAITS, 3, 7, {6: "all_waits"}),
    (BETTER_LATER, 3, 8, {4: "rises", 9: "looks_ahead"}),
    (EQUAL, 2, 4, {5: "equal"}),
    (FALLS, 1, 3, {}),
]
"""Losses, patience, the epoch after which the training ends, and usual wrong epochs with their feedback."""

_LINES = 10_000
"""As many lines a learner's function may run: far more than a list of nine losses needs."""


def _judge_stop_epoch(answer: Any) -> Feedback:
    """Call the learner's function with several lists of losses."""
    if fault := check_callable(answer):
        return fault
    for losses, patience, right, usual in STOPS:
        given = f"{losses}, patience {patience}"
        returned, error = call_safely(limit_lines(answer, _LINES), list(losses), patience)
        if error.startswith(EndlessLoopError.__name__):
            return Feedback("endless", given, str(_LINES))
        if error:
            return Feedback("fails", error, given)
        if feedback := _explain_epoch(returned, len(losses), right, usual):
            return Feedback(feedback, given, str(returned))
    return Feedback("right")


def _explain_epoch(returned: Any, epochs: int, right: int, usual: Mapping[float, str]) -> str:
    """The name of the feedback for what the learner's function returned; empty if that is right."""
    epoch = as_float(returned)
    if epoch == right:
        return ""
    if epoch is not None and epoch in usual:
        return usual[epoch]
    if right == epochs:
        return "all_epochs"
    return "other" if epoch is not None and epoch.is_integer() else "no_epoch"


# Modes


def _running_mean() -> float:
    """The running mean of a batch norm after a call with 9 and 11 under ``no_grad``."""
    norm = nn.BatchNorm1d(1)
    with torch.no_grad():
        norm(torch.tensor([[9.0], [11.0]]))
    return norm.running_mean.item()  # type: ignore[union-attr]


class _Layers(nn.Module):
    """Five layers with a mode. ``fixed`` stays in evaluation mode, ``spare`` is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.fixed = nn.BatchNorm1d(4).eval()
        self.drop = nn.Dropout()
        self.block = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4))
        self.spare = nn.Dropout()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(self.drop(self.fixed(self.norm(self.first(x)))))  # type: ignore[no-any-return]


FORGOTTEN = ["drop", "block.0"]
"""The layers that validation calls in training mode. Neither the calls nor the alphabet have this order."""

SURPLUS = (
    ({"", "first", "block", "block.1"}, "other_layers"),
    ({"fixed"}, "in_evaluation"),
    ({"spare"}, "not_called"),
    ({"norm"}, "with_gradients"),
)
"""Layers that do not belong in the list → the feedback if one of them is there."""


class _RunError(Exception):
    """The run after which hooks have to be removed although it fails."""


class _ObservedRun:
    """A run that trains and validates a network, and remembers what the learner's function does meanwhile."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.calls = 0
        self.with_gradients = True
        self.hooked: set[str] = set()
        """The names of the layers with a hook."""
        self.modes: list[bool] = []
        """The modes of all modules when the run last set them or called the network."""
        self.keeps_modes = True

    def train_and_validate(self, net: Any) -> None:
        """Train ``net``, and validate three times: with ``block``, ``drop`` and ``block`` in training mode."""
        self.calls += 1
        self.with_gradients &= torch.is_grad_enabled()
        self.hooked = {name for name, module in net.named_modules() if has_forward_hook(module) or _global_hooks()}
        self.look_at_modes(net)
        self.set_modes(net, training=True)
        net(torch.ones(2, 4))
        for part in (net.block, net.drop, net.block):
            self.look_at_modes(net)
            self.set_modes(net, training=False)
            net.spare.train()
            part.train()
            self.modes = _list_modes(net)
            with torch.no_grad():
                net(torch.ones(2, 4))
        self.look_at_modes(net)
        self.set_modes(net, training=True)
        if self.fails:
            raise _RunError

    def set_modes(self, net: Any, training: bool) -> None:
        net.train(training)
        net.fixed.eval()
        self.modes = _list_modes(net)

    def look_at_modes(self, net: nn.Module) -> None:
        """Note whether a module has another mode than the run gave it."""
        self.keeps_modes &= _list_modes(net) == self.modes


def _list_modes(net: nn.Module) -> list[bool]:
    return [module.training for module in net.modules()]


def _global_hooks() -> list[int]:
    """The numbers of the forward hooks that are registered for all modules."""
    return [*torch_module._global_forward_pre_hooks, *torch_module._global_forward_hooks]


def _call_with_run(answer: Any, watched: _ObservedRun) -> tuple[Any, str, bool]:
    """Call the learner's function; return what it returned, its error, and whether a hook stays.

    Global hooks that stay are removed.
    """

    def run(net: Any) -> None:
        watched.train_and_validate(net)

    run.__qualname__ = "run"  # the learner's name for it, where an error names it
    net, before = _Layers(), set(_global_hooks())
    watched.modes = _list_modes(net)
    names, error = call_safely(answer, net, run)
    watched.look_at_modes(net)
    left_over = set(_global_hooks()) - before
    for number in left_over:
        torch_module._global_forward_pre_hooks.pop(number, None)
        torch_module._global_forward_hooks.pop(number, None)
    return names, error, bool(left_over) or any(map(has_forward_hook, net.modules()))


def _judge_forgotten_eval(answer: Any) -> Feedback:
    """Give the learner's function a network and a run, and judge what it does and returns; then a run that raises."""
    if fault := check_callable(answer):
        return fault
    run = _ObservedRun()
    names, error, hook_stays = _call_with_run(answer, run)
    if error:
        return Feedback("fails", error)
    if run.calls != 1:
        return Feedback("calls" if run.calls else "no_call", str(run.calls))
    if not run.with_gradients:
        return Feedback("no_grad")
    if not run.keeps_modes:
        return Feedback("modes")
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return Feedback("list_of_names", _describe_type(names))
    if fault := _explain_surplus(list(names)) or _explain_missing(list(names), run.hooked):
        return fault
    return Feedback("hook_stays" if hook_stays else _judge_failing_run(answer))


def _describe_type(value: Any) -> str:
    """The type of ``value``, and of its first entry that is no text: ``list[Dropout]``; ``None`` for None."""
    kind = type(value).__name__
    if isinstance(value, (list, tuple)):
        entry = next(entry for entry in value if not isinstance(entry, str))
        return f"{kind}[{type(entry).__name__}]"
    return "None" if value is None else kind


def _explain_surplus(names: list[str]) -> Feedback | None:
    """Feedback if a name is there that should not be."""
    modules = dict(_Layers().named_modules())
    with_mode = {name for name, module in modules.items() if isinstance(module, (nn.Dropout, nn.BatchNorm1d))}
    found = set(names)
    if unknown := [name for name in names if name not in modules]:
        return Feedback("unknown", unknown[0])
    if found == {"spare"}:
        return Feedback("last_name")
    if len(found) < len(names):
        return Feedback("twice")
    if found == with_mode:
        return Feedback("all_layers")
    if found == with_mode - {"fixed"}:
        return Feedback("afterwards")
    return next((Feedback(name) for surplus, name in SURPLUS if surplus & found), None)


def _explain_missing(names: list[str], hooked: set[str]) -> Feedback | None:
    """Feedback if a name is missing or the order is wrong."""
    missing = [name for name in FORGOTTEN if name not in names]
    unhooked = [name for name in missing if name not in hooked]
    if missing and not hooked:
        return Feedback("no_hooks")
    if unhooked:
        return Feedback("not_hooked", type(_Layers().get_submodule(unhooked[0])).__name__)
    if missing:
        return Feedback("one_call" if names else "none_found")
    return None if names == FORGOTTEN else Feedback("order")


def _judge_failing_run(answer: Any) -> str:
    """The name of the feedback for a learner's function whose run raises an error."""
    _, error, hook_stays = _call_with_run(answer, _ObservedRun(fails=True))
    if not error.startswith(_RunError.__name__):
        return "hidden_error"
    return "hook_after_error" if hook_stays else "right"


JUDGES: dict[str, Judge] = {
    "14.1": _judge_stop_epoch,
    "14.2": ignore_rounding(judge_number(_running_mean, {0: "kept", 10: "replaced", 9: "reversed"})),
    "14.3": _judge_forgotten_eval,
}
