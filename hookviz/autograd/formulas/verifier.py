"""Verify formulas: compute them from recorded values, and compare the results with recorded gradients."""

from collections.abc import Mapping
from typing import Any

import torch

from hookviz.analysis.formulas.derivatives import names_of, parse_formula
from hookviz.analysis.formulas.evaluation import Evaluator, Missing, NotRecorded
from hookviz.autograd.formulas.bounded_values import BoundedValue, as_bounded, magnitude, rounding_error
from hookviz.autograd.formulas.functions import FUNCTIONS
from hookviz.autograd.torch_internals import DisableTorchFunction, disable_dispatch_modes
from hookviz.trace.notes import Note
from hookviz.trace.values import Value

ROUNDING_FACTOR = 4
"""The allowed difference in units of the formula's own rounding error: torch may round at other points than the formula
does, since its kernels fuse operations."""


def verify_formula(formula: str, names: Mapping[str, Any], recorded: Any) -> list[Note] | None:
    """Compute ``formula`` from the values of its names, and compare the result with a recorded gradient.

    Grad mode, autocast, and the user's function and dispatch modes do not see the computation.

    Returns:
        Notes on how the engine makes ``recorded`` of the result; None if the two do not match.

    Raises:
        Missing: a value was not recorded, or a step would give too many numbers.
        Exception: torch cannot compute with these values; a file may hold any values.
    """
    with torch.no_grad(), DisableTorchFunction(), disable_dispatch_modes(), torch.autocast("cpu", enabled=False):
        goal = rebuild(recorded)
        if isinstance(goal, NotRecorded):
            raise Missing(goal.why)
        values = {name: rebuild(names[name]) for name in names_of(formula) if name in names}
        result = Evaluator(values, FUNCTIONS).value(parse_formula(formula))
        return match_recorded(as_bounded(result), goal.tensor)


def rebuild(recorded: Any) -> Any:
    """Make an exact tensor on the CPU of a recorded value, in its dtype; return anything else unchanged.

    A value whose numbers were not recorded, or of which torch makes no tensor, becomes a ``NotRecorded``.

    >>> rebuild(Value.of(torch.tensor([1.0, 2.0]))).value
    tensor([1., 2.])
    """
    if isinstance(recorded, list):
        return [rebuild(item) for item in recorded]
    if not isinstance(recorded, Value):
        return recorded
    if recorded.note is not None or recorded.tolist() is None:
        return NotRecorded("large" if recorded.note is None else "hidden")
    try:
        numbers = torch.tensor(recorded.tolist(), dtype=_dtype(recorded.dtype), device="cpu")
    except (RuntimeError, TypeError):  # torch makes no tensor of some dtypes, and may lack a dtype of another release
        return NotRecorded("hidden")
    return BoundedValue(numbers if numbers.shape == recorded.shape else numbers.reshape(recorded.shape))


def _dtype(name: str) -> torch.dtype:
    """Return the dtype of torch with this name.

    Raises:
        TypeError: torch has no such dtype.
    """
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(name)
    return dtype


def match_recorded(result: BoundedValue, recorded: torch.Tensor) -> list[Note] | None:
    """Notes on how the engine makes ``recorded`` of ``result``; None if the two do not match.

    The engine takes the real part of a gradient for a real tensor, sums over broadcast dimensions, and casts. Beyond
    that, the two may differ by rounding only.
    """
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
        return notes
    error = torch.as_tensor(result.error)
    if summed:
        error = (error + rounding_error(value)).expand(value.shape).sum_to_size(recorded.shape)
    return notes if _is_near(total, error, recorded) else None


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
