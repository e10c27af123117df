"""Judge answers that are numbers, names or functions; compute gradients of the graph a to e of the first lessons."""

import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from hookviz.analysis.questions.grading import read_numbers


class Feedback(NamedTuple):
    """Feedback about an answer: the name of its text, and what to insert for ``{detail}`` and ``{of}``."""

    name: str
    detail: str = ""
    reference: str = ""
    credit: float = 0.0
    """The score of an answer that is partly right."""


CREDIT_FOR_ROUNDED = 0.5
"""The score of a number that is right up to rounding where the exercise asks for all digits."""

Judge = Callable[[Any], Feedback]
Grad = torch.Tensor


# The graph of the first lessons


def make_leaf(number: float) -> torch.Tensor:
    """Make a leaf tensor without dimensions."""
    return torch.tensor(number, requires_grad=True)


def double(grad: Grad) -> Grad:
    return grad * 2


def add_two(grad: Grad) -> Grad:
    return grad + 2


def times_hundred_in_place(grad: Grad) -> None:
    grad *= 100


def lesson_gradients(
    hooks: Mapping[str, Sequence[Callable[[Grad], Any]]], seed: float = 1.0, join: Callable[..., Any] = torch.mul
) -> dict[str, float]:
    """Compute the gradients of a to e in the lessons' graph, with ``hooks`` (name of a tensor → its hooks)."""
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


def judge_number(right: Callable[[], float], wrong: Mapping[float, str]) -> Judge:
    """Make a judge of numbers: ``right`` computes the answer with torch, ``wrong`` maps mistakes to feedback."""

    def judge(answer: Any) -> Feedback:
        given, expected = as_float(answer), right()
        if given is None:
            return Feedback("number")
        if given == expected:
            return Feedback("right")
        is_rounded = not (given.is_integer() and float(expected).is_integer())
        if given not in wrong and is_rounded and math.isclose(given, expected, rel_tol=0.01):
            return Feedback("close", credit=CREDIT_FOR_ROUNDED)
        return Feedback(wrong.get(given, "other"))

    return judge


def ignore_rounding(judge: Judge) -> Judge:
    """Make a judge that rounds the number to six digits first: it may come from a tensor with rounding errors."""

    def judge_rounded(answer: Any) -> Feedback:
        given = as_float(answer)
        return judge(answer if given is None else round(given, 6))

    return judge_rounded


def judge_letters(right: str, rules: Mapping[str, Sequence[str]]) -> Judge:
    """Make a judge of an order, given as letters.

    ``rules`` maps the feedback for a usual mistake to pairs of letters, one of which is in the wrong order then.
    """

    def judge(answer: Any) -> Feedback:
        text = "".join(map(str, answer)) if isinstance(answer, (list, tuple)) else answer
        letters = "".join(re.findall(r"\w", text)).upper() if isinstance(text, str) else ""
        if sorted(letters) != sorted(right):
            return Feedback("letters")
        for name, pairs in rules.items():
            if any(letters.index(pair[0]) > letters.index(pair[1]) for pair in pairs):
                return Feedback(name)
        return Feedback("right" if letters == right else "other")

    return judge


def judge_word(words: Mapping[str, str]) -> Judge:
    """Make a judge of a word: ``words`` maps each of the possible ones to its feedback.

    ``"layer.weight.grad"`` is read as ``weight``.
    """

    def judge(answer: Any) -> Feedback:
        text = answer.strip().lower() if isinstance(answer, str) else ""
        return Feedback(words.get(text.removeprefix("layer.").removesuffix(".grad"), "form"))

    return judge


def read_names(answer: Any, known: Set[str]) -> set[str]:
    """Read known names from ``"a, b"``, ``"A.grad"``, ``["a", "b"]`` or ``{"a"}``; empty for any other answer."""
    if isinstance(answer, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in answer):
        answer = " ".join(answer)
    words = set(re.findall(r"\w+", answer.lower().replace(".grad", ""))) - {"and"} if isinstance(answer, str) else set()
    return words if words <= known else set()


# Functions


def call_safely(function: Any, *given: Any) -> tuple[Any, str]:
    """Call ``function``; return its result and the text of what it raised, or ``""``."""
    try:
        return function(*given), ""
    except (Exception, SystemExit) as error:  # the learner's function may raise anything
        return None, f"{type(error).__name__}: {error}"


class EndlessLoopError(Exception):
    """A learner's function has run more lines than it may."""


def limit_lines(function: Any, limit: int) -> Any:
    """Wrap a learner's function: it raises EndlessLoopError when it has run ``limit`` lines of its own file.

    A loop that never ends would stop the notebook at the check. What has no Python code is not limited.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return function

    def limited(*given: Any) -> Any:
        lines = 0

        def count_line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal lines
            lines += event == "line"
            if lines > limit:
                raise EndlessLoopError(f"not finished after {limit} lines")
            return count_line

        def enter(frame: FrameType, event: str, argument: Any) -> Any:
            return count_line if frame.f_code.co_filename == code.co_filename else None

        before = sys.gettrace()
        sys.settrace(enter)
        try:
            return function(*given)
        finally:
            sys.settrace(before)

    return limited


def check_callable(answer: Any) -> Feedback | None:
    """Feedback if ``answer`` is not callable: a name in quotes, a handle, the result of a call, or another value."""
    if callable(answer):
        return None
    if isinstance(answer, str):
        return Feedback("function_text")
    if isinstance(answer, RemovableHandle):
        return Feedback("function_handle")
    kind = "tensor" if isinstance(answer, torch.Tensor) else type(answer).__name__
    return Feedback("function_result", kind)


def call_function(function: Any, *given: Any) -> tuple[Any, Feedback | None]:
    """Call what may be a function; return (result, feedback if it is none or raises)."""
    if fault := check_callable(function):
        return None, fault
    result, error = call_safely(function, *given)
    return result, Feedback("raised", error) if error else None


def call_answer(function: Any, *given: Any) -> tuple[Any, Feedback | None]:
    """Call the learner's function; return (result, feedback if it raises, returns None or changes its arguments)."""
    copies = [tensor.clone() for tensor in list_tensors(given)]
    result, fault = call_function(function, *given)
    if fault:
        return None, fault
    if not all(map(torch.equal, list_tensors(given), copies)):
        return None, Feedback("in_place")
    return result, Feedback("nothing") if result is None else None


def check_parameters(function: Any, *given: Any) -> Feedback | None:
    """Feedback if ``function`` cannot be called with as many arguments as ``given``."""
    _, error = call_safely(lambda: inspect.signature(function).bind(*given))
    return Feedback("parameters") if callable(function) and error.startswith("TypeError") else None


def call_hook(hook: Any, *given: Any) -> tuple[Any, Feedback | None]:
    """As ``call_answer``, for a hook: there is feedback also if it takes another number of arguments."""
    fault = check_parameters(hook, *given)
    return (None, fault) if fault else call_answer(hook, *given)


def call_backward_hook(hook: Any, *given: Any) -> tuple[Any, Feedback | None]:
    """Call a full backward hook; return (its tuple, feedback if that cannot replace ``grad_input``)."""
    result, fault = call_hook(hook, *given)
    if fault:
        return None, fault
    if not isinstance(result, tuple):
        return None, Feedback("bare")
    return result, Feedback("both") if result and isinstance(result[0], tuple) else None


def has_forward_hook(module: nn.Module) -> bool:
    """Return whether a module itself, without those inside it, has a forward hook or a forward pre-hook."""
    return bool(module._forward_pre_hooks or module._forward_hooks)


def list_tensors(value: Any) -> list[torch.Tensor]:
    """List the tensors in ``value``: a tensor, or nested tuples and dicts."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return [tensor for item in items for tensor in list_tensors(item)]


def check_tensor_hook(hook: Any, grad: Grad) -> Feedback | None:
    """Feedback if ``hook`` fails as a tensor hook for ``grad``: it raises, or returns no tensor of that shape."""
    result, fault = call_answer(hook, grad)
    return fault or (None if is_comparable(result, grad) else Feedback("shape"))


def is_comparable(result: Any, tensor: torch.Tensor) -> bool:
    """Whether ``result`` is a tensor that can be compared with ``tensor`` elementwise."""
    is_similar = isinstance(result, torch.Tensor) and (result.device, result.layout) == (tensor.device, tensor.layout)
    return is_similar and result.shape == tensor.shape and not result.is_complex()


def are_close(result: Any, expected: torch.Tensor) -> bool:
    """Whether ``result`` is a tensor with the numbers of ``expected``, rounding apart."""
    return is_comparable(result, expected) and torch.allclose(result.to(expected.dtype), expected, rtol=1e-4, atol=1e-5)


def describe_shape(value: Any) -> str:
    """The shape of a tensor; of anything else its type."""
    return str(tuple(value.shape)) if isinstance(value, torch.Tensor) else type(value).__name__


def as_float(value: Any) -> float | None:
    """Convert ``value`` to a number, also a text, tensor or array with exactly one; None if that is impossible."""
    if isinstance(value, str):
        numbers = read_numbers(value)
        return numbers[0] if numbers and len(numbers) == 1 else None
    number: float | None = call_safely(lambda: float(value.item() if hasattr(value, "item") else value))[0]
    return number
