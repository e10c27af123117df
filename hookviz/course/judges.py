"""What judges answers: numbers, names and functions, and the graph a, b, c, d, e that the first lessons ask about."""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.analysis.questions.grading import read_numbers


class Found(NamedTuple):
    """What is to be said about an answer: a key of the words, and what fills its ``{detail}`` and ``{of}``."""

    name: str
    detail: str = ""
    of: str = ""


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
        given, wanted = float_of(answer), right()
        if given is None:
            return Found("number")
        rounded_off = math.isclose(given, wanted, rel_tol=0.01)
        return Found("right" if given == wanted else wrong.get(given, "close" if rounded_off else "other"))

    return judge


def rounded(judge: Judge) -> Judge:
    """Judges a number that may have come out of a tensor, with its last digits."""

    def judged(answer: Any) -> Found:
        given = float_of(answer)
        return judge(answer if given is None else round(given, 6))

    return judged


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


def no_function(answer: Any) -> Found | None:
    """That ``answer`` is no function: a name in quotes, what a call returned, a handle of a hook, or something else."""
    if callable(answer):
        return None
    if isinstance(answer, str):
        return Found("function_text")
    if isinstance(answer, RemovableHandle):
        return Found("function_handle")
    kind = "tensor" if isinstance(answer, torch.Tensor) else type(answer).__name__
    return Found("function_result", kind)


def result_of(function: Any, *given: Any) -> tuple[Any, Found | None]:
    """What ``function`` returns for ``given``, or why nobody should register it, whatever it computes."""
    if fault := no_function(function):
        return None, fault
    kept = [tensor.clone() for tensor in tensors_in(given)]
    result, error = tried(function, *given)
    if error:
        return None, Found("raised", error)
    if not all(map(torch.equal, tensors_in(given), kept)):
        return None, Found("in_place")
    return result, Found("nothing") if result is None else None


def misfit(function: Any, *given: Any) -> Found | None:
    """That ``function`` has other parameters than a hook that is given these things."""
    _, error = tried(lambda: inspect.signature(function).bind(*given))
    return Found("parameters") if callable(function) and error.startswith("TypeError") else None


def grad_input_of(hook: Any, *given: Any) -> tuple[Any, Found | None]:
    """The tuple that a full backward hook returns for ``given``, or why it is none for a ``grad_input``."""
    result, fault = result_of(hook, *given)
    if fault := misfit(hook, *given) or fault:
        return None, fault
    if not isinstance(result, tuple):
        return None, Found("bare")
    return result, Found("both") if result and isinstance(result[0], tuple) else None


def tensors_in(things: Any) -> list[torch.Tensor]:
    """The tensors among ``things`` and in their tuples and dicts."""
    if isinstance(things, torch.Tensor):
        return [things]
    inside = things.values() if isinstance(things, dict) else things if isinstance(things, tuple) else ()
    return [tensor for thing in inside for tensor in tensors_in(thing)]


def hook_fault(hook: Any, grad: Grad) -> Found | None:
    """What makes ``hook`` a tensor hook that one should not register, whatever it computes."""
    result, fault = result_of(hook, grad)
    return fault or (None if as_large(result, grad) else Found("shape"))


def as_large(result: Any, tensor: torch.Tensor) -> bool:
    """Whether ``result`` is a tensor of the same shape, which can be compared number by number."""
    plain = isinstance(result, torch.Tensor) and (result.device, result.layout) == (tensor.device, tensor.layout)
    return plain and result.shape == tensor.shape and not result.is_complex()


def float_of(thing: Any) -> float | None:
    """``thing`` as a number, also out of a text, tensor or array that holds one; None where it is no single one."""
    if isinstance(thing, str):
        numbers = read_numbers(thing)
        return numbers[0] if numbers and len(numbers) == 1 else None
    found: float | None = tried(lambda: float(thing.item() if hasattr(thing, "item") else thing))[0]
    return found
