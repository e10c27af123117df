"""What lesson 07 asks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookviz.course.judges import Found, Grad, Judge, as_large, number, result_of, tried


def _vanishing() -> float:
    """The gradient of the input of three layers with weight 1 and a sigmoid on each, every sigmoid given 0."""
    net = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(1, 1), nn.Sigmoid())])
    for parameter in net.parameters():
        nn.init.constant_(parameter, 1.0 if parameter.dim() > 1 else -0.5)
    x = torch.tensor([[0.5]], requires_grad=True)
    return torch.autograd.grad(net(x), x)[0].item()


def _alive() -> float:
    """How many parameters have a gradient that is not 0 everywhere, with a dead ReLU between the two layers."""
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    nn.init.constant_(net[0].bias, -100.0)  # type: ignore[arg-type]
    grads = torch.autograd.grad(net(torch.ones(1, 3)), list(net.parameters()))
    return float(sum(bool(grad.any()) for grad in grads))


def _masked_log(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x.log(), 0.0)


def _behind_the_mask() -> float:
    """How many NaN a logarithm behind a mask sends for 1, 0 and -1."""
    x = torch.tensor([1.0, 0.0, -1.0], requires_grad=True)
    return float(torch.autograd.grad(_masked_log(x).sum(), x)[0].isnan().sum())


def _accumulated() -> float:
    """What two passes add up to, when a hook clips each gradient of 3 at 1."""
    w = torch.tensor(1.0, requires_grad=True)
    w.register_hook(lambda grad: grad.clamp(-1, 1))  # type: ignore[no-untyped-call]
    for _ in range(2):
        torch.autograd.backward(w * 3)
    assert w.grad is not None
    return w.grad.item()


def _safe_log(answer: Any) -> Found:
    """Call the learner's function on positive and other numbers, and go back through it."""
    x = torch.tensor([4.0, 0.0, -1.0, 1e-20])
    y, fault = result_of(answer, x)
    if fault:
        return fault
    if not as_large(y, x):
        return Found("as_many")
    wrong = ~torch.isclose(y.float(), _masked_log(x))
    if wrong.any():
        return Found("values", f"{x[wrong][0].item():g}")
    return _gradient_of(answer, x)


def _gradient_of(safe_log: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Found:
    x.requires_grad_()
    y, error = tried(safe_log, x)
    if error:
        return Found("raised", error)
    if not y.requires_grad:
        return Found("no_history")
    [grad] = torch.autograd.grad(y.sum(), x)
    if grad.isnan().any():
        return Found("still_nan")
    right = torch.allclose(grad, torch.where(x > 0, 1 / x, 0.0))
    return Found("right" if right else "slope")


_LONG = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
_GIVEN = (_LONG, 10 * _LONG, 0.3 * _LONG, 0.1 * _LONG, 0 * _LONG)
"""Gradients of the norms 5, 50, 1.5, 0.5 and 0."""


def _clipping_the_norm(answer: Any) -> Found:
    """Run the learner's hook on long gradients, on a short one and on zeros."""
    made: list[Grad] = []
    for grad in _GIVEN:
        result, fault = result_of(answer, grad.clone())
        if fault and (not made or fault.name != "nothing"):  # what is short may be left alone so
            return fault
        if not fault and not as_large(result, grad):
            return Found("shape")
        made.append(grad if fault else result.float())
    return _shortened(made)


def _shortened(made: list[Grad]) -> Found:
    """What is to be said of a hook that made these of the gradients above."""
    *long, short, zero = made
    if torch.equal(long[0], _LONG):
        return Found("unchanged")
    if not torch.allclose(long[0] / long[0].norm(), _LONG / 5):
        return Found("direction")
    if zero.isnan().any():
        return Found("zero")
    if not torch.allclose(short, 0.1 * _LONG):
        return Found("short")
    for grad, result in zip(_GIVEN, long, strict=False):
        if not torch.isclose(result.norm(), torch.tensor(1.0)):
            return Found("long", f"{result.norm().item():g}", f"{grad.norm().item():g}")
    return Found("right")


JUDGES: dict[str, Judge] = {
    "07.1": number(_vanishing, {0.25: "one", 0.0625: "two", 0.75: "added", 1: "seed", 64: "inverse"}),
    "07.2": number(_alive, {0: "none_at_all", 2: "second", 3: "three", 4: "all"}),
    "07.3": number(_behind_the_mask, {0: "hidden", 2: "both", 3: "spread"}),
    "07.4": number(_accumulated, {1: "sum", 6: "unclipped", 3: "one_pass", 4: "once"}),
    "07.5": _safe_log,
    "07.6": _clipping_the_norm,
}
