"""Whether a formula comes to the gradient that was recorded, and how close that has to be."""

from typing import Any

import torch

from hookviz.analysis.formulas.evaluation import NotRecorded
from hookviz.autograd.formulas.bounded_values import BoundedValue, rounded, size_of, term
from hookviz.trace.notes import Note
from hookviz.trace.values import Value

ROUNDINGS = 4
"""Torch may round elsewhere than the formula does, as its kernels take several operations at once: so many times what
rounding can do to the formula itself is allowed between the two."""


def rebuilt(thing: Any) -> Any:
    """A recorded value as an exact term, in the dtype that it had, on the CPU; anything else as it is.

    >>> rebuilt(Value.of(torch.tensor([1.0, 2.0]))).value
    tensor([1., 2.])
    """
    if isinstance(thing, list):
        return [rebuilt(part) for part in thing]
    if not isinstance(thing, Value):
        return thing
    try:
        numbers = torch.tensor(thing.tolist(), dtype=_dtype(thing.dtype), device="cpu")
    except (RuntimeError, TypeError):  # of some dtypes torch makes no tensor, and a dtype of another release is unknown
        return NotRecorded("hidden")
    return BoundedValue(numbers if numbers.shape == thing.shape else numbers.reshape(thing.shape), 0.0)


def _dtype(name: str) -> torch.dtype:
    """The dtype that a value says it had; nothing else of torch goes by that name."""
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise TypeError(name)
    return found


def agrees(found: Any, recorded: torch.Tensor) -> tuple[Note, ...] | None:
    """Whether ``found``, made as the engine would make it, is ``recorded``: what was done to it, or None.

    The engine takes the real part of what goes to a real tensor, sums up what was broadcast, and casts. Beyond that
    no more than rounding may lie between the two.
    """
    reached = term(found)
    value, notes, summed = reached.tensor, list[Note](), False
    if value.is_complex() and not recorded.is_complex():
        value, notes = value.real, [Note.of("why.real")]
    if not isinstance(reached.value, torch.Tensor):
        value = value.expand(recorded.shape)
    elif value.shape != recorded.shape:
        dims = summed_over(tuple(value.shape), tuple(recorded.shape))
        if dims is None:
            return None
        notes.append(Note.of("why.summed", dims=", ".join(map(str, dims))))
        summed = True
    total = value.sum_to_size(recorded.shape) if summed else value
    if torch.equal(total.to(recorded.dtype), recorded):  # nearly always
        return tuple(notes)
    error = torch.as_tensor(reached.error)
    if summed:
        error = (error + rounded(value)).expand(value.shape).sum_to_size(recorded.shape)
    return tuple(notes) if _is_near(total, error, recorded) else None


def _is_near(value: torch.Tensor, error: torch.Tensor, recorded: torch.Tensor) -> bool:
    """Whether no more than rounding lies between the numbers of ``value`` and those recorded; NaN is like NaN."""
    limits = torch.finfo(recorded.dtype)
    # A number without dimensions may be a Python number, with which torch computes in the dtype of the others.
    error = error * max(1.0, limits.eps / torch.finfo(value.dtype).eps)
    value = value.to(recorded.dtype)
    allowed = ROUNDINGS * (error + limits.smallest_normal * limits.eps)
    alike = (value == recorded) | (value.isnan() & recorded.isnan()) | (size_of(value - recorded) <= allowed)
    return bool(alike.all())


def summed_over(shape: tuple[int, ...], into: tuple[int, ...]) -> list[int] | None:
    """The dimensions over which ``shape`` has to be summed to become ``into``; None where that is impossible.

    >>> summed_over((2, 3), (3,)), summed_over((2, 3), (2, 1)), summed_over((2,), (3,))
    ([0], [1], None)
    """
    more = len(shape) - len(into)
    padded = (1,) * more + into
    if more < 0 or any(have != want != 1 for have, want in zip(shape, padded, strict=True)):
        return None
    return [i for i, (have, want) in enumerate(zip(shape, padded, strict=True)) if i < more or have != want]
