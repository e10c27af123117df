"""What lesson 01 asks."""

from typing import Any

import torch

from hookviz.course.judges import Found, Grad, Judge, gradients, names_in, no_function, number, tried


def _square(passes: int = 1) -> float:
    """``x.grad`` of ``x * x``, where x is 3, after so many passes."""
    x = torch.tensor(3.0, requires_grad=True)
    for _ in range(passes):
        torch.autograd.backward(x * x)
    assert x.grad is not None
    return x.grad.item()


def _unmoved_leaf(answer: Any) -> Found:
    names = names_in(answer)
    if names is None or len(names) > 1:
        return Found("name")
    name = names.pop()
    return Found("right" if name == "a" else name)


def _program(answer: Any) -> Found:
    """Run the learner's program on a and b, then backward, and look at both gradients."""
    if fault := no_function(answer):
        return fault
    a, b = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0))
    result, error = tried(answer, a, b)
    if error:
        return Found("raised", error)
    if not isinstance(result, torch.Tensor):
        return Found("no_tensor")
    if not result.requires_grad:
        return Found("no_history")
    if result.numel() != 1:
        return Found("many")
    _, error = tried(torch.autograd.backward, result)
    return Found("raised", error) if error else _two_gradients(a.grad, b.grad)


def _two_gradients(of_a: Grad | None, of_b: Grad | None) -> Found:
    if of_a is None or of_b is None:
        return Found("unused", "a" if of_a is None else "b")
    grads = (of_a.item(), of_b.item())
    if grads in ((7, 2), (3, 2)):
        return Found("right" if grads[0] == 7 else "one_way")
    return Found("b", f"{grads[1]:g}") if grads[0] == 7 else Found("a", f"{grads[0]:g}")


JUDGES: dict[str, Judge] = {
    "01.1": number(
        lambda: gradients({})["a"],
        {3: "one_node", 4: "at_c", 7: "added", 8: "b", 6: "d", 24: "value", 1: "seed"},
    ),
    "01.2": number(lambda: gradients({}, seed=10)["d"], {6: "without", 16: "added", 10: "seed", 40: "c", 240: "value"}),
    "01.3": number(_square, {3: "one_edge", 9: "value", 2: "count", 1: "seed"}),
    "01.4": _unmoved_leaf,
    "01.5": number(lambda: _square(3), {6: "overwritten", 12: "two_passes", 216: "multiplied", 9: "value"}),
    "01.6": _program,
}
