"""Values that stay on their device until a pass is over: fetching each one by itself would make the device wait."""

import math
from functools import partial
from typing import Any

import torch

from hookviz.support.groups import group
from hookviz.trace.value_rows import DeferredRow, get_stored_rows

Header = tuple[tuple[int, ...], str, str]
"""(shape, dtype, device)"""


def fetch_all(values: list[Any], start: int) -> None:
    """Fetch the deferred rows from ``start`` on and fill them in, with one transfer per device and dtype."""
    rows = enumerate(get_stored_rows(values, start), start)
    kinds = group(((row.numbers.device, row.numbers.dtype), i) for i, row in rows if type(row) is DeferredRow)
    for indexes in kinds.values():
        numbers = torch.cat([values[index].numbers for index in indexes]).tolist()
        for index in indexes:
            row = values[index]
            own, numbers = numbers[: len(row.numbers)], numbers[len(row.numbers) :]
            values[index] = row.finish(own)


def defer_values(header: Header, tensor: torch.Tensor) -> DeferredRow:
    """Defer reading all numbers of ``tensor``. Copies them, since the tensor may change."""
    return DeferredRow(tensor.detach().resolve_conj().resolve_neg().flatten().clone(), partial(_finish_values, header))


def _finish_values(header: Header, numbers: list[Any]) -> tuple[Any, ...]:
    return (*header, _nest(numbers, header[0]), None, None)


def _nest(numbers: list[Any], shape: tuple[int, ...]) -> Any:
    """Nest flat ``numbers`` into lists of this shape, as ``torch.Tensor.tolist`` does."""
    if len(shape) < 2:
        return numbers if shape else numbers[0]
    size = len(numbers) // max(shape[0], 1)
    return [_nest(numbers[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """View complex numbers as pairs of real ones: torch computes the norm of those sixty times as fast."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def defer_statistics(header: Header, tensor: torch.Tensor, repeats: int) -> DeferredRow:
    """Defer the statistics of ``tensor``: start computing them on its device. No branch here may depend on a result."""
    if tensor.is_complex():
        return _defer_complex_statistics(header, tensor, repeats)
    # The cost is the number of kernel launches, here nine: each kernel writes its result straight into ``numbers``.
    numbers = torch.empty(7, dtype=torch.float64, device=tensor.device)
    total, norm, low, high, nonzero, nonfinite, nan = numbers.unbind()
    wide = tensor.to(torch.float64, copy=True)
    torch.sum(wide, (), out=total)
    torch.linalg.vector_norm(wide, out=norm)
    torch.aminmax(wide, out=(low, high))
    torch.linalg.vector_norm(wide, 0, out=nonzero)
    torch.linalg.vector_norm(wide.sub_(wide), 0, out=nonfinite)  # x - x: 0, or NaN if x is NaN or infinite
    torch.linalg.vector_norm(torch.ne(tensor, tensor, out=wide), 0, out=nan)
    return DeferredRow(numbers, partial(_finish_statistics, header, tensor.numel(), repeats))


def _defer_complex_statistics(header: Header, tensor: torch.Tensor, repeats: int) -> DeferredRow:
    counts = [tensor.isnan().sum(), tensor.isinf().sum(), tensor.count_nonzero()]
    norm = torch.linalg.vector_norm(as_real(tensor), dtype=torch.float64)
    numbers = torch.stack([number.to(torch.float64) for number in (norm, *counts)])
    return DeferredRow(numbers, partial(_finish_complex_statistics, header, tensor.numel(), repeats))


def defer_norm(header: Header, tensor: torch.Tensor, repeats: int) -> DeferredRow:
    """Defer the norm of ``tensor``, from which follows whether it may hold NaN or Inf."""
    real = as_real(tensor)
    numbers = torch.empty(2 if real.dtype is torch.float64 else 1, dtype=torch.float64, device=tensor.device)
    torch.linalg.vector_norm(real, dtype=torch.float64, out=numbers[0])
    if len(numbers) > 1:  # the square of a float64 may overflow, so finiteness needs the largest number, too
        torch.linalg.vector_norm(real, math.inf, out=numbers[1])
    return DeferredRow(numbers, partial(_finish_norm, header, repeats))


def _finish_statistics(header: Header, count: int, repeats: int, numbers: list[float]) -> tuple[Any, ...]:
    total, norm, low, high, nonzero, nonfinite, nan = numbers
    counts = (int(nan) * repeats, int(nonfinite - nan) * repeats, (count - int(nonzero)) * repeats)
    return (*header, None, (low, high, total / count, norm * math.sqrt(repeats), *counts), None)


def _finish_complex_statistics(header: Header, count: int, repeats: int, numbers: list[float]) -> tuple[Any, ...]:
    norm, nan, inf, nonzero = numbers
    counts = (int(nan) * repeats, int(inf) * repeats, (count - int(nonzero)) * repeats)
    return (*header, None, (math.nan, math.nan, math.nan, norm * math.sqrt(repeats), *counts), None)


def _finish_norm(header: Header, repeats: int, numbers: list[float]) -> tuple[Any, ...]:
    """Make the row of a tensor with its norm alone; a count is None where the norm shows that there are NaN or Inf."""
    norm, largest = numbers[0], numbers[-1]
    nan = None if math.isnan(norm) else 0
    inf = 0 if math.isfinite(largest) else None
    return (*header, None, (None, None, None, norm * math.sqrt(repeats), nan, inf, None), None)
