"""What lesson 02 asks."""

from typing import Any

import torch

from hookviz.course.judges import (
    Found,
    Grad,
    Grads,
    Judge,
    add_two,
    double,
    gradients,
    hook_fault,
    names_in,
    number,
    times_hundred_in_place,
    tried,
)


def _hooked(*, c_hook: bool) -> Grads:
    """The picture of lesson 02, with ``c_hook`` or without it."""
    return gradients({"c": [add_two] if c_hook else [], "e": [double]})


def _diamond() -> float:
    """How often a hook fires on a tensor that is used twice."""
    fired: list[Grad] = []
    s = torch.tensor(3.0, requires_grad=True)
    t = s * 2
    t.register_hook(fired.append)  # type: ignore[no-untyped-call]
    torch.autograd.backward(t * 5 + t * 7)
    return float(len(fired))


def _changed(answer: Any) -> Found:
    """Which gradients differ once ``c_hook`` is off."""
    names = names_in(answer)
    if names is None:
        return Found("names")
    with_hook, without = _hooked(c_hook=True), _hooked(c_hook=False)
    changed = {name for name in with_hook if with_hook[name] != without[name]}
    if names == changed:
        return Found("right")
    if names - changed:
        return Found(max(names - changed))  # e before d: it is nearer to where backward begins
    return Found("only_c" if names == {"c"} else "not_c" if "c" not in names else "one_leaf")


def _forty(answer: Any) -> Found:
    """Register the learner's hook on c, where 8 arrives, and look at ``c.grad``."""
    fault = hook_fault(answer, torch.tensor(8.0))
    if fault:
        return fault
    grads, error = tried(gradients, {"c": [answer], "e": [double]})
    without_e, error_too = tried(gradients, {"c": [answer]})
    if error or error_too:
        return Found("raised", error or error_too)
    if grads["c"] == without_e["c"] == 40:
        return Found("constant")
    usual = {8.0: "unchanged", 320.0: "factor", 48.0: "added", 80.0: "four", 44.0: "four"}
    name = "right" if grads["c"] == 40 else usual.get(grads["c"], "other")
    return Found(name, f"{grads['c']:g}")


def _clipping(answer: Any) -> Found:
    """Run the learner's hook on a gradient with small, large and negative numbers in it."""
    seen = torch.tensor([0.5, 2.0, 10.0, -0.5, -10.0])
    fault = hook_fault(answer, seen.clone())
    if fault:
        return fault
    result, error = tried(answer, seen.clone())
    if error:
        return Found("raised", error)
    for bounds, name in (((-3, 3), "right"), ((None, 3), "one_side"), ((-3, None), "one_side"), ((0, 3), "positive")):
        if torch.equal(result, seen.clamp(*bounds)):
            return Found(name)
    return Found("other")


JUDGES: dict[str, Judge] = {
    "02.1": number(
        lambda: _hooked(c_hook=True)["c"], {4: "no_hooks", 8: "before", 6: "without_e", 12: "late_e", 112: "d"}
    ),
    "02.2": number(lambda: _hooked(c_hook=False)["a"], {30: "still_on", 12: "all_removed", 16: "b", 8: "c"}),
    "02.3": number(_diamond, {2: "twice", 0: "never", 3: "three"}),
    "02.4": number(
        lambda: gradients({"d": [times_hundred_in_place]}, join=torch.add)["c"],
        {1: "alone", 4: "product", 400: "product", 0: "zero"},
    ),
    "02.5": _forty,
    "02.6": _clipping,
    "02.7": _changed,
}
