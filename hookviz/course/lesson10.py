"""What lesson 10 asks."""

from typing import Any

import torch

from hookviz.course.judges import Found, Grad, Judge, float_of, names_in, number, result_of


def _leaf(number: float) -> torch.Tensor:
    return torch.tensor(number, requires_grad=True)


def _visits() -> float:
    """How often a recursion along the arrows comes to the leaf, from the tenth doubling on."""
    y = _leaf(1.0)
    for _ in range(10):
        y = y + y

    def visits(node: Any) -> int:
        return sum(map(visits, below)) if (below := [target for target, _ in node.next_functions]) else 1

    return float(visits(y.grad_fn))


def _first_to_fire() -> str:
    """Which hook fires first, if b and then c were made of a, and both are ready at once."""
    fired: list[str] = []
    a = _leaf(3.0)
    tensors = {"b": a * _leaf(5.0), "c": a * _leaf(7.0)}
    for name, tensor in tensors.items():
        tensor.register_hook(lambda grad, name=name: fired.append(name))  # type: ignore[no-untyped-call]
    torch.autograd.backward(tensors["b"] + tensors["c"])
    return fired[0]


def _goes_first(answer: Any) -> Found:
    names = names_in(answer)
    if names is None or len(names) > 1:
        return Found("name")
    name = names.pop()
    return Found("right" if name == _first_to_fire() else name)


def _retained() -> float:
    """What a tensor to which 4 comes keeps of it, with hooks of three kinds registered in the wrong order."""
    c = _leaf(2.0) * 3
    node: Any = c.grad_fn
    node.register_hook(lambda sent, grads: tuple(None if grad is None else 0 * grad for grad in sent))
    node.register_prehook(lambda grads: (10 * grads[0],))
    c.retain_grad()
    c.register_hook(lambda grad: 2 * grad)  # type: ignore[no-untyped-call]
    torch.autograd.backward(c, torch.tensor(4.0))
    assert c.grad is not None
    return c.grad.item()


def _division(answer: Any) -> Found:
    """Compare what the learner's function sends with what PyTorch sends."""
    found = Found("right")
    for grad, x, y in ((3.0, 5.0, 2.0), (-2.0, 7.0, 4.0)):
        result, fault = result_of(answer, grad, x, y)
        if fault is not None:
            return fault
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            return Found("pair")
        found = _compared([float_of(part) for part in result], grad, _leaf(x), _leaf(y))
        if found.name != "right":
            return found
    return found


def _compared(sent: list[float | None], grad: float, x: Grad, y: Grad) -> Found:
    right = [part.item() for part in torch.autograd.grad(x / y, (x, y), torch.tensor(grad))]
    slips = {
        "right": right,
        "sign": [right[0], -right[1]],
        "exchanged": right[::-1],
        "no_grad": [part / grad for part in right],
        "product": [grad * y.item(), grad * x.item()],
        "no_square": [right[0], right[1] * y.item()],
    }
    return Found(next((name for name, slip in slips.items() if _close(sent, slip)), "other"))


def _close(sent: list[float | None], right: list[float]) -> bool:
    return all(part is not None and abs(part - wanted) < 1e-4 for part, wanted in zip(sent, right, strict=True))


JUDGES: dict[str, Judge] = {
    "10.1": number(_visits, {1: "queue", 2: "diamond", 10: "sums", 20: "arrows", 512: "one_less", 2046: "nodes"}),
    "10.2": _goes_first,
    "10.3": _division,
    "10.4": number(_retained, {4: "arrived", 80: "all", 40: "pre", 0: "post"}),
}
