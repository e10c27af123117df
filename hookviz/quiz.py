"""Checking an answer to a lesson's exercise: right, or why not, in the lesson's terms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

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


Judge = Callable[[Any], str]
"""Takes an answer, returns ``right`` or the name of what is wrong with it."""


def check(exercise: str, answer: Any) -> Verdict:
    """Whether ``answer`` answers ``exercise``, and if not, why not.

    Args:
        exercise: its number in the lesson, such as ``"02.1"``.
        answer: a number, a name or a function, as the exercise asks.

    Raises:
        ValueError: there is no such exercise.

    >>> check("01.1", "b")
    Exercise 01.1, not yet: The gradient of b is a × d, and a is in it. Ask of each leaf: what is it multiplied by?
    """
    if exercise not in _JUDGES:
        raise ValueError(say("error.check.unknown", exercise=exercise, known=", ".join(sorted(_JUDGES))))
    found = "none" if answer is None or answer is ... else _JUDGES[exercise](answer)
    shared = found in ("none", "number", "name", "function")
    key = f"check.{found}" if shared else f"check.{exercise}.{found}"
    return Verdict(exercise, found == "right", say(key))


def _number(right: Callable[[], float], wrong: Mapping[float, str]) -> Judge:
    """Judges a number: ``right`` runs torch to find what it should be, ``wrong`` names the usual mistakes."""

    def judge(answer: Any) -> str:
        try:
            given = float(answer)
        except (TypeError, ValueError, RuntimeError):
            return "number"
        if given == right():
            return "right"
        return wrong.get(given, "other")

    return judge


def _leaf_name(answer: Any) -> str:
    name = answer.strip().strip("'\"").removesuffix(".grad") if isinstance(answer, str) else ""
    if name not in ("a", "b", "c", "d", "e"):
        return "name"
    return "right" if name == "a" else name


def _leaves() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    return a, b, d


def _square() -> float:
    """The gradient of c in ``(c * c).backward()``, where c is 6."""
    a, b, _ = _leaves()
    c = a * b
    c.retain_grad()
    (c * c).backward()  # type: ignore[no-untyped-call]
    assert c.grad is not None
    return c.grad.item()


def _seeded() -> float:
    """The gradient of a in ``e.backward(torch.tensor(10.0))``."""
    a, b, d = _leaves()
    (a * b * d).backward(torch.tensor(10.0))  # type: ignore[no-untyped-call]
    assert a.grad is not None
    return a.grad.item()


def _two_hooks() -> float:
    """The gradient of c after ``grad + 2`` and then ``grad * 3``."""
    a, b, d = _leaves()
    c = a * b
    c.register_hook(lambda grad: grad + 2)  # type: ignore[no-untyped-call]
    c.register_hook(lambda grad: grad * 3)  # type: ignore[no-untyped-call]
    c.retain_grad()
    (c * d).backward()  # type: ignore[no-untyped-call]
    assert c.grad is not None
    return c.grad.item()


def _clipping(answer: Any) -> str:
    """Run the learner's hook on a gradient with small, large and negative numbers in it."""
    if not callable(answer):
        return "function"
    seen = torch.tensor([0.5, 2.0, 10.0, -0.5, -10.0])
    kept, wanted = seen.clone(), seen.clamp(-3.0, 3.0)
    try:
        result = answer(seen)
    except Exception:  # whatever a learner's function raises
        return "raised"
    if not torch.equal(seen, kept):
        return "in_place"
    if result is None:
        return "nothing"
    if not isinstance(result, torch.Tensor) or result.shape != seen.shape:
        return "shape"
    if torch.equal(result, wanted):
        return "right"
    return "one_side" if torch.equal(result, seen.clamp(max=3.0)) else "other"


_JUDGES: dict[str, Judge] = {
    "01.1": _leaf_name,
    "01.2": _number(_square, {6.0: "one_edge", 36.0: "value", 1.0: "seed", 2.0: "two"}),
    "01.3": _number(_seeded, {12.0: "without", 22.0: "added", 10.0: "seed"}),
    "02.1": _clipping,
    "02.2": _number(_two_hooks, {14.0: "order", 6.0: "first", 12.0: "second", 4.0: "none_ran"}),
}
