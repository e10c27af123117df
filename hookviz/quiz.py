"""Checking an answer to a lesson's question: right, or why not, in the lesson's terms."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import torch

from hookviz.words import say


@dataclass(frozen=True)
class Verdict:
    """What ``check`` found."""

    exercise: str
    right: bool
    reason: str
    """Why, in a sentence or two; it never gives the answer away."""

    def __repr__(self) -> str:
        return say("check.right" if self.right else "check.wrong", exercise=self.exercise, reason=self.reason)

    def _repr_html_(self) -> str:
        color = "#15803d" if self.right else "#b45309"
        return f'<p style="border-left: 4px solid {color}; padding-left: 0.6em">{escape(repr(self))}</p>'


class Found(NamedTuple):
    """What is to be said about an answer: a key of the words, and what fills its ``{detail}``."""

    name: str
    detail: str = ""


Judge = Callable[[Any], Found]
Grads = dict[str, float]
Grad = torch.Tensor

SHARED = ("none", "number", "name", "names", "function", "raised", "in_place", "nothing", "shape")
"""What can be said about answers to several exercises."""


def check(exercise: str, answer: Any) -> Verdict:
    """Whether ``answer`` answers ``exercise``, and if not, why not.

    Args:
        exercise: its number in the lesson, such as ``"02.1"``.
        answer: a number, a name or a function, as the exercise asks; None for no answer yet.

    Raises:
        ValueError: there is no such exercise.

    >>> check("02.1", 8)
    Exercise 02.1, not yet: That is what arrives at c. Two hooks of c then work on it, before it is kept.
    """
    if exercise not in _JUDGES:
        raise ValueError(say("error.check.unknown", exercise=exercise, known=", ".join(_JUDGES)))
    with torch.enable_grad():
        found = Found("none") if answer is None or answer is ... else _JUDGES[exercise](answer)
    key = f"check.{found.name}" if found.name in SHARED else f"check.{exercise}.{found.name}"
    return Verdict(exercise, found.name == "right", say(key, detail=found.detail))


# What PyTorch makes of it, today and here


def _double(grad: Grad) -> Grad:
    return grad * 2


def _add_two(grad: Grad) -> Grad:
    return grad + 2


def _times_hundred_in_place(grad: Grad) -> None:
    grad *= 100


def _grads(
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


def _hooked(*, c_hook: bool) -> Grads:
    """The picture of lesson 02, with ``c_hook`` or after it was removed."""
    return _grads({"c": [_add_two] if c_hook else [], "e": [_double]})


def _square(passes: int = 1) -> float:
    """``x.grad`` of ``x * x``, where x is 3, after so many passes."""
    x = torch.tensor(3.0, requires_grad=True)
    for _ in range(passes):
        torch.autograd.backward(x * x)
    assert x.grad is not None
    return x.grad.item()


def _diamond() -> float:
    """How often a hook fires on a tensor that is used twice."""
    fired: list[Grad] = []
    s = torch.tensor(3.0, requires_grad=True)
    t = s * 2
    t.register_hook(fired.append)  # type: ignore[no-untyped-call]
    torch.autograd.backward(t * 5 + t * 7)
    return float(len(fired))


# Judges of numbers and names


def _number(right: Callable[[], float], wrong: Mapping[float, str]) -> Judge:
    """Judges a number: ``right`` runs torch to find what it should be, ``wrong`` names the usual mistakes."""

    def judge(answer: Any) -> Found:
        try:
            given = float(answer)
        except Exception:  # a number is whatever float() takes; what it raises is anybody's choice
            return Found("number")
        return Found("right" if given == right() else wrong.get(given, "other"))

    return judge


def _names(answer: Any) -> set[str] | None:
    """The names of a to e in ``"a, b"``, ``"A.grad"``, ``["a", "b"]`` or ``{"a"}``; None for anything else."""
    if isinstance(answer, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in answer):
        answer = " ".join(answer)
    if not isinstance(answer, str):
        return None
    words = set(re.findall(r"\w+", answer.lower().replace(".grad", ""))) - {"and"}
    return words if words and words <= set("abcde") else None


def _unmoved_leaf(answer: Any) -> Found:
    names = _names(answer)
    if names is None or len(names) > 1:
        return Found("name")
    name = names.pop()
    return Found("right" if name == "a" else name)


def _changed(answer: Any) -> Found:
    """Which gradients differ once ``c_hook`` is removed."""
    names = _names(answer)
    if names is None:
        return Found("names")
    with_hook, without = _hooked(c_hook=True), _hooked(c_hook=False)
    changed = {name for name in with_hook if with_hook[name] != without[name]}
    if names == changed:
        return Found("right")
    if names - changed:
        return Found(max(names - changed))  # e before d: it is nearer to where backward begins
    return Found("only_c" if names == {"c"} else "not_c" if "c" not in names else "one_leaf")


# Judges of functions


def _tried(function: Any, *given: Any) -> tuple[Any, str]:
    """What ``function`` returns for ``given``, and what it raises, if it does."""
    try:
        return function(*given), ""
    except (Exception, SystemExit) as error:  # whatever a learner's function raises
        return None, f"{type(error).__name__}: {error}"


def _hook_fault(hook: Any, grad: Grad) -> Found | None:
    """What makes ``hook`` a hook that one should not register, whatever it computes."""
    if not callable(hook):
        return Found("function")
    kept = grad.clone()
    result, error = _tried(hook, grad)
    if error:
        return Found("raised", error)
    if not torch.equal(grad, kept):
        return Found("in_place")
    if result is None:
        return Found("nothing")
    if not isinstance(result, torch.Tensor) or result.shape != grad.shape:
        return Found("shape")
    return None


def _forty(answer: Any) -> Found:
    """Register the learner's hook on c, where 8 arrives, and look at ``c.grad``."""
    fault = _hook_fault(answer, torch.tensor(8.0))
    if fault:
        return fault
    grads, error = _tried(_grads, {"c": [answer], "e": [_double]})
    without_e, error_too = _tried(_grads, {"c": [answer]})
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
    fault = _hook_fault(answer, seen.clone())
    if fault:
        return fault
    result, error = _tried(answer, seen.clone())
    if error:
        return Found("raised", error)
    for bounds, name in (((-3, 3), "right"), ((None, 3), "one_side"), ((-3, None), "one_side"), ((0, 3), "positive")):
        if torch.equal(result, seen.clamp(*bounds)):
            return Found(name)
    return Found("other")


def _program(answer: Any) -> Found:
    """Run the learner's program on a and b, then backward, and look at both gradients."""
    if not callable(answer):
        return Found("function")
    a, b = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0))
    result, error = _tried(answer, a, b)
    if error:
        return Found("raised", error)
    if not isinstance(result, torch.Tensor):
        return Found("no_tensor")
    if not result.requires_grad:
        return Found("no_history")
    if result.numel() != 1:
        return Found("many")
    _, error = _tried(torch.autograd.backward, result)
    return Found("raised", error) if error else _two_gradients(a.grad, b.grad)


def _two_gradients(of_a: Grad | None, of_b: Grad | None) -> Found:
    if of_a is None or of_b is None:
        return Found("unused", "a" if of_a is None else "b")
    grads = (of_a.item(), of_b.item())
    if grads in ((7, 2), (3, 2)):
        return Found("right" if grads[0] == 7 else "one_way")
    return Found("b", f"{grads[1]:g}") if grads[0] == 7 else Found("a", f"{grads[0]:g}")


_JUDGES: dict[str, Judge] = {
    "01.1": _number(
        lambda: _grads({})["a"],
        {3: "one_node", 4: "at_c", 7: "added", 8: "b", 6: "d", 24: "value", 1: "seed"},
    ),
    "01.2": _number(lambda: _grads({}, seed=10)["d"], {6: "without", 16: "added", 10: "seed", 40: "c", 240: "value"}),
    "01.3": _number(_square, {3: "one_edge", 9: "value", 2: "count", 1: "seed"}),
    "01.4": _unmoved_leaf,
    "01.5": _number(lambda: _square(3), {6: "overwritten", 12: "two_passes", 216: "multiplied", 9: "value"}),
    "01.6": _program,
    "02.1": _number(
        lambda: _hooked(c_hook=True)["c"], {4: "no_hooks", 8: "before", 6: "without_e", 12: "late_e", 112: "d"}
    ),
    "02.2": _number(lambda: _hooked(c_hook=False)["a"], {30: "still_on", 12: "all_removed", 16: "b", 8: "c"}),
    "02.3": _number(_diamond, {2: "twice", 0: "never", 3: "three"}),
    "02.4": _number(
        lambda: _grads({"d": [_times_hundred_in_place]}, join=torch.add)["c"],
        {1: "alone", 4: "product", 400: "product", 0: "zero"},
    ),
    "02.5": _forty,
    "02.6": _clipping,
    "02.7": _changed,
}
