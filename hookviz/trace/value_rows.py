"""What a trace keeps of a tensor, as plain data: its numbers when few, else statistics."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

MAX_KEPT_NUMBERS = 64
"""Up to this many numbers are kept one by one; beyond it, statistics only."""

ValueRow = tuple[Any, ...]
"""What a trace keeps of a value: (shape, dtype, device, numbers, statistics, note), plain data."""

Statistics = tuple[float | None, float | None, float | None, float, int | None, int | None, int | None]
"""(min, max, mean, norm, nan, inf, zero); None for what was not read."""

StatisticsMode = Literal["all", "norm"]
"""Which statistics are read of many numbers: all, or the norm alone where it is finite (see ``record``)."""

RowFactory = Callable[[list[Any]], ValueRow]
"""Makes a row of the numbers that came from a device."""


class DeferredRow:
    """A row whose numbers are still in a tensor on a device; to look into it waits for them."""

    __slots__ = ("finish", "numbers")

    def __init__(self, numbers: Any, finish: RowFactory) -> None:
        self.numbers, self.finish = numbers, finish

    def __iter__(self) -> Iterator[Any]:
        return iter(self.finish(self.numbers.tolist()))

    def reshaped(self, shape: tuple[int, ...]) -> "DeferredRow":
        """The same statistics for a tensor that shows the same numbers in another shape."""
        return DeferredRow(self.numbers, lambda numbers: (shape, *self.finish(numbers)[1:]))


def get_stored_rows(values: list[Any], start: int) -> list[Any]:
    """The rows from ``start`` on; those that are folded stay so."""
    return list.__getitem__(values, slice(start, None))
