"""Judges the answers to the exercises of lesson 14."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Judge,
    as_float,
    call_safely,
    check_callable,
    ignore_rounding,
    judge_number,
)

# Early stopping

TO_AND_FRO = [3.0, 1.0, 2.0, 1.5, 1.2, 1.1]
TWO_WAITS = [3.0, 1.0, 2.0, 2.5, 0.5, 0.6, 0.4]
EQUAL = [3.0, 1.0, 1.0, 1.0, 0.9]
FALLS = [3.0, 2.0, 1.0]
STOPS: list[tuple[list[float], int, int, dict[int, str]]] = [
    (TO_AND_FRO, 2, 4, {2: "best", 3: "index", 5: "one_more", 6: "rises"}),
    (TO_AND_FRO, 3, 5, {6: "rises"}),
    (TWO_WAITS, 3, 7, {6: "all_waits"}),
    (EQUAL, 2, 4, {5: "equal"}),
    (FALLS, 1, 3, {}),
]
"""Losses, patience, the epoch after which the training ends, and usual wrong epochs with their feedback."""


def _judge_stop_epoch(answer: Any) -> Feedback:
    """Call the learner's function with several lists of losses."""
    if fault := check_callable(answer):
        return fault
    for losses, patience, right, usual in STOPS:
        returned, error = call_safely(answer, list(losses), patience)
        if error:
            return Feedback("raised", error)
        epoch = as_float(returned)
        if epoch is None:
            return Feedback("no_number", f"{losses}, {patience}")
        if epoch != right:
            return Feedback(usual.get(int(epoch), "other"), f"{losses}, {patience}", f"{epoch:g}")
    return Feedback("right")


# Modes


def _running_mean() -> float:
    """The running mean of a batch norm after a call with 9 and 11 under ``no_grad``."""
    norm = nn.BatchNorm1d(1)
    with torch.no_grad():
        norm(torch.tensor([[9.0], [11.0]]))
    return norm.running_mean.item()  # type: ignore[union-attr]


class _Layers(nn.Module):
    """Four layers with a mode, one of which is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.drop = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout()
        self.inner = nn.Sequential(nn.Dropout(), nn.Linear(4, 4))
        self.spare = nn.Dropout()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(self.drop(self.norm(self.first(x))))  # type: ignore[no-any-return]


class _RunError(Exception):
    """The run after which hooks have to be removed although it fails."""


def _train_and_validate(net: Any) -> None:
    """Train ``net`` in training mode; validate with ``drop`` in training mode, then with ``inner``, then with none."""
    inputs = torch.ones(2, 4)
    net.train()
    net(inputs)
    for part in (net.drop, net.inner, None):
        net.eval()
        if part is not None:
            part.train()
        with torch.no_grad():
            net(inputs)
    net.train()


LISTED = {
    "drop inner.0": "right",
    "inner.0 drop": "order",
    "norm drop inner.0": "with_gradients",
    "norm drop inner.0 spare": "afterwards",
    "drop": "one_call",
    "inner.0": "one_call",
    "": "none_found",
}
"""A list of layers → the feedback."""


def _judge_forgotten_eval(answer: Any) -> Feedback:
    """Give the learner's function a network and a run, and judge the names; then a run that raises."""
    if fault := check_callable(answer):
        return fault
    calls: list[Any] = []

    def run(net: Any) -> None:
        calls.append(net)
        _train_and_validate(net)

    net = _Layers()
    names, error = call_safely(answer, net, run)
    if error:
        return Feedback("raised", error)
    if len(calls) != 1:
        return Feedback("calls", str(len(calls)))
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return Feedback("list_of_names")
    feedback = _explain_names(list(names))
    if feedback == "right" and not all(module.training for module in net.modules()):
        feedback = "modes"
    if feedback == "right" and _leaves_a_hook(answer, net):
        feedback = "hook_stays"
    return Feedback(feedback)


def _explain_names(names: list[str]) -> str:
    if len(set(names)) < len(names):
        return "twice"
    if {"first", "inner", "inner.1"} & {*names}:
        return "other_layers"
    return LISTED.get(" ".join(names), "other")


def _leaves_a_hook(answer: Any, net: nn.Module) -> bool:
    """Whether the learner's function has left a hook on ``net``, or leaves one on a network whose run raises."""

    def fails(net: Any) -> None:
        _train_and_validate(net)
        raise _RunError

    other = _Layers()
    call_safely(answer, other, fails)
    return any(module._forward_pre_hooks or module._forward_hooks for one in (net, other) for module in one.modules())


JUDGES: dict[str, Judge] = {
    "14.1": _judge_stop_epoch,
    "14.2": ignore_rounding(judge_number(_running_mean, {0: "kept", 10: "replaced", 9: "reversed"})),
    "14.3": _judge_forgotten_eval,
}
