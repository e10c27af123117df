"""What lesson 11 asks."""

from typing import Any

import torch
from torch import nn
from torch.autograd import graph

from hookviz.course.judges import Found, Judge, misfit, no_function, number, tried


def _leaf(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, requires_grad=True)


def _after(hook: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """A leaf that got the gradients 0.5, 10, -0.5 and -10, with a post-accumulate hook on it, and its ``.grad``."""
    w = _leaf(2.0, -2.0, 2.0, -2.0)
    w.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
    torch.autograd.backward(w, torch.tensor([0.5, 10.0, -0.5, -10.0]))
    return w, w.grad


def _clipped() -> float:
    """``w.grad`` where a post-accumulate hook clips what it is given."""

    def clip(grad: torch.Tensor) -> None:
        grad.clamp_(max=1)

    w = _leaf(3.0)
    w.register_post_accumulate_grad_hook(clip)  # type: ignore[no-untyped-call]
    torch.autograd.backward(w * 5)
    assert w.grad is not None
    return w.grad.item()


def _packed() -> float:
    """``a.grad`` of ``a * b``, where b was ten times as large when backward fetched it."""
    a, b = _leaf(2.0), _leaf(3.0)
    with graph.saved_tensors_hooks(lambda saved: saved * 10, lambda packed: packed):
        e = a * b
    torch.autograd.backward(e)
    assert a.grad is not None
    return a.grad.item()


def _written() -> float:
    """How many of two leaves have their ``.grad`` when a multi-grad hook on both of them runs."""
    counts: list[int] = []
    both = x, weight = _leaf(2.0), _leaf(3.0)
    graph.register_multi_grad_hook(both, lambda grads: counts.append(sum(leaf.grad is not None for leaf in both)))
    torch.autograd.backward(x * weight)  # no module: the lesson has hooks on all of them
    return float(counts[0])


def _clipping(answer: Any) -> Found:
    """Run the learner's post-accumulate hook, and look at ``.grad`` and at the parameter."""
    if fault := no_function(answer):
        return fault
    both, error = tried(_after, answer)
    if error:
        return Found("returns") if "should return None" in error else Found("raised", error)
    w, grad = both
    if not torch.equal(w.detach(), torch.tensor([2.0, -2.0, 2.0, -2.0])):
        return Found("parameter")
    if grad is None:
        return Found("gone")
    usual = {
        (0.5, 1, -0.5, -1): "right",
        (0.5, 10, -0.5, -10): "unchanged",
        (0.5, 1, -0.5, -10): "one_side",
        (0.5, 10, -0.5, -1): "one_side",
    }
    return Found(usual.get(tuple(grad.flatten().tolist()), "other"))


def _renaming(answer: Any) -> Found:
    """Load an old file with the learner's hook on a layer, alone and as a part of a model."""
    layer = nn.Linear(1, 1, bias=False)
    layer.register_buffer("threshold", torch.ones(1))  # a key that also ends in old
    for model, path in ((layer, ""), (nn.Sequential(layer), "0.")):
        found = _loaded(answer, layer, model, path)
        if found.name != "right":
            return Found("prefix") if path and found.name != "raised" else found
    return Found("right")


def _loaded(answer: Any, layer: nn.Linear, model: nn.Module, path: str) -> Found:
    if fault := misfit(answer, layer, {}, path, {}, True, [], [], []):
        return fault
    if fault := no_function(answer):
        return fault
    nn.init.zeros_(layer.weight)
    state = {f"{path}old": torch.tensor([[7.0]]), f"{path}threshold": torch.ones(1)}
    with layer.register_load_state_dict_pre_hook(answer):  # type: ignore[no-untyped-call]
        _, error = tried(model.load_state_dict, state)
    if not error:
        return Found("right" if layer.weight.item() == 7 else "other")
    if "Error(s) in loading state_dict" not in error:
        return Found("prefix") if path else Found("raised", error)
    if "threshold" in error:
        return Found("others")
    return Found("missing" if "Missing key" in error else "left_over")


JUDGES: dict[str, Judge] = {
    "11.1": number(_clipped, {1: "gradient", 3: "parameter", 15: "value", 0: "gone"}),
    "11.2": number(_packed, {3: "saved", 20: "b", 2: "itself", 60: "value", 300: "twice"}),
    "11.3": number(_written, {2: "both", 0: "neither"}),
    "11.4": _clipping,
    "11.5": _renaming,
}
