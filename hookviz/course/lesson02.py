"""Judges the answers to the exercises of lesson 02."""

from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.course.judges import (
    Feedback,
    Grad,
    Grads,
    Judge,
    add_two,
    as_float,
    call_safely,
    check_callable,
    check_tensor_hook,
    double,
    judge_number,
    lesson_gradients,
    make_leaf,
    read_names,
    times_hundred_in_place,
)


def _gradients_with_hooks(*, c_hook: bool) -> Grads:
    """The gradients of the lesson's graph, with or without ``c_hook``."""
    return lesson_gradients({"c": [add_two] if c_hook else [], "e": [double]})


def _count_firings_at_diamond() -> float:
    """How often a hook fires on a tensor that is used twice."""
    fired: list[Grad] = []
    s = torch.tensor(3.0, requires_grad=True)
    t = s * 2
    t.register_hook(fired.append)  # type: ignore[no-untyped-call]
    torch.autograd.backward(t * 5 + t * 7)
    return float(len(fired))


def _judge_changed_gradients(answer: Any) -> Feedback:
    """Judge the names of the gradients that change when a hook that looks and the hook on d are off."""
    names = read_names(answer)
    if names is None:
        return Feedback("names")
    all_on = lesson_gradients({"c": [add_two, lambda grad: None], "d": [lambda grad: grad + 100], "e": [double]})
    without = lesson_gradients({"c": [add_two], "e": [double]})
    if names == {name for name in all_on if all_on[name] != without[name]}:
        return Feedback("right")
    if "c" in names:
        return Feedback("c")
    return Feedback("leaves" if names & {"a", "b"} else "e")


def _judge_direction(answer: Any) -> Feedback:
    """Judge the direction in which a weight can move if no number of its gradient is above 0."""
    text = answer.strip().lower() if isinstance(answer, str) else ""
    return Feedback({"up": "right", "down": "down", "both": "both"}.get(text, "form"))


def _judge_hook_that_makes_forty(answer: Any) -> Feedback:
    """Register the learner's hook on c, where 8 arrives, and judge ``c.grad``."""
    fault = check_tensor_hook(answer, torch.tensor(8.0))
    if fault:
        return fault
    grads, error = call_safely(lesson_gradients, {"c": [answer], "e": [double]})
    without_e, second_error = call_safely(lesson_gradients, {"c": [answer]})
    if error or second_error:
        return Feedback("raised", error or second_error)
    if grads["c"] == without_e["c"] == 40:
        return Feedback("constant")
    usual_results = {8.0: "unchanged", 320.0: "factor", 48.0: "added", 80.0: "four", 44.0: "four"}
    name = "right" if grads["c"] == 40 else usual_results.get(grads["c"], "other")
    return Feedback(name, f"{grads['c']:g}")


def _judge_clipping(answer: Any) -> Feedback:
    """Run the learner's hook on a gradient with small, large and negative numbers."""
    grad = torch.tensor([0.5, 2.0, 10.0, -0.5, -10.0])
    fault = check_tensor_hook(answer, grad.clone())
    if fault:
        return fault
    result, error = call_safely(answer, grad.clone())
    if error:
        return Feedback("raised", error)
    for bounds, name in (((-3, 3), "right"), ((None, 3), "one_side"), ((-3, None), "one_side"), ((0, 3), "positive")):
        if torch.equal(result, grad.clamp(*bounds)):
            return Feedback(name)
    return Feedback("other")


def _judge_watch(answer: Any) -> Feedback:
    """Let the learner's function watch a tensor whose gradient is shared, and judge log, pass and handle."""
    if fault := check_callable(answer):
        return fault
    (a, c, d), log = _sum_of_leaves(), []  # type: ignore[var-annotated]
    handle, error = call_safely(answer, d, log)
    if not error:
        _, error = call_safely(torch.autograd.backward, c + d, torch.tensor(2.0))
    if error:
        return Feedback("raised", error)
    if fault := _judge_log(log):
        return fault
    if a.grad is None or a.grad.item() != 6:
        return Feedback("shared")
    if d.grad is None or d.grad.item() != 2:
        return Feedback("replaced")
    return Feedback("right" if _can_remove(handle, d) else "no_handle")


def _sum_of_leaves() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Make ``a``, ``c = 3 a`` and ``d``; an addition sends one and the same gradient to ``c`` and ``d``."""
    a, d = make_leaf(2.0), make_leaf(4.0)
    return a, a * 3, d


def _judge_log(log: list[Any]) -> Feedback | None:
    """Feedback if the log of one pass, in which the gradient 2 arrived, is not one tensor with 2000."""
    if not log:
        return Feedback("empty")
    if len(log) > 1 or as_float(log[0]) is None:
        return Feedback("entries")
    return None if as_float(log[0]) == 2000 else Feedback("unit", f"{as_float(log[0]):g}")


def _can_remove(handle: Any, tensor: torch.Tensor) -> bool:
    """Whether ``handle`` takes the hook off the tensor."""
    if not isinstance(handle, RemovableHandle):
        return False
    handle.remove()
    return not tensor._backward_hooks


JUDGES: dict[str, Judge] = {
    "02.1": judge_number(
        lambda: _gradients_with_hooks(c_hook=True)["c"],
        {4: "no_hooks", 8: "before", 6: "without_e", 12: "late_e", 112: "d"},
    ),
    "02.2": judge_number(
        lambda: _gradients_with_hooks(c_hook=False)["a"], {30: "still_on", 12: "all_removed", 16: "b", 8: "c"}
    ),
    "02.3": judge_number(_count_firings_at_diamond, {2: "twice", 0: "never", 3: "three"}),
    "02.4": judge_number(
        lambda: lesson_gradients({"d": [times_hundred_in_place]}, join=torch.add)["c"],
        {1: "alone", 4: "product", 400: "product", 0: "zero"},
    ),
    "02.9": _judge_direction,
    "02.5": _judge_hook_that_makes_forty,
    "02.6": _judge_clipping,
    "02.7": _judge_changed_gradients,
    "02.8": _judge_watch,
}
