"""Judges the answers to the exercises of lesson 12."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Grad,
    Judge,
    are_close,
    call_answer,
    call_backward_hook,
    call_safely,
    is_comparable,
    judge_number,
    make_leaf,
)


def _result_of_sign_hook() -> float:
    """What a hook that flips the sign returns, on a tensor that gets gradients from two branches."""
    returned: list[float] = []

    def flip_sign(grad: Grad) -> Grad:
        returned.append(-grad.item())
        return -grad

    c = make_leaf(2.0) * 3
    c.register_hook(flip_sign)  # type: ignore[no-untyped-call]
    torch.autograd.backward(c * 4 + c.view_as(c) * 10)
    return returned[0]


def _count_layer_calls() -> float:
    """How often a layer is called in two epochs of three batches by a net that calls it twice."""
    calls: list[nn.Module] = []
    layer = nn.Linear(1, 1)
    layer.register_forward_hook(lambda module, args, output: calls.append(module))
    for _ in range(2 * 3):
        nn.Sequential(layer, layer)(torch.ones(4, 1))
    return float(len(calls))


def _func_grad_with_hooks() -> float:
    """The result of ``torch.func.grad`` for a function with a hook inside, at a leaf with its own hook."""

    def function(a: Grad) -> Grad:
        c = a * 3
        c.register_hook(lambda grad: grad + 2)  # type: ignore[no-untyped-call]
        return c * 4

    a = make_leaf(2.0)
    a.register_hook(lambda grad: grad * 10)  # type: ignore[no-untyped-call]
    gradient: Grad = torch.func.grad(function)(a)
    return gradient.item()


def _judge_straight_through(answer: Any) -> Feedback:
    """Call the learner's hook as a module that rounds would, with gradients of two shapes."""
    grads = torch.tensor([5.0, -3.0]), torch.tensor([[0.5]])
    feedback = (_judge_one_gradient(answer, grad) for grad in grads)
    return next((fault for fault in feedback if fault.name != "right"), Feedback("right"))


def _judge_one_gradient(answer: Any, grad: Grad) -> Feedback:
    zeros = torch.zeros_like(grad)
    result, fault = call_backward_hook(answer, nn.Identity(), (zeros,), (grad,))
    if fault:
        return fault
    if len(result) != 1:
        return Feedback("count", str(len(result)))
    [sent] = result
    if not is_comparable(sent, grad):
        return Feedback("shape")
    usual = {"right": grad, "unchanged": zeros, "slope": torch.ones_like(grad)}
    return Feedback(next((name for name, value in usual.items() if torch.equal(sent, value)), "other"))


_CLIPPED_SEED, _OTHER_SEED = torch.tensor([10.0, -10.0, 0.5]), torch.tensor(5.0)
"""The gradient for the result of the learner's function, and the gradient of another branch for its argument."""


def _judge_clip_function(answer: Any) -> Feedback:
    """Call the learner's function on a tensor that has another use, too, and run backward through both."""
    leaf = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    x = leaf * 1
    y, fault = call_answer(answer, x)
    if fault:
        return fault
    if not is_comparable(y, x) or not torch.equal(y, x):
        return Feedback("values")
    if not y.requires_grad:
        return Feedback("no_history")

    def run_backward() -> torch.Tensor:
        return torch.autograd.grad((y * _CLIPPED_SEED + x * _OTHER_SEED).sum(), leaf, retain_graph=True)[0]

    sent, error = call_safely(run_backward)
    if error:
        return Feedback("raised", error)
    name = next((name for name, grad in _EXPECTED_GRADIENTS.items() if torch.allclose(sent, grad)), "other")
    # A sum sends the same tensor to both inputs: a hook that changes it in place changes the other gradient, too.
    [shared] = torch.autograd.grad(y + x, leaf, _CLIPPED_SEED.clone())
    is_unshared = torch.allclose(shared, _CLIPPED_SEED.clamp(-1, 1) + _CLIPPED_SEED)
    return Feedback("in_place" if name == "right" and not is_unshared else name)


_EXPECTED_GRADIENTS = {
    "right": _CLIPPED_SEED.clamp(-1, 1) + _OTHER_SEED,
    "unclipped": _CLIPPED_SEED + _OTHER_SEED,
    "no_history": _OTHER_SEED.expand(3),
    "sum": (_CLIPPED_SEED + _OTHER_SEED).clamp(-1, 1),
    "one_side": _CLIPPED_SEED.clamp(max=1) + _OTHER_SEED,
    "sign": _CLIPPED_SEED.sign() + _OTHER_SEED,
}


def _judge_sow_and_perturb(answer: Any) -> Feedback:
    """Call the learner's function on a net of three layers, and compare what it returns with outputs and gradients."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        x = torch.randn(5, 3)
    result, fault = call_answer(answer, net, x)
    if fault:
        return fault
    if not (isinstance(result, tuple) and len(result) == 2 and all(isinstance(part, dict) for part in result)):
        return Feedback("pair")
    expected = _outputs_and_gradients(net, x)
    for name, found, right in zip(("outputs", "gradients"), result, expected, strict=True):
        if set(found) != set(right):
            return Feedback("keys", name)
        if not all(are_close(found[key], right[key]) for key in right):
            return Feedback(name)
    if any(module._forward_hooks or module._backward_hooks or module._forward_pre_hooks for module in net.modules()):
        return Feedback("left")
    return Feedback("right")


def _outputs_and_gradients(net: nn.Sequential, x: torch.Tensor) -> tuple[dict[str, torch.Tensor], ...]:
    """What each layer of a net returns, and the gradient of that, without a hook of a module."""
    outputs: dict[str, torch.Tensor] = {}
    for name, layer in net.named_children():
        x = layer.forward(x)
        outputs[name] = x
    return outputs, dict(zip(outputs, torch.autograd.grad(x.sum(), list(outputs.values())), strict=True))


JUDGES: dict[str, Judge] = {
    "12.1": judge_number(_result_of_sign_hook, {14: "sum", -6: "one_way", 6: "other_way", -4: "half", -10: "half"}),
    "12.2": judge_number(_func_grad_with_hooks, {12: "neither", 180: "both", 120: "outside", 6: "at_c"}),
    "12.3": judge_number(_count_layer_calls, {6: "batches", 2: "epochs", 3: "one_epoch", 4: "no_batches"}),
    "12.4": _judge_straight_through,
    "12.5": _judge_clip_function,
    "12.6": _judge_sow_and_perturb,
}
