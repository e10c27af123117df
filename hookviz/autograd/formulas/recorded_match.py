"""Decide whether the result of a formula matches a recorded gradient, up to rounding."""

from typing import Any

import torch

from hookviz.analysis.formulas.evaluation import NotRecorded
from hookviz.autograd.formulas.bounded_values import BoundedValue, as_bounded, magnitude, rounding_error
from hookviz.trace.notes import Note
from hookviz.trace.values import Value

ROUNDING_FACTOR = 4
"""The allowed difference in units of the formula's own rounding error: torch may round at other points than the formula
does, since its kernels fuse operations."""


def rebuild(recorded: Any) -> Any:
    """Make an exact tensor on the CPU of a recorded value, in its dtype; return anything else unchanged.

    >>> rebuild(Value.of(torch.tensor([1.0, 2.0]))).value
    tensor([1., 2.])
    """
    if isinstance(recorded, list):
        return [rebuild(item) for item in recorded]
    if not isinstance(recorded, Value):
        return recorded
    try:
        numbers = torch.tensor(recorded.tolist(), dtype=_dtype(recorded.dtype), device="cpu")
    except (RuntimeError, TypeError):  # torch makes no tensor of some dtypes, and may lack a dtype of another release
        return NotRecorded("hidden")
    return BoundedValue(numbers if numbers.shape == recorded.shape else numbers.reshape(recorded.shape), 0.0)


def _dtype(name: str) -> torch.dtype:
    """Return the dtype of torch with this name.

    Raises:
        TypeError: torch has no such dtype.
    """
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(name)
    return dtype


def match_recorded(computed: Any, recorded: torch.Tensor) -> tuple[Note, ...] | None:
    """Notes on how the engine makes ``recorded`` of ``computed``; None if the two do not match.

    The engine takes the real part of a gradient for a real tensor, sums over broadcast dimensions, and casts. Beyond
    that, the two may differ by rounding only.
    """
    result = as_bounded(computed)
    value, notes, summed = result.tensor, list[Note](), False
    if value.is_complex() and not recorded.is_complex():
        value, notes = value.real, [Note.of("why.real")]
    if not isinstance(result.value, torch.Tensor):
        value = value.expand(recorded.shape)
    elif value.shape != recorded.shape:
        dims = summed_dimensions(tuple(value.shape), tuple(recorded.shape))
        if dims is None:
            return None
        notes.append(Note.of("why.summed", dims=", ".join(map(str, dims))))
        summed = True
    total = value.sum_to_size(recorded.shape) if summed else value
    if torch.equal(total.to(recorded.dtype), recorded):  # mostly: no need for the error
        return tuple(notes)
    error = torch.as_tensor(result.error)
    if summed:
        error = (error + rounding_error(value)).expand(value.shape).sum_to_size(recorded.shape)
    return tuple(notes) if _is_near(total, error, recorded) else None


def _is_near(value: torch.Tensor, error: torch.Tensor, recorded: torch.Tensor) -> bool:
    """Whether ``value`` and ``recorded`` differ by rounding only; NaN equals NaN."""
    limits = torch.finfo(recorded.dtype)
    # A value without dimensions may stem from a Python number: torch computes with it in the dtype of the tensors.
    error = error * max(1.0, limits.eps / torch.finfo(value.dtype).eps)
    value = value.to(recorded.dtype)
    allowed = ROUNDING_FACTOR * (error + limits.smallest_normal * limits.eps)
    is_near = (value == recorded) | (value.isnan() & recorded.isnan()) | (magnitude(value - recorded) <= allowed)
    return bool(is_near.all())


def summed_dimensions(shape: tuple[int, ...], into: tuple[int, ...]) -> list[int] | None:
    """The dimensions over which to sum ``shape`` to get ``into``; None if that is impossible.

    >>> summed_dimensions((2, 3), (3,)), summed_dimensions((2, 3), (2, 1)), summed_dimensions((2,), (3,))
    ([0], [1], None)
    """
    extra = len(shape) - len(into)
    padded = (1,) * extra + into
    if extra < 0 or any(have != want != 1 for have, want in zip(shape, padded, strict=True)):
        return None
    return [i for i, (have, want) in enumerate(zip(shape, padded, strict=True)) if i < extra or have != want]
