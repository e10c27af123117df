"""Judges the answers to the exercises of lesson 09."""

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
    list_tensors,
)


def _count_firings_in_validation() -> float:
    """How many of the lesson's hooks fire in one validation of the network."""
    calls: list[Any] = []
    norm, last, loss_fn = nn.BatchNorm1d(2), nn.Linear(2, 2), nn.CrossEntropyLoss()
    layers = [norm, nn.ReLU(), nn.Tanh(), nn.Dropout()]
    for module in (norm, *layers, loss_fn):
        module.register_forward_hook(lambda *given: calls.append(given))
    last.weight.register_hook(calls.append)  # type: ignore[no-untyped-call]
    net = nn.Sequential(*layers, last).eval()
    with torch.no_grad():
        loss_fn(net(torch.ones(3, 2)), torch.tensor([0, 1, 1]))
    return float(len(calls))


def _running_mean() -> float:
    """The running mean of a batch norm after a call with 9 and 11 under ``no_grad``."""
    norm = nn.BatchNorm1d(1)
    with torch.no_grad():
        norm(torch.tensor([[9.0], [11.0]]))
    return norm.running_mean.item()  # type: ignore[union-attr]


def _gradient_with_penalty() -> float:
    """The gradient of the lesson's weight if a hook adds half the absolute output to the loss."""
    layer, penalties = nn.Linear(1, 1, bias=False), []
    nn.init.constant_(layer.weight, 2.0)
    layer.register_forward_hook(lambda module, args, output: penalties.append(0.5 * output.abs().sum()))
    loss = (layer(torch.tensor([[3.0]])) - 4).square().sum()
    torch.autograd.backward(loss + penalties[0])
    assert layer.weight.grad is not None
    return layer.weight.grad.item()


def _weight_after_adam_step() -> float:
    """The weight, at first 1, after a step of Adam with a hook that divides the gradient 5 by ten."""
    weight = torch.tensor(1.0, requires_grad=True)
    weight.register_hook(lambda grad: grad / 10)  # type: ignore[no-untyped-call]
    torch.autograd.backward(weight * 5)
    torch.optim.Adam([weight], lr=0.01).step()
    return round(weight.item(), 6)


_BATCHES = ([[-1.0, 2, 0, -3, 1], [-1, -2, -1, 4, -1]], [[1.0, 2, 3, 4, 5], [-1, -1, -1, -1, -1]])
"""Inputs of a ReLU: in the first batch, two of five units are 0 for both examples; in the second batch, none is."""


def _judge_dead_units(answer: Any) -> Feedback:
    """Let the learner's function observe a ReLU, call the ReLU in both modes, and judge the list."""
    if fault := check_callable(answer):
        return fault
    layer = nn.ReLU()
    shares, error = call_safely(answer, layer)
    if error:
        return Feedback("raised", error)
    if not isinstance(shares, list):
        return Feedback("no_list")
    lengths: list[int] = []

    def call(batch: Any, training: bool) -> Any:
        output = layer.train(training)(torch.tensor(batch))
        lengths.append(len(shares))
        return output

    returned, error = call_safely(lambda: [call(batch, training) for batch in _BATCHES for training in (True, False)])
    if error:
        return Feedback("raised", error)
    if [tensor.numel() for tensor in list_tensors(tuple(returned))] != [10] * 4:
        return Feedback("replaced")
    if lengths == [0, 1, 1, 2]:
        return Feedback("evaluation")
    return _judge_shares([as_float(share) for share in shares])


def _judge_shares(shares: list[float | None]) -> Feedback:
    """Judge the list after two calls in training mode, each followed by one in evaluation mode."""
    if None in shares:
        return Feedback("no_number")
    if len(shares) != 2:
        return Feedback("both_modes" if len(shares) == 4 else "length", str(len(shares)))
    usual = {(0.4, 0): "right", (0.7, 0.5): "zeros", (2, 0): "count", (0.6, 1): "alive", (0, 0.5): "examples"}
    return Feedback(usual.get(tuple(round(share or 0, 4) for share in shares), "other"))  # type: ignore[arg-type]


JUDGES: dict[str, Judge] = {
    "09.1": judge_number(
        _count_firings_in_validation, {10: "all", 9: "no_step", 5: "layers", 1: "loss", 0: "none_fire"}
    ),
    "09.2": ignore_rounding(judge_number(_running_mean, {0: "kept", 10: "replaced", 9: "reversed"})),
    "09.3": judge_number(
        _gradient_with_penalty, {12: "plain", 15: "value", 12.5: "slope", 4.5: "output", 1.5: "alone"}
    ),
    "09.4": _judge_dead_units,
    "09.5": ignore_rounding(
        judge_number(
            _weight_after_adam_step, {0.95: "sgd", 0.995: "sgd_scaled", 0.999: "scaled", 1: "still", 1.01: "away"}
        )
    ),
}
