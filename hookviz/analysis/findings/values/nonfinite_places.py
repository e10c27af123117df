"""Say which numbers of a tensor are NaN or Inf: the rows and columns of a small one, and how many of a large one."""

import math
from collections.abc import Iterator

from hookviz.support.messages import _, join_first
from hookviz.trace.values import Value, get_norm_nan_inf

_MAX_NAMED = 4
_TABLE = 2
"""The dimensions of a table with rows and columns."""


def locate_nonfinite(value: Value) -> Iterator[str]:
    """Yield the sentence on where a tensor holds NaN or Inf, if it does."""
    _norm, nan, inf = get_norm_nan_inf(value.row)
    if nan + inf == 0:
        return
    numbers, total = value.tolist(), math.prod(value.shape)
    if numbers is None or len(value.shape) != _TABLE:
        yield _("{count} of its {total} numbers are NaN or Inf.").format(count=f"{nan + inf:,}", total=f"{total:,}")
        return
    bad = [
        (row, column) for row, cells in enumerate(numbers) for column, cell in enumerate(cells) if not _is_finite(cell)
    ]
    rows, columns = (sorted({place[dim] for place in bad}) for dim in (0, 1))
    text = _("They are in row {rows} and column {columns}, counted from 0.")
    yield text.format(rows=_list_first(rows), columns=_list_first(columns))


def _is_finite(number: complex) -> bool:
    return math.isfinite(abs(number))


def _list_first(numbers: list[int]) -> str:
    return join_first(list(map(str, numbers)), _MAX_NAMED)
