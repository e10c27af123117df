"""How the numbers of a tensor are distributed: counts in bins whose limits are the same in every trace."""

import math
import struct
from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, get_args

from hookviz.trace.columns import Between, OneOf, Shows, StepIndex

HistogramSubject = Literal["gradients", "outputs", "weights"]
"""What the numbers are: of the gradient of a leaf as hooks left it, before it is added to ``.grad``; of the first
tensor that a module returned; of the leaf itself when its gradient arrived."""
SUBJECTS: tuple[HistogramSubject, ...] = get_args(HistogramSubject)

BIN_SHIFT = 21
"""A bin is the first 11 bits of a number as float32: its sign, its exponent, and two bits of the fraction. So there are
four bins from each power of 2 to the next."""
BIN_COUNT = 2 ** (32 - BIN_SHIFT)
_NEGATIVE = BIN_COUNT // 2
_SUBNORMAL = 4
"""The bins of what is 0 or too small for a normal float32."""


class HistogramRow(NamedTuple):
    """The numbers of one tensor in one pass, of which some are read if there are many."""

    step: StepIndex
    """The step that shows the tensor: a gradient is accumulated, a module returns."""
    of: Annotated[str, OneOf(SUBJECTS)]
    total: int
    """How many numbers the tensor has."""
    read: int
    """How many of them were read and are finite, evenly spaced over the tensor."""
    nonfinite: Annotated[int, Shows(("values",))]
    """How many more were read and are NaN or infinite."""
    mean: Annotated[float, Shows(("values",))]
    mean_abs: Annotated[float, Shows(("values",))]
    """The mean absolute value."""
    rms: Annotated[float, Shows(("values",))]
    """The root mean square."""
    bins: Annotated[tuple[Annotated[int, Between(0, BIN_COUNT - 1)], ...], Shows(("values",))]
    """The bins that are not empty, as ``bin_limits`` reads them."""
    counts: Annotated[tuple[int, ...], Shows(("values",))]
    """How many numbers are in each of these bins."""
    move: Annotated[float, Shows(("values",))] | None = None
    """The root mean square of how far the optimizer's step after the pass moved these numbers of a weight."""

    @property
    def std(self) -> float:
        """The standard deviation of all numbers that were read."""
        return math.sqrt(max(self.rms**2 - self.mean**2, 0))

    @property
    def zeros(self) -> float:
        """The share of the numbers that are 0, or too small for a normal float32."""
        count = sum(count for low, high, count in self.ranges() if low == high)
        return count / self.read if self.read else math.nan

    def ranges(self) -> Iterator[tuple[float, float, int]]:
        """Yield (lower limit, upper limit, how many numbers are between them); both limits are 0 for zeros."""
        for place, count in zip(self.bins, self.counts, strict=True):
            yield *bin_limits(place), count


def find_bin(number: float) -> int:
    """Return the bin of a number; what float32 cannot hold is counted with the largest that it can.

    >>> find_bin(1.3), find_bin(-1.3), bin_limits(find_bin(-1.3)), bin_limits(find_bin(0.0))
    (509, 1533, (-1.5, -1.25), (0.0, 0.0))
    """
    try:
        packed = struct.pack("<f", number)
    except OverflowError:
        return find_bin(math.copysign(3e38, number))
    bits: int = struct.unpack("<I", packed)[0]
    return bits >> BIN_SHIFT


def bin_limits(place: int) -> tuple[float, float]:
    """Return the limits of a bin, the lower one first; both are 0 for the bins of zeros."""
    size = place % _NEGATIVE
    if size < _SUBNORMAL:
        return 0.0, 0.0
    low, high = _limit(size), _limit(size + 1)
    return (low, high) if place < _NEGATIVE else (-high, -low)


def _limit(size: int) -> float:
    return math.ldexp(1 + size % 4 / 4, size // 4 - 127)
