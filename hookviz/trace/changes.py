"""Says what a hook did to a tensor, as far as the numbers or statistics that were kept prove it."""

import math
from collections.abc import Sequence
from typing import Any

from hookviz.support.messages import N_, _
from hookviz.trace.values import Value, flatten_numbers, format_number

_FACTOR_DIGITS = 6
"""To how many digits numbers in float32 have to have the same factor."""
MAX_NAMED = 4
"""A sentence names at most this many ranges of rows."""
_ONE_ROW = N_("All {count} rows are now what row {row}, counted from 0, was.")


def describe_change(before: Value, after: Value) -> str:
    """Say in a sentence what became of a tensor; empty if nothing is proven.

    >>> import torch
    >>> grad = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> describe_change(Value.of(grad), Value.of(grad * -0.5))
    'Each number was multiplied by -0.5.'
    >>> describe_change(Value.of(grad), Value.of(grad * torch.tensor([[1.0], [0.0], [0.0]])))
    'Rows 1–2 of 3, counted from 0, are 0 now; the others are as they were.'
    >>> describe_change(Value.of(grad), Value.of(grad[:1].expand(3, 2)))
    'All 3 rows are now what row 0, counted from 0, was.'
    >>> describe_change(Value.of(grad), Value.of(grad.mean(0, keepdim=True).expand(3, 2) * 2))
    'All 3 rows are the same now.'
    """
    if before.shape != after.shape or before.note or after.note:
        return ""
    if before.tolist() is None or after.tolist() is None:
        return _describe_statistics(before, after)
    if before == after:
        return _("All numbers are the same as before.")
    old, new = list_finite(before), list_finite(after)
    if old is None or new is None:
        return ""
    factor = _find_exact_factor(old, new)
    if factor is not None:
        return _("Each number was multiplied by {factor}.").format(factor=format_number(factor, _FACTOR_DIGITS))
    return _describe_rows(before.tolist(), after.tolist()) if len(before.shape) > 1 else ""


def list_finite(value: Value) -> list[float] | None:
    """List the numbers of a value; None if one of them is complex, infinite or NaN."""
    numbers = [number.real for number in flatten_numbers(value.tolist()) if not isinstance(number, complex)]
    is_whole = len(numbers) == math.prod(value.shape)
    return numbers if is_whole and all(map(math.isfinite, numbers)) else None


def find_factor(before: Value, after: Value) -> float | None:
    """Return what each number of a tensor was multiplied by, as far as numbers or statistics prove it."""
    if before.shape != after.shape or before.note or after.note:
        return None
    if before.tolist() is None or after.tolist() is None:
        return _find_factor_of_statistics(before, after)
    old, new = list_finite(before), list_finite(after)
    return None if old is None or new is None else _find_exact_factor(old, new)


def _find_exact_factor(old: Sequence[float], new: Sequence[float]) -> float | None:
    """Return what each number was multiplied by; None if there is no such factor, or two numbers do not show it."""
    largest = max(range(len(old)), key=lambda index: abs(old[index]), default=None)
    if largest is None or len({abs(number) for number in old if number}) < 2:
        return None
    factor = new[largest] / old[largest]
    is_factor = all(
        math.isclose(number * factor, result, rel_tol=10**-_FACTOR_DIGITS, abs_tol=1e-30)
        for number, result in zip(old, new, strict=True)
    )
    return factor if is_factor and factor not in (0, 1) else None


def _describe_rows(old: Any, new: Any) -> str:
    """Say which rows, along the first dimension, are 0 now or changed, if others are as they were.

    If one row took the place of all, say which.
    """
    is_one_row = len(new) > 1 and all(row == new[0] for row in new) and any(row != old[0] for row in old)
    if is_one_row and any(flatten_numbers(new[0])):
        source = next((index for index, row in enumerate(old) if row == new[0]), None)
        text = N_("All {count} rows are the same now.") if source is None else _ONE_ROW
        return _(text).format(count=len(new), row=source)
    changed = [index for index, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]
    if not changed or len(changed) == len(old):
        return ""
    names = {"rows": format_ranges(changed), "count": len(old)}
    if all(not any(flatten_numbers(new[index])) for index in changed):
        return _("Rows {rows} of {count}, counted from 0, are 0 now; the others are as they were.").format(**names)
    return _("Rows {rows} of {count}, counted from 0, changed; the others are as they were.").format(**names)


def format_ranges(numbers: Sequence[int]) -> str:
    """Write numbers in order as ranges.

    >>> format_ranges([0, 2, 3, 4]), format_ranges([1, 3, 5, 7, 9])
    ('0, 2–4', '1, 3, 5, 7, …')
    """
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    pairs = zip(starts[:MAX_NAMED], ends[:MAX_NAMED], strict=True)
    text = ", ".join(str(start) if start == end else f"{start}–{end}" for start, end in pairs)
    return f"{text}, …" if len(starts) > MAX_NAMED else text


def _describe_statistics(before: Value, after: Value) -> str:
    factor = _find_factor_of_statistics(before, after)
    text = _("Its minimum, maximum, mean and norm were all multiplied by {factor}.")
    return "" if factor is None else text.format(factor=format_number(factor, 4))


def _find_factor_of_statistics(before: Value, after: Value) -> float | None:
    """Return the factor that minimum, maximum, mean and norm of a large tensor share."""
    old = [float(number) for number in before.statistics[:4] if number is not None]
    new = [float(number) for number in after.statistics[:4] if number is not None]
    if len(old) < 4 or len(new) < 4 or not all(map(math.isfinite, (*old, *new))) or not old[3] or old[0] == old[1]:
        return None
    low, high, mean, norm = old
    factor = new[3] / norm
    for sign, expected in ((1, [low, high, mean, norm]), (-1, [-high, -low, -mean, norm])):
        pairs = zip(expected, new, strict=True)
        is_factor = all(math.isclose(one * factor, other, rel_tol=1e-4, abs_tol=norm * 1e-7) for one, other in pairs)
        if is_factor and factor and not math.isclose(sign * factor, 1, rel_tol=1e-4):
            return sign * factor
    return None
