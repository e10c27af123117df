"""Judges the answers to the exercises of lesson 02."""

from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.course.judges import (
    Feedback,
    Grad,
    Judge,
    add_two,
    as_float,
    call_function,
    check_tensor_hook,
    double,
    judge_number,
    judge_word,
    lesson_gradients,
    times_hundred_in_place,
)


def _count_firings_at_diamond() -> float:
    """How often a hook fires on a tensor that is used twice."""
    fired: list[Grad] = []
    s = torch.tensor(3.0, requires_grad=True)
    t = s * 2
    t.register_hook(fired.append)  # type: ignore[no-untyped-call]
    torch.autograd.backward(t * 5 + t * 7)
    return float(len(fired))


def _gradient_after_two_hooks() -> float:
    """The gradient 5 after a hook that adds 2 and then a hook that multiplies by 3."""
    return lesson_gradients({"e": [add_two, lambda grad: grad * 3]}, seed=5.0)["e"]


def _gradient_of_leaf_behind_deleted_tensor() -> float:
    """The gradient of ``p`` if the variable ``q = p * 3``, which has a hook, is deleted before backward."""
    p = torch.tensor(2.0, requires_grad=True)
    p.register_hook(lambda grad: grad + 1)  # type: ignore[no-untyped-call]
    q = p * 3
    q.register_hook(lambda grad: grad * 1000)  # type: ignore[no-untyped-call]
    r = q * 1
    del q
    torch.autograd.backward(r)
    assert p.grad is not None
    return p.grad.item()


def _judge_clipping(answer: Any) -> Feedback:
    """Run the learner's hook on a gradient with small, large and negative numbers."""
    grad = torch.tensor([0.5, 2.0, 10.0, -0.5, -10.0])
    fault = check_tensor_hook(answer, grad.clone())
    if fault:
        return fault
    result, fault = call_function(answer, grad.clone())
    if fault:
        return fault
    for bounds, name in (((-3, 3), "right"), ((None, 3), "one_side"), ((-3, None), "one_side"), ((0, 3), "positive")):
        if torch.equal(result, grad.clamp(*bounds)):
            return Feedback(name)
    return Feedback("other")


def _judge_note(answer: Any) -> Feedback:
    """Let the learner's function note the size of a gradient that is shared; judge log, pass and handle."""
    a, d = (torch.tensor(numbers, requires_grad=True) for numbers in ([2.0, 2.0], [9.0, 9.0]))
    log: list[Any] = []
    handle, fault = call_function(answer, d, log)
    if log:
        return Feedback("early")
    if not fault:
        _, fault = call_function(torch.autograd.backward, a * 3 + d, torch.tensor([2.0, -5.0]))
    if fault := fault or _judge_log(log):
        return fault
    if a.grad is None or a.grad.tolist() != [6, -15]:
        return Feedback("shared")
    if d.grad is None or d.grad.tolist() != [2, -5]:
        return Feedback("replaced")
    return Feedback("right" if _can_remove(handle, d) else "no_handle")


def _judge_log(log: list[Any]) -> Feedback | None:
    """Feedback if the log of one pass, in which the gradient (2, -5) arrived, is not one number, its size."""
    if not log:
        return Feedback("empty")
    if len(log) > 1:
        return Feedback("entries", str(len(log)))
    size = None if isinstance(log[0], str) else as_float(log[0])
    if size is None:
        return Feedback("whole")
    if size == 5:
        return None
    mistakes = {2.0: "sign", -5.0: "smallest", -3.0: "sum", 3.0: "sum", 7.0: "sum", 9.0: "value"}
    return Feedback(mistakes.get(size, "other"), f"{size:g}")


def _can_remove(handle: Any, tensor: torch.Tensor) -> bool:
    """Whether ``handle`` takes the hook off the tensor."""
    if not isinstance(handle, RemovableHandle):
        return False
    handle.remove()
    return not tensor._backward_hooks


JUDGES: dict[str, Judge] = {
    "02.1": judge_number(
        lambda: lesson_gradients({"c": [add_two], "e": [double]})["c"],
        {4: "no_hooks", 8: "before", 6: "without_e", 12: "late_e", 112: "d"},
    ),
    "02.2": judge_number(
        lambda: lesson_gradients({"e": [double]})["a"], {30: "still_on", 12: "all_removed", 16: "b", 8: "c"}
    ),
    "02.3": judge_number(
        _gradient_after_two_hooks, {17: "reversed", 7: "first", 15: "second", 22: "both", 9: "seed", 5: "none_ran"}
    ),
    "02.4": judge_number(_count_firings_at_diamond, {2: "twice", 0: "never", 3: "three"}),
    "02.5": judge_number(
        _gradient_of_leaf_behind_deleted_tensor,
        {4: "lost", 3: "no_hooks", 3000: "without_p", 3003: "early_p", 1001: "without_node", 2001: "value"},
    ),
    "02.6": judge_number(
        lambda: lesson_gradients({"d": [times_hundred_in_place]}, join=torch.add)["c"],
        {1: "alone", 4: "product", 400: "product", 0: "zero"},
    ),
    "02.7": judge_word({"up": "right", "down": "down", "both": "both"}),
    "02.8": _judge_clipping,
    "02.9": _judge_note,
}
