"""Judges the answers to the exercises of lesson 11."""

from typing import Any

import torch
from torch import nn
from torch.autograd import graph

from hookviz.course.judges import (
    Feedback,
    Judge,
    call_safely,
    check_callable,
    check_parameters,
    judge_letters,
    judge_number,
)


def _make_vector_leaf(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, requires_grad=True)


def _run_post_accumulate_hook(hook: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Send 0.5, 10, -0.5 and -10 to a leaf with a post-accumulate hook; return the leaf and its ``.grad``."""
    w = _make_vector_leaf(2.0, -2.0, 2.0, -2.0)
    w.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
    torch.autograd.backward(w, torch.tensor([0.5, 10.0, -0.5, -10.0]))
    return w, w.grad


def _gradient_after_clipping() -> float:
    """``w.grad`` after a post-accumulate hook that clips its argument in place."""

    def clip(grad: torch.Tensor) -> None:
        grad.clamp_(max=1)

    w = _make_vector_leaf(3.0)
    w.register_post_accumulate_grad_hook(clip)  # type: ignore[no-untyped-call]
    torch.autograd.backward(w * 5)
    assert w.grad is not None
    return w.grad.item()


def _gradient_with_packed_tensor() -> float:
    """``a.grad`` of ``a * b`` if the saved b is multiplied by ten when it is packed."""
    a, b = _make_vector_leaf(2.0), _make_vector_leaf(3.0)
    with graph.saved_tensors_hooks(lambda saved: saved * 10, lambda packed: packed):
        e = a * b
    torch.autograd.backward(e)
    assert a.grad is not None
    return a.grad.item()


def _count_grads_in_multi_grad_hook() -> float:
    """How many of two leaves have a ``.grad`` when a multi-grad hook on both of them runs."""
    counts: list[int] = []
    leaves = x, weight = _make_vector_leaf(2.0), _make_vector_leaf(3.0)
    graph.register_multi_grad_hook(leaves, lambda grads: counts.append(sum(leaf.grad is not None for leaf in leaves)))
    torch.autograd.backward(x * weight)  # no module here: the lesson has hooks on all modules
    return float(counts[0])


STEP_ORDER = "ABDFHCGE"
"""The order in which the eight hooks of a training step fire."""
ORDER_RULES = {
    "forward": ["AB"],
    "call": ["BD", "BC", "BF", "BH"],
    "step": ["DG", "FG", "HG", "CG"],
    "around": ["GE"],
    "gradient": ["DF"],
    "exit": ["DC"],
    "written": ["FH"],
}
"""A usual mistake → pairs of letters, one of which is in the wrong order then."""


def _judge_post_accumulate_hook(answer: Any) -> Feedback:
    """Run the learner's post-accumulate hook, and judge ``.grad`` and the parameter."""
    if fault := check_callable(answer):
        return fault
    leaf_and_grad, error = call_safely(_run_post_accumulate_hook, answer)
    if error:
        return Feedback("returns") if "should return None" in error else Feedback("raised", error)
    w, grad = leaf_and_grad
    if not torch.equal(w.detach(), torch.tensor([2.0, -2.0, 2.0, -2.0])):
        return Feedback("parameter")
    if grad is None:
        return Feedback("gone")
    usual = {
        (0.5, 1, -0.5, -1): "right",
        (0.5, 10, -0.5, -10): "unchanged",
        (0.5, 1, -0.5, -10): "one_side",
        (0.5, 10, -0.5, -1): "one_side",
    }
    small_ones_stay = grad.flatten()[::2].tolist() == [0.5, -0.5]
    return Feedback(usual.get(tuple(grad.flatten().tolist()), "bounds" if small_ones_stay else "other"))


def _judge_key_renaming(answer: Any) -> Feedback:
    """Load an old file with the learner's hook on a layer, alone and as a part of a model."""
    layer = nn.Linear(1, 1, bias=False)
    layer.register_buffer("threshold", torch.ones(1))  # this key ends in "old", too
    for model, path in ((layer, ""), (nn.Sequential(layer), "0.")):
        feedback = _judge_loading(answer, layer, model, path)
        if feedback.name != "right":
            return Feedback("prefix") if path else feedback
    return Feedback("right")


def _judge_loading(answer: Any, layer: nn.Linear, model: nn.Module, path: str) -> Feedback:
    if fault := check_parameters(answer, layer, {}, path, {}, True, [], [], []):
        return fault
    if fault := check_callable(answer):
        return fault
    nn.init.zeros_(layer.weight)
    state = {f"{path}old": torch.tensor([[7.0]]), f"{path}threshold": torch.ones(1)}
    with layer.register_load_state_dict_pre_hook(answer):  # type: ignore[no-untyped-call]
        _, error = call_safely(model.load_state_dict, state)
    if not error:
        return Feedback("right" if layer.weight.item() == 7 else "other")
    if "Error(s) in loading state_dict" not in error:
        return Feedback("prefix") if path else Feedback("fails", error)
    if "threshold" in error:
        return Feedback("others")
    return Feedback("missing" if "Missing key" in error else "left_over")


def _make_model(frozen: bool) -> nn.Sequential:
    """Make a small model with fixed weights; its first layer may be frozen."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    for number, param in enumerate(model.parameters()):
        nn.init.constant_(param, 0.1 * (number + 1))
    model[0].requires_grad_(not frozen)
    return model


def _train_once(model: nn.Module) -> None:
    torch.autograd.backward(model(torch.tensor([[1.0, 2.0]])).sum())


def _judge_training_tool(answer: Any) -> Feedback:
    """Let the learner's function train a model, switch it off, and let it train a model with frozen parameters."""
    if fault := check_callable(answer):
        return fault
    feedback = _judge_training(answer, _make_model(frozen=False))
    if feedback.name != "right":
        return feedback
    frozen = _judge_training(answer, _make_model(frozen=True))
    return frozen if frozen.name == "right" else Feedback("frozen")


def _judge_training(answer: Any, model: nn.Sequential) -> Feedback:
    rate, expected = 0.5, _make_model(frozen=not model[0].weight.requires_grad)
    _train_once(expected)
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in expected.parameters()]
    starts = [p.detach().clone() for p in expected.parameters()]
    handles, error = call_safely(answer, model, rate)
    if error:
        return Feedback("fails", error)
    params = list(model.parameters())
    if not any(p._post_accumulate_grad_hooks for p in params):
        return Feedback("tensor_hooks" if any(p._backward_hooks for p in params) else "unhooked")
    _, error = call_safely(_train_once, model)
    if error:
        return Feedback("fails", error)
    if feedback := _compare_steps(params, starts, [rate * gradient for gradient in gradients]):
        return feedback
    if any(p.grad is not None for p in params):
        return Feedback("kept")
    _, error = call_safely(lambda: [handle.remove() for handle in handles])
    if error:
        return Feedback("handles")
    before = [p.detach().clone() for p in params]
    _train_once(model)
    return Feedback("right" if all(map(torch.equal, before, params)) else "stays")


def _compare_steps(
    params: list[nn.Parameter], starts: list[torch.Tensor], steps: list[torch.Tensor]
) -> Feedback | None:
    """Feedback unless each parameter went from its start by its step, downwards."""
    moved = [not torch.equal(p, start) for p, start in zip(params, starts, strict=True)]
    if not any(moved):
        return Feedback("untrained")
    if any(step.any() and not has_moved for step, has_moved in zip(steps, moved, strict=True)):
        return Feedback("some")
    for sign, name in ((-1, None), (1, "grown")):
        ends = [start + sign * step for start, step in zip(starts, steps, strict=True)]
        if all(map(torch.allclose, params, ends)):
            return Feedback(name) if name else None
    return Feedback("other")


JUDGES: dict[str, Judge] = {
    "11.1": judge_number(_gradient_after_clipping, {1: "gradient", 3: "parameter", 15: "value", 0: "gone"}),
    "11.2": judge_number(_count_grads_in_multi_grad_hook, {2: "both", 0: "neither"}),
    "11.3": judge_number(
        _gradient_with_packed_tensor,
        {
            3: "saved",
            20: "b",
            2: "itself",
            6: "e",
            10: "factor",
            60: "value",
            300: "twice",
            600: "both",
        },
    ),
    "11.4": judge_letters(STEP_ORDER, ORDER_RULES),
    "11.5": _judge_post_accumulate_hook,
    "11.6": _judge_key_renaming,
    "11.7": _judge_training_tool,
}
