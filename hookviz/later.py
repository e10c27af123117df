"""Values that stay on their device until a pass is over, since to fetch each by itself would make the device wait."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

Finish = Callable[[list[Any]], tuple[Any, ...]]
Head = tuple[tuple[int, ...], str, str]
"""(shape, dtype, device)"""


class Later:
    """A row of a trace whose numbers are still on a device; to look into it waits for them."""

    __slots__ = ("finish", "numbers")

    def __init__(self, numbers: torch.Tensor, finish: Finish) -> None:
        self.numbers, self.finish = numbers, finish

    def __iter__(self) -> Iterator[Any]:
        return iter(self.finish(self.numbers.tolist()))

    def reshaped(self, shape: tuple[int, ...]) -> "Later":
        """The same statistics for a tensor that shows the same numbers in another shape."""
        return Later(self.numbers, lambda numbers: (shape, *self.finish(numbers)[1:]))


def as_kept(values: list[Any], start: int) -> list[Any]:
    """The rows from ``start`` on; those that are folded stay so."""
    return list.__getitem__(values, slice(start, None))


def bring_over(values: list[Any], start: int) -> None:
    """Fill in the rows from ``start`` on that are still on a device: one transfer for each kind of number."""
    kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for index, row in enumerate(as_kept(values, start), start):
        if type(row) is Later:
            kinds.setdefault((row.numbers.device, row.numbers.dtype), []).append(index)
    for indexes in kinds.values():
        numbers = torch.cat([values[index].numbers for index in indexes]).tolist()
        for index in indexes:
            row = values[index]
            own, numbers = numbers[: len(row.numbers)], numbers[len(row.numbers) :]
            values[index] = row.finish(own)


def few(head: Head, tensor: torch.Tensor) -> Later:
    """All numbers of ``tensor``, later; a copy, since the tensor may change."""
    return Later(tensor.detach().resolve_conj().resolve_neg().flatten().clone(), partial(_all, head))


def _all(head: Head, numbers: list[Any]) -> tuple[Any, ...]:
    return (*head, _nested(numbers, head[0]), None, None)


def _nested(numbers: list[Any], shape: tuple[int, ...]) -> Any:
    """As ``torch.Tensor.tolist`` nests them."""
    if len(shape) < 2:
        return numbers if shape else numbers[0]
    size = len(numbers) // max(shape[0], 1)
    return [_nested(numbers[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]


def complex_norm(tensor: torch.Tensor) -> torch.Tensor:
    """The 2-norm of complex numbers: that of their parts, which torch reads sixty times as fast.

    >>> complex_norm(torch.tensor([3 + 4j, 0j])).item()
    5.0
    """
    parts = torch.view_as_real(tensor.resolve_conj())
    norm: torch.Tensor = torch.linalg.vector_norm(parts, dtype=torch.float32 if parts.dtype is torch.float16 else None)
    return norm


def many(head: Head, tensor: torch.Tensor, share: int, wide: torch.dtype) -> Later:
    """The statistics of ``tensor``, later; nothing here may depend on what they are."""
    counts = [tensor.isnan().sum(), tensor.isinf().sum(), tensor.count_nonzero()]
    if tensor.is_complex():
        found = [complex_norm(tensor), *counts]
        finish: Finish = partial(_complex_statistics, head, tensor.numel(), share)
    else:
        sums = [tensor.sum(dtype=dtype) for dtype in (wide, torch.float64)]
        norms = [torch.linalg.vector_norm(tensor, dtype=dtype) for dtype in (wide, torch.float64)]
        found = [tensor.amin(), tensor.amax(), *sums, *norms, *counts]
        finish = partial(_statistics, head, tensor.numel(), share)
    return Later(torch.stack([number.to(torch.float64) for number in found]), finish)


def _statistics(head: Head, count: int, share: int, numbers: list[float]) -> tuple[Any, ...]:
    low, high, total, wide_total, norm, wide_norm, nan, inf, nonzero = numbers
    bounded = math.isfinite(low) and math.isfinite(high)
    if bounded and not (math.isfinite(total) and math.isfinite(norm)):
        total, norm = wide_total, wide_norm  # the sum overflowed, not the tensor
    zero = 0 if low > 0 or high < 0 else count - int(nonzero)
    counts = (int(nan) * share, int(inf) * share, zero * share)
    return (*head, None, (low, high, total / count, norm * math.sqrt(share), *counts), None)


def _complex_statistics(head: Head, count: int, share: int, numbers: list[float]) -> tuple[Any, ...]:
    norm, nan, inf, nonzero = numbers
    counts = (int(nan) * share, int(inf) * share, (count - int(nonzero)) * share)
    return (*head, None, (math.nan, math.nan, math.nan, norm * math.sqrt(share), *counts), None)
