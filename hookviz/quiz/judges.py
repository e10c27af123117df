"""What judges answers: numbers, names and functions, and the graph a, b, c, d, e that the first lessons ask about."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch


class Found(NamedTuple):
    """What is to be said about an answer: a key of the words, and what fills its ``{detail}``."""

    name: str
    detail: str = ""


Judge = Callable[[Any], Found]
Grad = torch.Tensor
Grads = dict[str, float]


# The picture of the first lessons


def double(grad: Grad) -> Grad:
    return grad * 2


def add_two(grad: Grad) -> Grad:
    return grad + 2


def times_hundred_in_place(grad: Grad) -> None:
    grad *= 100


def gradients(
    hooks: Mapping[str, Sequence[Callable[[Grad], Any]]], seed: float = 1.0, join: Callable[..., Any] = torch.mul
) -> Grads:
    """The gradients of a to e, the lessons' picture, with ``hooks`` (tensor's name → hooks) on it."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    tensors = {"a": a, "b": b, "c": c, "d": d, "e": join(c, d)}
    for name, functions in hooks.items():
        for function in functions:
            tensors[name].register_hook(function)
    for tensor in tensors.values():
        tensor.retain_grad()
    torch.autograd.backward(tensors["e"], torch.tensor(seed))
    return {name: float("nan") if tensor.grad is None else tensor.grad.item() for name, tensor in tensors.items()}


# Numbers and names


def number(right: Callable[[], float], wrong: Mapping[float, str]) -> Judge:
    """Judges a number: ``right`` runs torch to find what it should be, ``wrong`` names the usual mistakes."""

    def judge(answer: Any) -> Found:
        try:
            given = float(answer)
        except Exception:  # a number is whatever float() takes; what it raises is anybody's choice
            return Found("number")
        return Found("right" if given == right() else wrong.get(given, "other"))

    return judge


def names_in(answer: Any) -> set[str] | None:
    """The names of a to e in ``"a, b"``, ``"A.grad"``, ``["a", "b"]`` or ``{"a"}``; None for anything else."""
    if isinstance(answer, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in answer):
        answer = " ".join(answer)
    if not isinstance(answer, str):
        return None
    words = set(re.findall(r"\w+", answer.lower().replace(".grad", ""))) - {"and"}
    return words if words and words <= set("abcde") else None


# Functions


def tried(function: Any, *given: Any) -> tuple[Any, str]:
    """What ``function`` returns for ``given``, and what it raises, if it does."""
    try:
        return function(*given), ""
    except (Exception, SystemExit) as error:  # whatever a learner's function raises
        return None, f"{type(error).__name__}: {error}"


def hook_fault(hook: Any, grad: Grad) -> Found | None:
    """What makes ``hook`` a hook that one should not register, whatever it computes."""
    if not callable(hook):
        return Found("function")
    kept = grad.clone()
    result, error = tried(hook, grad)
    if error:
        return Found("raised", error)
    if not torch.equal(grad, kept):
        return Found("in_place")
    if result is None:
        return Found("nothing")
    if not isinstance(result, torch.Tensor) or result.shape != grad.shape:
        return Found("shape")
    return None
