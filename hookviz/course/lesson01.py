"""Judges the answers to the exercises of lesson 01."""

from typing import Any

import torch

from hookviz.course.judges import (
    Feedback,
    Grad,
    Judge,
    call_safely,
    check_callable,
    judge_number,
    lesson_gradients,
    read_names,
)


def _square_gradient(passes: int = 1) -> float:
    """``x.grad`` of ``x * x`` for x = 3, after this number of passes."""
    x = torch.tensor(3.0, requires_grad=True)
    for _ in range(passes):
        torch.autograd.backward(x * x)
    assert x.grad is not None
    return x.grad.item()


def _judge_unchanged_leaf(answer: Any) -> Feedback:
    names = read_names(answer)
    if names is None or len(names) > 1:
        return Feedback("name")
    name = names.pop()
    return Feedback("right" if name == "a" else name)


def _judge_program(answer: Any) -> Feedback:
    """Run the learner's program on a and b, then backward, and judge both gradients."""
    if fault := check_callable(answer):
        return fault
    a, b = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0))
    result, error = call_safely(answer, a, b)
    if error:
        return Feedback("raised", error)
    if not isinstance(result, torch.Tensor):
        return Feedback("no_tensor")
    if not result.requires_grad:
        return Feedback("no_history")
    if result.numel() != 1:
        return Feedback("many")
    _, error = call_safely(torch.autograd.backward, result)
    return Feedback("raised", error) if error else _judge_gradients(a.grad, b.grad)


def _judge_gradients(grad_a: Grad | None, grad_b: Grad | None) -> Feedback:
    if grad_a is None or grad_b is None:
        return Feedback("unused", "a" if grad_a is None else "b")
    grads = (grad_a.item(), grad_b.item())
    if grads in ((7, 2), (3, 2)):
        return Feedback("right" if grads[0] == 7 else "one_way")
    return Feedback("b", f"{grads[1]:g}") if grads[0] == 7 else Feedback("a", f"{grads[0]:g}")


JUDGES: dict[str, Judge] = {
    "01.1": judge_number(
        lambda: lesson_gradients({})["a"],
        {3: "one_node", 4: "at_c", 7: "added", 8: "b", 6: "d", 24: "value", 1: "seed"},
    ),
    "01.2": judge_number(
        lambda: lesson_gradients({}, seed=10)["d"], {6: "without", 16: "added", 10: "seed", 40: "c", 240: "value"}
    ),
    "01.3": judge_number(_square_gradient, {3: "one_edge", 9: "value", 2: "count", 1: "seed"}),
    "01.4": _judge_unchanged_leaf,
    "01.5": judge_number(
        lambda: _square_gradient(3), {6: "overwritten", 12: "two_passes", 216: "multiplied", 9: "value"}
    ),
    "01.6": _judge_program,
}
