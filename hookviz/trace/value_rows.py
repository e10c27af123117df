"""What a trace keeps of a tensor, as plain data: all numbers of a small tensor, the statistics of a large one."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from hookviz.trace.columns import AtMost, Between
from hookviz.trace.notes import Note

MAX_KEPT_NUMBERS = 64
"""A tensor with more numbers than this is kept as statistics only."""

MAX_DIMENSIONS = 128
"""The most dimensions of a tensor; most operations of torch allow only 64."""

Shape = Annotated[tuple[Annotated[int, Between(0, 2**63 - 1)], ...], AtMost(MAX_DIMENSIONS)]

Statistics = tuple[float | None, float | None, float | None, float, int | None, int | None, int | None]
"""(min, max, mean, norm, nan, inf, zero); None for a statistic that was not read."""

ValueRow = tuple[Shape, str, str, Any, Statistics | None, Note | None]
"""(shape, dtype, device, numbers, statistics, note) of a tensor; the numbers are lists, nested by the dimensions."""

VERY_LARGE = 2**20
"""Of a tensor with more numbers than this, only the norm is read as long as it is finite, unless the user chose."""
VERY_MANY = 50_000
"""With more values than this in a trace, only the norm of large tensors is read, unless the user chose."""

StatisticsMode = Literal["all", "norm"]
"""Which statistics are read of a large tensor: all, or only the norm as long as it is finite (see ``record``)."""

RowFactory = Callable[[list[Any]], ValueRow]
"""A function that makes a row of the numbers that were read from a device."""


class DeferredRow:
    """A row whose numbers are still in a tensor on a device; iterating over it waits for the device."""

    __slots__ = ("finish", "numbers")

    def __init__(self, numbers: Any, finish: RowFactory) -> None:
        self.numbers, self.finish = numbers, finish

    def __iter__(self) -> Iterator[Any]:
        return iter(self.finish(self.numbers.tolist()))

    def reshaped(self, shape: tuple[int, ...]) -> "DeferredRow":
        """Return a deferred row with another shape: that of a view, which shares the numbers and statistics."""
        return DeferredRow(self.numbers, lambda numbers: (shape, *self.finish(numbers)[1:]))


def get_stored_rows(rows: list[Any], start: int) -> list[Any]:
    """Return the rows from ``start`` on as they are stored, without expanding compact rows."""
    return list.__getitem__(rows, slice(start, None))
