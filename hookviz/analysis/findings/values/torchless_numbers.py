"""Work with the numbers of recorded tensors without torch: largest numbers, broadcasting, rows that a mask hides."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from hookviz.support.messages import join_first
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
"""Dtype → its largest number, ``torch.finfo(dtype).max``."""


def largest_number(dtype: str) -> float:
    """The largest number of a floating-point dtype; Inf for any other dtype.

    >>> largest_number("float16"), largest_number("int64")
    (65504.0, inf)
    """
    return LARGEST.get(dtype, math.inf)


def broadcast_pairs(one: Value | None, other: Value | None) -> Iterator[tuple[float, float]]:
    """The pairs of numbers that an element-wise op combines after broadcasting; none if any is unknown or complex.

    >>> column = Value((2, 1), "float32", "cpu", [[3.0], [4.0]])
    >>> list(broadcast_pairs(Value((2,), "float32", "cpu", [1.0, 2.0]), column))
    [(1.0, 3.0), (2.0, 3.0), (1.0, 4.0), (2.0, 4.0)]
    """
    if one is None or other is None or not (_is_real(one) and _is_real(other)):
        return
    shape = _broadcast_shape(one.shape, other.shape)
    if shape is not None:
        numbers = (_broadcast_numbers(value.tolist(), value.shape, shape) for value in (one, other))
        yield from zip(*numbers, strict=True)


def rows_along(value: Value, dim: float | None) -> list[list[float]]:
    """The rows of a tensor along dimension ``dim``, as lists of numbers; none if the numbers are unknown or complex.

    >>> rows_along(Value((2, 2), "float32", "cpu", [[1.0, 2.0], [3.0, 4.0]]), 0)
    [[1.0, 3.0], [2.0, 4.0]]
    """
    count = len(value.shape)
    if dim is None or not -count <= dim < count or 0 in value.shape or not _is_real(value):
        return []
    return _collect_rows(value.tolist(), count, int(dim) % count)


def _is_real(value: Value) -> bool:
    """Whether the numbers of a tensor are known and not complex."""
    numbers = value.tolist()
    return numbers is not None and not any(isinstance(x, complex) for x in flatten_numbers(numbers))


def _broadcast_shape(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...] | None:
    """The shape to which two shapes broadcast; None if they do not broadcast."""
    count = max(len(one), len(other))
    sizes = list(zip(*((1,) * (count - len(shape)) + tuple(shape) for shape in (one, other)), strict=True))
    do_fit = all(a == b or 1 in (a, b) for a, b in sizes)
    return tuple(b if a == 1 else a for a, b in sizes) if do_fit else None


def _broadcast_numbers(numbers: NestedNumbers, shape: Sequence[int], into: Sequence[int]) -> Iterator[float]:
    """The numbers of a tensor of shape ``shape`` after broadcasting to shape ``into``, in row-major order."""
    if not into:
        yield float(numbers)
    elif len(shape) < len(into):
        for _ in range(into[0]):
            yield from _broadcast_numbers(numbers, shape, into[1:])
    else:
        for index in range(into[0]):
            yield from _broadcast_numbers(numbers[0 if shape[0] == 1 else index], shape[1:], into[1:])


def _collect_rows(numbers: NestedNumbers, count: int, dim: int) -> list[list[float]]:
    """Same as ``rows_along``, for nested lists with ``count`` levels."""
    if dim:
        return [row for part in numbers for row in _collect_rows(part, count - 1, dim - 1)]
    if count == 1:
        return [numbers]
    return [list(row) for row in zip(*(flatten_numbers(part) for part in numbers), strict=True)]


# -- rows that a mask hides


def list_hidden_rows(numbers: Any) -> list[int | tuple[int, ...]]:
    """List the rows, along the last dimension, that hold nothing but True or -Inf: a number, or one for each dimension.

    >>> list_hidden_rows([[True, False], [True, True]]), list_hidden_rows([[[False], [True]]])
    ([1], [(0, 1)])
    """
    return [place[0] if len(place) == 1 else place for place in _find_hidden(numbers)]


def _find_hidden(row: Any) -> Iterator[tuple[int, ...]]:
    if isinstance(row, list) and row and isinstance(row[0], list):
        yield from ((index, *place) for index, part in enumerate(row) for place in _find_hidden(part))
    elif isinstance(row, list) and row and all(one is True or one == -math.inf for one in flatten_numbers(row)):
        yield ()


def format_rows(rows: Sequence[int | tuple[int, ...]]) -> str:
    """Name some rows or columns, the first of many."""
    return join_first(list(map(str, rows)))
