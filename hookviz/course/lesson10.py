"""Judges the answers to the exercises of lesson 10."""

from typing import Any

import torch

from hookviz.course.judges import Feedback, Grad, Judge, as_float, call_answer, judge_number, make_leaf, read_names


def _count_visits() -> float:
    """How often a recursion along the arrows visits the leaf, from the tenth doubling on."""
    y = make_leaf(1.0)
    for _ in range(10):
        y = y + y

    def count(node: Any) -> int:
        targets = [target for target, _ in node.next_functions]
        return sum(map(count, targets)) if targets else 1

    return float(count(y.grad_fn))


def _first_to_fire() -> str:
    """The name of the tensor whose hook fires first: b and then c are made from a, and both are ready at once."""
    fired: list[str] = []
    a = make_leaf(3.0)
    tensors = {"b": a * make_leaf(5.0), "c": a * make_leaf(7.0)}
    for name, tensor in tensors.items():
        tensor.register_hook(lambda grad, name=name: fired.append(name))  # type: ignore[no-untyped-call]
    torch.autograd.backward(tensors["b"] + tensors["c"])
    return fired[0]


def _judge_first_hook(answer: Any) -> Feedback:
    names = read_names(answer)
    if names is None or len(names) > 1:
        return Feedback("name")
    name = names.pop()
    return Feedback("right" if name == _first_to_fire() else name)


def _retained_gradient() -> float:
    """The retained gradient of a tensor that receives 4, with hooks of three kinds registered in the wrong order."""
    c = make_leaf(2.0) * 3
    node: Any = c.grad_fn
    node.register_hook(lambda sent, grads: tuple(None if grad is None else 0 * grad for grad in sent))
    node.register_prehook(lambda grads: (10 * grads[0],))
    c.retain_grad()
    c.register_hook(lambda grad: 2 * grad)  # type: ignore[no-untyped-call]
    torch.autograd.backward(c, torch.tensor(4.0))
    assert c.grad is not None
    return c.grad.item()


def _judge_division(answer: Any) -> Feedback:
    """Compare the gradients of the learner's function with those of PyTorch."""
    feedback = Feedback("right")
    for grad, x, y in ((3.0, 5.0, 2.0), (-2.0, 7.0, 4.0)):
        result, fault = call_answer(answer, grad, x, y)
        if fault is not None:
            return fault
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            return Feedback("pair")
        feedback = _compare_with_division([as_float(value) for value in result], grad, make_leaf(x), make_leaf(y))
        if feedback.name != "right":
            return feedback
    return feedback


def _compare_with_division(sent: list[float | None], grad: float, x: Grad, y: Grad) -> Feedback:
    right = [value.item() for value in torch.autograd.grad(x / y, (x, y), torch.tensor(grad))]
    slips = {
        "right": right,
        "sign": [right[0], -right[1]],
        "exchanged": right[::-1],
        "no_grad": [value / grad for value in right],
        "product": [grad * y.item(), grad * x.item()],
        "no_square": [right[0], right[1] * y.item()],
    }
    return Feedback(next((name for name, slip in slips.items() if _are_close(sent, slip)), "other"))


def _are_close(sent: list[float | None], right: list[float]) -> bool:
    return all(value is not None and abs(value - wanted) < 1e-4 for value, wanted in zip(sent, right, strict=True))


JUDGES: dict[str, Judge] = {
    "10.1": judge_number(
        _count_visits, {1: "queue", 2: "diamond", 10: "sums", 20: "arrows", 512: "one_less", 2046: "nodes"}
    ),
    "10.2": _judge_first_hook,
    "10.3": _judge_division,
    "10.4": judge_number(_retained_gradient, {4: "arrived", 80: "all", 40: "pre", 0: "post"}),
}
