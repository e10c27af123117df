"""Judges the answers to the exercises of lesson 02."""

from typing import Any

import torch

from hookviz.course.judges import (
    Feedback,
    Grad,
    Grads,
    Judge,
    add_two,
    call_safely,
    check_tensor_hook,
    double,
    judge_number,
    lesson_gradients,
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
    """Judge the names of the gradients that change when ``c_hook`` is removed."""
    names = read_names(answer)
    if names is None:
        return Feedback("names")
    with_hook, without = _gradients_with_hooks(c_hook=True), _gradients_with_hooks(c_hook=False)
    changed = {name for name in with_hook if with_hook[name] != without[name]}
    if names == changed:
        return Feedback("right")
    if names - changed:
        return Feedback(max(names - changed))  # e before d: backward begins at e
    return Feedback("only_c" if names == {"c"} else "not_c" if "c" not in names else "one_leaf")


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
    "02.5": _judge_hook_that_makes_forty,
    "02.6": _judge_clipping,
    "02.7": _judge_changed_gradients,
}
