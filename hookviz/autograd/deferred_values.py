"""Values that stay on their device until a pass is over, since to fetch each by itself would make the device wait."""

import math
from functools import partial
from typing import Any

import torch

from hookviz.trace.value_rows import DeferredRow, get_stored_rows

Head = tuple[tuple[int, ...], str, str]
"""(shape, dtype, device)"""


def fetch_all(values: list[Any], start: int) -> None:
    """Fill in the rows from ``start`` on that are still on a device: one transfer for each kind of number."""
    kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for index, row in enumerate(get_stored_rows(values, start), start):
        if type(row) is DeferredRow:
            kinds.setdefault((row.numbers.device, row.numbers.dtype), []).append(index)
    for indexes in kinds.values():
        numbers = torch.cat([values[index].numbers for index in indexes]).tolist()
        for index in indexes:
            row = values[index]
            own, numbers = numbers[: len(row.numbers)], numbers[len(row.numbers) :]
            values[index] = row.finish(own)


def defer_values(head: Head, tensor: torch.Tensor) -> DeferredRow:
    """All numbers of ``tensor``, later; a copy, since the tensor may change."""
    return DeferredRow(tensor.detach().resolve_conj().resolve_neg().flatten().clone(), partial(_all, head))


def _all(head: Head, numbers: list[Any]) -> tuple[Any, ...]:
    return (*head, _nested(numbers, head[0]), None, None)


def _nested(numbers: list[Any], shape: tuple[int, ...]) -> Any:
    """As ``torch.Tensor.tolist`` nests them."""
    if len(shape) < 2:
        return numbers if shape else numbers[0]
    size = len(numbers) // max(shape[0], 1)
    return [_nested(numbers[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]


def parts_of(tensor: torch.Tensor) -> torch.Tensor:
    """The real and the imaginary parts of complex numbers, of which torch finds the norm sixty times as fast."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def defer_statistics(head: Head, tensor: torch.Tensor, share: int) -> DeferredRow:
    """The statistics of ``tensor``, later; nothing here may depend on what they are."""
    if tensor.is_complex():
        return _many_complex(head, tensor, share)
    # What costs is how many kernels are started, here nine: each writes float64 straight into its place.
    numbers = torch.empty(7, dtype=torch.float64, device=tensor.device)
    total, norm, low, high, nonzero, strange, nan = numbers.unbind()
    wide = tensor.to(torch.float64, copy=True)
    torch.sum(wide, (), out=total)
    torch.linalg.vector_norm(wide, out=norm)
    torch.aminmax(wide, out=(low, high))
    torch.linalg.vector_norm(wide, 0, out=nonzero)
    torch.linalg.vector_norm(wide.sub_(wide), 0, out=strange)  # 0, or NaN where the number is NaN or infinite
    torch.linalg.vector_norm(torch.ne(tensor, tensor, out=wide), 0, out=nan)
    return DeferredRow(numbers, partial(_statistics, head, tensor.numel(), share))


def _many_complex(head: Head, tensor: torch.Tensor, share: int) -> DeferredRow:
    counts = [tensor.isnan().sum(), tensor.isinf().sum(), tensor.count_nonzero()]
    norm = torch.linalg.vector_norm(parts_of(tensor), dtype=torch.float64)
    numbers = torch.stack([number.to(torch.float64) for number in (norm, *counts)])
    return DeferredRow(numbers, partial(_complex_statistics, head, tensor.numel(), share))


def defer_norm(head: Head, tensor: torch.Tensor, share: int) -> DeferredRow:
    """The norm of ``tensor``, later, and whether it holds NaN or Inf, as far as that tells."""
    parts = parts_of(tensor)
    numbers = torch.empty(2 if parts.dtype is torch.float64 else 1, dtype=torch.float64, device=tensor.device)
    torch.linalg.vector_norm(parts, dtype=torch.float64, out=numbers[0])
    if len(numbers) > 1:  # squares of such numbers may be too large for float64
        torch.linalg.vector_norm(parts, math.inf, out=numbers[1])
    return DeferredRow(numbers, partial(_norm_alone, head, share))


def _statistics(head: Head, count: int, share: int, numbers: list[float]) -> tuple[Any, ...]:
    total, norm, low, high, nonzero, strange, nan = numbers
    counts = (int(nan) * share, int(strange - nan) * share, (count - int(nonzero)) * share)
    return (*head, None, (low, high, total / count, norm * math.sqrt(share), *counts), None)


def _complex_statistics(head: Head, count: int, share: int, numbers: list[float]) -> tuple[Any, ...]:
    norm, nan, inf, nonzero = numbers
    counts = (int(nan) * share, int(inf) * share, (count - int(nonzero)) * share)
    return (*head, None, (math.nan, math.nan, math.nan, norm * math.sqrt(share), *counts), None)


def _norm_alone(head: Head, share: int, numbers: list[float]) -> tuple[Any, ...]:
    """How many are NaN or infinite nobody counted, where some are: the norm is NaN or Inf then."""
    norm, largest = numbers[0], numbers[-1]
    nan = None if math.isnan(norm) else 0
    inf = 0 if math.isfinite(largest) else None
    return (*head, None, (None, None, None, norm * math.sqrt(share), nan, inf, None), None)
