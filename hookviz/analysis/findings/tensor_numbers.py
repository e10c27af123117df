"""The numbers of recorded tensors, without torch: how large they can be, and which of them an op puts together."""

import math
from collections.abc import Iterator, Sequence

from hookviz.trace.values import NestedNumbers, Value, flatten_numbers

LARGEST = {
    "float64": 1.7976931348623157e308,
    "float32": 3.4028234663852886e38,
    "bfloat16": 3.3895313892515355e38,
    "float16": 65504.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e8m0fnu": 1.7014118346046923e38,
}
"""Dtype → its largest number, as ``torch.finfo`` has it."""


def largest(dtype: str) -> float:
    """The largest number of a dtype; Inf for what is not a floating-point one.

    >>> largest("float16"), largest("int64")
    (65504.0, inf)
    """
    return LARGEST.get(dtype, math.inf)


def broadcast_pairs(one: Value | None, other: Value | None) -> Iterator[tuple[float, float]]:
    """The numbers of two tensors that an op puts together, broadcast; none where they are not known, or complex.

    >>> column = Value((2, 1), "float32", "cpu", [[3.0], [4.0]])
    >>> list(broadcast_pairs(Value((2,), "float32", "cpu", [1.0, 2.0]), column))
    [(1.0, 3.0), (2.0, 3.0), (1.0, 4.0), (2.0, 4.0)]
    """
    if one is None or other is None or not (_is_real(one) and _is_real(other)):
        return
    shape = _broadcast(one.shape, other.shape)
    if shape is not None:
        yield from zip(
            _spread(one.tolist(), one.shape, shape), _spread(other.tolist(), other.shape, shape), strict=True
        )


def rows_along(value: Value, dim: float | None) -> list[list[float]]:
    """The numbers of a tensor along one of its dimensions, in lists; none where they are not known, or complex.

    >>> rows_along(Value((2, 2), "float32", "cpu", [[1.0, 2.0], [3.0, 4.0]]), 0)
    [[1.0, 3.0], [2.0, 4.0]]
    """
    count = len(value.shape)
    if dim is None or not -count <= dim < count or 0 in value.shape or not _is_real(value):
        return []
    return _along(value.tolist(), count, int(dim) % count)


def _is_real(value: Value) -> bool:
    """Whether the numbers of a tensor are known, and none of them is complex."""
    numbers = value.tolist()
    return numbers is not None and not any(isinstance(x, complex) for x in flatten_numbers(numbers))


def _broadcast(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...] | None:
    """The shape that two shapes are broadcast to; None where they do not fit together."""
    count = max(len(one), len(other))
    both = list(zip(*((1,) * (count - len(shape)) + tuple(shape) for shape in (one, other)), strict=True))
    fit = all(a == b or 1 in (a, b) for a, b in both)
    return tuple(b if a == 1 else a for a, b in both) if fit else None


def _spread(numbers: NestedNumbers, shape: Sequence[int], into: Sequence[int]) -> Iterator[float]:
    """The numbers of a tensor with this shape as they are in a tensor that it was broadcast to."""
    if not into:
        yield float(numbers)
    elif len(shape) < len(into):
        for _ in range(into[0]):
            yield from _spread(numbers, shape, into[1:])
    else:
        for index in range(into[0]):
            yield from _spread(numbers[0 if shape[0] == 1 else index], shape[1:], into[1:])


def _along(numbers: NestedNumbers, count: int, dim: int) -> list[list[float]]:
    """As ``rows_along``, of numbers in lists that are nested so deeply as ``count`` says."""
    if dim:
        return [row for part in numbers for row in _along(part, count - 1, dim - 1)]
    if count == 1:
        return [numbers]
    return [list(row) for row in zip(*(flatten_numbers(part) for part in numbers), strict=True)]
