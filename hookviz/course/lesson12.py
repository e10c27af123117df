"""What lesson 12 asks."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import Found, Grad, Judge, as_large, grad_input_of, number, result_of, tried


def _leaf(number: float) -> Grad:
    return torch.tensor(number, requires_grad=True)


def _turned_round() -> float:
    """What a hook that turns the sign round returns, on a tensor to which two ways lead back."""
    returned: list[float] = []

    def turn(grad: Grad) -> Grad:
        returned.append(-grad.item())
        return -grad

    c = _leaf(2.0) * 3
    c.register_hook(turn)  # type: ignore[no-untyped-call]
    torch.autograd.backward(c * 4 + c.view_as(c) * 10)
    return returned[0]


def _calls() -> float:
    """How often a layer is called in two epochs of three batches, by a net that calls it twice."""
    calls: list[nn.Module] = []
    layer = nn.Linear(1, 1)
    layer.register_forward_hook(lambda module, args, output: calls.append(module))
    for _ in range(2 * 3):
        nn.Sequential(layer, layer)(torch.ones(4, 1))
    return float(len(calls))


def _functional() -> float:
    """What torch.func.grad makes of a function with a hook inside, at a leaf with a hook of its own."""

    def function(a: Grad) -> Grad:
        c = a * 3
        c.register_hook(lambda grad: grad + 2)  # type: ignore[no-untyped-call]
        return c * 4

    a = _leaf(2.0)
    a.register_hook(lambda grad: grad * 10)  # type: ignore[no-untyped-call]
    gradient: Grad = torch.func.grad(function)(a)
    return gradient.item()


def _straight_through(answer: Any) -> Found:
    """Call the learner's hook as a module that rounds would, with gradients of two shapes."""
    found = (_sent_straight(answer, grad) for grad in (torch.tensor([5.0, -3.0]), torch.tensor([[0.5]])))
    return next((fault for fault in found if fault.name != "right"), Found("right"))


def _sent_straight(answer: Any, grad: Grad) -> Found:
    zeros = torch.zeros_like(grad)
    result, fault = grad_input_of(answer, nn.Identity(), (zeros,), (grad,))
    if fault:
        return fault
    if len(result) != 1:
        return Found("count", str(len(result)))
    [sent] = result
    if not as_large(sent, grad):
        return Found("shape")
    known = {"right": grad, "unchanged": zeros, "slope": torch.ones_like(grad)}
    return Found(next((name for name, usual in known.items() if torch.equal(sent, usual)), "other"))


_SENT, _BESIDE = torch.tensor([10.0, -10.0, 0.5]), torch.tensor(5.0)
"""What goes back through what the learner's function returns, and what goes to its argument by another way."""


def _clipped(answer: Any) -> Found:
    """Call the learner's function on a tensor that is also used beside it, and go back both ways."""
    leaf = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    x = leaf * 1
    y, fault = result_of(answer, x)
    if fault:
        return fault
    if not as_large(y, x) or not torch.equal(y, x):
        return Found("values")
    if not y.requires_grad:
        return Found("no_history")
    sent, error = tried(lambda: torch.autograd.grad((y * _SENT + x * _BESIDE).sum(), leaf, retain_graph=True)[0])
    if error:
        return Found("raised", error)
    found = next((name for name, slip in _SLIPS.items() if torch.allclose(sent, slip)), "other")
    # A sum sends one tensor both ways: what is written into it goes to x by the other one as well.
    [shared] = torch.autograd.grad(y + x, leaf, _SENT.clone())
    return Found("in_place" if found == "right" and not torch.allclose(shared, _SENT.clamp(-1, 1) + _SENT) else found)


_SLIPS = {
    "right": _SENT.clamp(-1, 1) + _BESIDE,
    "unclipped": _SENT + _BESIDE,
    "no_history": _BESIDE.expand(3),
    "sum": (_SENT + _BESIDE).clamp(-1, 1),
    "one_side": _SENT.clamp(max=1) + _BESIDE,
    "sign": _SENT.sign() + _BESIDE,
}

JUDGES: dict[str, Judge] = {
    "12.1": number(_turned_round, {14: "sum", -6: "one_way", 6: "other_way", -4: "half", -10: "half"}),
    "12.2": number(_calls, {6: "batches", 2: "epochs", 3: "one_epoch", 4: "no_batches"}),
    "12.3": number(_functional, {12: "neither", 180: "both", 120: "outside", 6: "at_c"}),
    "12.4": _straight_through,
    "12.5": _clipped,
}
