"""Judges the answers to the exercises of lesson 09."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.optim import optimizer as torch_optimizers

from hookviz.course import cures
from hookviz.course.judges import (
    Feedback,
    Judge,
    are_close,
    as_float,
    call_function,
    call_safely,
    judge_number,
    read_names,
)
from hookviz.course.sick_net import BATCH, IMAGES_TO_LEARN_FROM, SickNet, read_digits

Tensor = torch.Tensor
_PARTS = {"stem", "body", "neck", "head"}
_UPDATED = 1e-12
"""The norm above which a parameter counts as moved."""


# The diagnosis


def _judge_parts_that_stand_still(answer: Any) -> Feedback:
    """Judge the names of the parts that training does not move."""
    parts = read_names(answer, _PARTS)
    if not parts:
        return Feedback("part_names")
    if parts == {"stem", "head"}:
        return Feedback("right")
    if parts == {"stem"}:
        return Feedback("stem")
    if parts == {"head"}:
        return Feedback("head")
    return Feedback("all" if parts == _PARTS else "other")


# The cures


def _images() -> Tensor:
    return read_digits()[0][:BATCH]


def _make_net(answer: Any) -> tuple[Any, Feedback | None]:
    """Make a network of the learner's class and call it; return (network, feedback if that fails)."""
    net, fault = call_function(answer)
    if fault:
        return None, fault
    if not isinstance(net, SickNet):
        return None, Feedback("no_net")
    scores, fault = call_function(net, _images())
    if fault:
        return None, fault
    if not isinstance(scores, Tensor) or scores.shape != (BATCH, 10):
        return None, Feedback("scores")
    return net, None


def _judge_living_units(answer: Any) -> Feedback:
    net, fault = _make_net(answer)
    if fault is not None:
        return fault
    if not all(isinstance(block.bend, nn.ReLU) for block in net.body):
        return Feedback("lost")
    if not are_close(net.neck.weight, SickNet().neck.weight):
        return Feedback("weights")
    if not are_close(net.neck.bias, torch.zeros(32)):
        return Feedback("still" if net.neck.bias.min() < -4 else "bias")
    return Feedback("right")


def _input_of_stem(net: SickNet) -> Tensor:
    """What the stem gets when the network is called."""
    found: list[Tensor] = []
    with net.stem.register_forward_pre_hook(lambda module, args: found.append(args[0])):
        net(_images())
    return found[0] if found else torch.zeros(())


def _judge_forward(answer: Any) -> Feedback:
    """Judge a network whose images are scaled, whose leak is cured, and whose graph is not cut."""
    net, fault = _make_net(answer)
    if fault is not None:
        return fault
    brightest = _input_of_stem(net).max().item()
    if abs(brightest - 1) > 1e-3:
        return Feedback("dark" if brightest < 0.1 else "scale", f"{brightest:g}")
    if net.relu._forward_hooks:
        return Feedback("leak")
    net.zero_grad()
    loss = functional.cross_entropy(net(_images()), read_digits()[1][:BATCH])
    if not loss.requires_grad:
        return Feedback("cut_off")
    torch.autograd.backward(loss)
    if net.body[0].conv.weight.grad is None:
        return Feedback("cut_off")
    if net.stem.weight.grad is None:
        return Feedback("graph")
    return Feedback("right" if are_close(net(_images()), cures.Repaired()(_images())) else "other")


def _judge_training(answer: Any) -> Feedback:
    """Train a network for an epoch with the learner's function, and compare with the losses that should come out."""
    net, expected = cures.Unhooked(), cures.Unhooked()
    before = [parameter.detach().clone() for parameter in net.parameters()]
    losses, fault = call_function(answer, net, 1)
    if fault:
        return fault
    moved = [bool((new - old).norm() > _UPDATED) for new, old in zip(net.parameters(), before, strict=True)]
    if not any(moved):
        return Feedback("nothing_moves")
    if not all(moved):
        return Feedback("not_all")
    numbers = [as_float(loss) for loss in losses] if isinstance(losses, list) else []
    if len(numbers) != IMAGES_TO_LEARN_FROM // BATCH or None in numbers:
        return Feedback("losses")
    close = [
        abs((number or 0) - loss) < 0.02 for number, loss in zip(numbers, cures.train_all(expected, 1), strict=True)
    ]
    return Feedback("right" if all(close[:10]) else "recipe")


# The instrument that the learner builds


class _Rest(nn.Module):
    """Four parameters: the optimizer holds ``a``, ``b`` and ``c``; ``b`` has no gradient, and ``c`` comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Parameter(torch.ones(2)) for _ in range(4))


class _TrainingError(Exception):
    """The training in which a hook has to be taken off although it fails."""


def _train_rest(net: Any) -> None:
    """Move ``a`` to and fro with two steps, ``c`` away and back; ``b`` and ``d`` stay."""
    optimizer = torch.optim.SGD([net.a, net.b, net.c], lr=1.0)
    for sign in (1.0, -1.0):
        optimizer.zero_grad()
        torch.autograd.backward(net.a.sum() * 3 + net.c.sum() * sign + net.d.sum())
        optimizer.step()


def _judge_stand_still(answer: Any) -> Feedback:
    """Give the learner's function a network and a training, and judge the names; then a training that raises."""
    calls: list[Any] = []

    def training(net: Any) -> None:
        calls.append(net)
        _train_rest(net)

    hooks_before = _count_global_step_hooks()
    names, fault = call_function(answer, _Rest(), training)
    if fault:
        return fault
    if len(calls) != 1:
        return Feedback("calls", str(len(calls)))
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return Feedback("list_of_names")
    usual = {"bd": "right", "ac": "moved", "bcd": "end_only", "b": "held_only", "d": "not_held", "db": "order"}
    verdict = Feedback(usual.get("".join(names), "other"))
    if verdict.name == "right" and _leaves_a_hook(answer, hooks_before):
        return Feedback("hook_stays")
    return verdict


def _leaves_a_hook(answer: Callable[..., Any], hooks_before: int) -> bool:
    """Whether the learner's function leaves a global hook behind, if the training ends well or in an error."""

    def fails(net: Any) -> None:
        _train_rest(net)
        raise _TrainingError

    if _count_global_step_hooks() == hooks_before:
        call_safely(answer, _Rest(), fails)
    left = _count_global_step_hooks() - hooks_before
    for _ in range(left):
        torch_optimizers._global_optimizer_post_hooks.popitem()
    return left > 0


def _count_global_step_hooks() -> int:
    return len(torch_optimizers._global_optimizer_post_hooks)


JUDGES: dict[str, Judge] = {
    "09.1": _judge_parts_that_stand_still,
    "09.2": _judge_living_units,
    "09.3": _judge_forward,
    "09.4": judge_number(lambda: 0.0, {86: "accuracy"}),
    "09.5": _judge_training,
    "09.6": _judge_stand_still,
}
