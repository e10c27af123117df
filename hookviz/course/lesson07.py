"""Judges the answers to the exercises of lesson 07."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookviz.course.judges import Feedback, Grad, Judge, call_answer, call_safely, is_comparable, judge_number


def _vanishing_gradient() -> float:
    """The gradient of the input of three layers with weight 1, each with a sigmoid whose input is 0."""
    net = nn.Sequential(*[module for _ in range(3) for module in (nn.Linear(1, 1), nn.Sigmoid())])
    for parameter in net.parameters():
        nn.init.constant_(parameter, 1.0 if parameter.dim() > 1 else -0.5)
    x = torch.tensor([[0.5]], requires_grad=True)
    return torch.autograd.grad(net(x), x)[0].item()


def _count_nonzero_gradients() -> float:
    """How many parameters have a gradient that is not all 0, with a dead ReLU between two layers."""
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    nn.init.constant_(net[0].bias, -100.0)  # type: ignore[arg-type]
    grads = torch.autograd.grad(net(torch.ones(1, 3)), list(net.parameters()))
    return float(sum(bool(grad.any()) for grad in grads))


def _masked_log(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x.log(), 0.0)


def _count_nan_behind_mask() -> float:
    """How many NaN a masked logarithm sends back for 1, 0 and -1."""
    x = torch.tensor([1.0, 0.0, -1.0], requires_grad=True)
    return float(torch.autograd.grad(_masked_log(x).sum(), x)[0].isnan().sum())


def _sum_of_clipped_gradients() -> float:
    """The gradient after two passes if a hook clips each gradient of 3 at 1."""
    w = torch.tensor(1.0, requires_grad=True)
    w.register_hook(lambda grad: grad.clamp(-1, 1))  # type: ignore[no-untyped-call]
    for _ in range(2):
        torch.autograd.backward(w * 3)
    assert w.grad is not None
    return w.grad.item()


def _judge_safe_log(answer: Any) -> Feedback:
    """Call the learner's function on positive and other numbers, and run backward."""
    x = torch.tensor([4.0, 0.0, -1.0, 1e-20])
    y, fault = call_answer(answer, x)
    if fault:
        return fault
    if not is_comparable(y, x):
        return Feedback("as_many")
    wrong = ~torch.isclose(y.float(), _masked_log(x))
    if wrong.any():
        return Feedback("values", f"{x[wrong][0].item():g}")
    return _judge_log_gradient(answer, x)


def _judge_log_gradient(safe_log: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Feedback:
    x.requires_grad_()
    y, error = call_safely(safe_log, x)
    if error:
        return Feedback("raised", error)
    if not y.requires_grad:
        return Feedback("no_history")
    [grad] = torch.autograd.grad(y.sum(), x)
    if grad.isnan().any():
        return Feedback("still_nan")
    right = torch.allclose(grad, torch.where(x > 0, 1 / x, 0.0))
    return Feedback("right" if right else "slope")


_LONG_GRADIENT = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
_TEST_GRADIENTS = (_LONG_GRADIENT, 10 * _LONG_GRADIENT, 0.3 * _LONG_GRADIENT, 0.1 * _LONG_GRADIENT, 0 * _LONG_GRADIENT)
"""Gradients with the norms 5, 50, 1.5, 0.5 and 0."""


def _judge_norm_clipping(answer: Any) -> Feedback:
    """Run the learner's hook on long gradients, on a short one and on zeros."""
    results: list[Grad] = []
    for grad in _TEST_GRADIENTS:
        result, fault = call_answer(answer, grad.clone())
        if fault and (not results or fault.name != "nothing"):  # None keeps a short gradient
            return fault
        if not fault and not is_comparable(result, grad):
            return Feedback("shape")
        results.append(grad if fault else result.float())
    return _judge_clipped_norms(results)


def _judge_clipped_norms(results: list[Grad]) -> Feedback:
    """Judge what a hook made of ``_TEST_GRADIENTS``."""
    *long, short, zero = results
    if torch.equal(long[0], _LONG_GRADIENT):
        return Feedback("unchanged")
    if not torch.allclose(long[0] / long[0].norm(), _LONG_GRADIENT / 5):
        return Feedback("direction")
    if zero.isnan().any():
        return Feedback("zero")
    if not torch.allclose(short, 0.1 * _LONG_GRADIENT):
        return Feedback("short")
    for grad, result in zip(_TEST_GRADIENTS, long, strict=False):
        if not torch.isclose(result.norm(), torch.tensor(1.0)):
            return Feedback("long", f"{result.norm().item():g}", f"{grad.norm().item():g}")
    return Feedback("right")


class _Masked(nn.Module):
    """Sends NaN to its input where that is 0, behind a mask."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _masked_log(x)


def _make_identity() -> nn.Linear:
    layer = nn.Linear(3, 3, bias=False)
    nn.init.eye_(layer.weight)
    return layer


def _models_with_culprits() -> list[tuple[nn.Module, torch.Tensor, str]]:
    """Models, their inputs, and the paths of the modules that make the first NaN; one input needs no gradient."""
    x = torch.tensor([[1.0, 0.0, -1.0]])
    with torch.random.fork_rng(devices=[]):
        body = nn.Sequential(_make_identity(), _Masked())
        nested = nn.Sequential(_make_identity(), body, nn.Tanh())
        flat = nn.Sequential(_make_identity(), _Masked(), nn.Tanh())
        healthy = nn.Sequential(_make_identity(), nn.Tanh())
    return [(flat, x.clone().requires_grad_(), "1"), (nested, x, "1.1"), (healthy, x, "none")]


def _judge_find_nan(answer: Any) -> Feedback:
    """Call the learner's function on each model, and judge the paths."""
    for model, x, path in _models_with_culprits():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that a hook fires early
            found, fault = call_answer(answer, model, x)
        if fault and (fault.name != "nothing" or path != "none"):
            return fault
        if any(module._backward_hooks for module in model.modules()):
            return Feedback("left")
        if feedback := _compare_paths(found, path):
            return feedback
    return Feedback("right")


def _compare_paths(found: Any, path: str) -> Feedback | None:
    """Feedback if a learner's function found something else than ``path``."""
    if found == path:
        return None
    if path == "none":
        return Feedback("healthy")
    if not isinstance(found, str):
        return Feedback("no_path", type(found).__name__)
    if path.startswith(found):
        return Feedback("outer")
    return Feedback("victim" if found in ("0", "1.0") else "other", found)


JUDGES: dict[str, Judge] = {
    "07.1": judge_number(_vanishing_gradient, {0.25: "one", 0.0625: "two", 0.75: "added", 1: "seed", 64: "inverse"}),
    "07.2": judge_number(_count_nonzero_gradients, {0: "none_at_all", 2: "second", 3: "three", 4: "all"}),
    "07.3": judge_number(_count_nan_behind_mask, {0: "hidden", 2: "both", 3: "spread"}),
    "07.4": judge_number(_sum_of_clipped_gradients, {1: "sum", 6: "unclipped", 3: "one_pass", 4: "once"}),
    "07.5": _judge_safe_log,
    "07.6": _judge_norm_clipping,
    "07.7": _judge_find_nan,
}
