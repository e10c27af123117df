"""What lesson 09 asks."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import Found, Judge, float_of, no_function, number, rounded, tensors_in, tried


def _in_validation() -> float:
    """How many of the lesson's hooks fire when the network is validated."""
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
    """The running mean of a batch norm that was given 9 and 11, while gradients were switched off."""
    norm = nn.BatchNorm1d(1)
    with torch.no_grad():
        norm(torch.tensor([[9.0], [11.0]]))
    return norm.running_mean.item()  # type: ignore[union-attr]


def _with_penalty() -> float:
    """The gradient of the lesson's weight, with half the size of the output added to the loss by a hook."""
    layer, penalties = nn.Linear(1, 1, bias=False), []
    nn.init.constant_(layer.weight, 2.0)
    layer.register_forward_hook(lambda module, args, output: penalties.append(0.5 * output.abs().sum()))
    loss = (layer(torch.tensor([[3.0]])) - 4).square().sum()
    torch.autograd.backward(loss + penalties[0])
    assert layer.weight.grad is not None
    return layer.weight.grad.item()


def _adam() -> float:
    """The weight 1 after a step of Adam, with a hook that makes a tenth of the gradient 5."""
    weight = torch.tensor(1.0, requires_grad=True)
    weight.register_hook(lambda grad: grad / 10)  # type: ignore[no-untyped-call]
    torch.autograd.backward(weight * 5)
    torch.optim.Adam([weight], lr=0.01).step()
    return round(weight.item(), 6)


BATCHES = ([[-1.0, 2, 0, -3, 1], [-1, -2, -1, 4, -1]], [[1.0, 2, 3, 4, 5], [-1, -1, -1, -1, -1]])
"""What a ReLU is given: in the first batch, two of its five units are 0 for both examples; in the second, none is."""


def _dead(answer: Any) -> Found:
    """Let the learner's function watch a ReLU, call it in both modes, and look at the list."""
    if fault := no_function(answer):
        return fault
    layer = nn.ReLU()
    shares, error = tried(answer, layer)
    if error:
        return Found("raised", error)
    if not isinstance(shares, list):
        return Found("no_list")
    lengths: list[int] = []

    def call(batch: Any, training: bool) -> Any:
        output = layer.train(training)(torch.tensor(batch))
        lengths.append(len(shares))
        return output

    returned, error = tried(lambda: [call(batch, training) for batch in BATCHES for training in (True, False)])
    if error:
        return Found("raised", error)
    if [tensor.numel() for tensor in tensors_in(tuple(returned))] != [10] * 4:
        return Found("replaced")
    if lengths == [0, 1, 1, 2]:
        return Found("evaluation")
    return _shares([float_of(share) for share in shares])


def _shares(shares: list[float | None]) -> Found:
    """What to say of the list after two calls in training mode, each with one in evaluation mode after it."""
    if None in shares:
        return Found("no_number")
    if len(shares) != 2:
        return Found("both_modes" if len(shares) == 4 else "length", str(len(shares)))
    known = {(0.4, 0): "right", (0.7, 0.5): "zeros", (2, 0): "count", (0.6, 1): "alive", (0, 0.5): "examples"}
    return Found(known.get(tuple(round(share or 0, 4) for share in shares), "other"))  # type: ignore[arg-type]


JUDGES: dict[str, Judge] = {
    "09.1": number(_in_validation, {10: "all", 9: "no_step", 5: "layers", 1: "loss", 0: "none_fire"}),
    "09.2": rounded(number(_running_mean, {0: "kept", 10: "replaced", 9: "reversed"})),
    "09.3": number(_with_penalty, {12: "plain", 15: "value", 12.5: "slope", 4.5: "output", 1.5: "alone"}),
    "09.4": _dead,
    "09.5": rounded(number(_adam, {0.95: "sgd", 0.995: "sgd_scaled", 0.999: "scaled", 1: "still", 1.01: "away"})),
}
