"""A tensor in words, once it is measured."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hookviz.support.messages import join, say
from hookviz.trace.notes import Note
from hookviz.trace.value_rows import DeferredRow, Statistics, ValueRow

if TYPE_CHECKING:
    import torch

NestedNumbers = Any
"""A number, or lists of numbers nested as the tensor's dimensions are."""

_EMPTY_STATISTICS: Statistics = (math.nan, math.nan, math.nan, 0.0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Value:
    """What a tensor held at one moment.

    ``min``, ``max``, ``mean`` and ``norm`` (the 2-norm) are what torch gives: a NaN in the tensor makes them
    NaN, and ``nan``, ``inf`` and ``zero`` count how many numbers are so. Complex tensors have a norm, and NaN
    for the other three. None is what was not read (see ``record(statistics="norm")``): then ``nan`` is None only
    where ``norm`` is NaN, and ``inf`` only where it is NaN or infinite.

    >>> import torch
    >>> value = Value.of(torch.tensor([3.0, 0.0, -4.0]))
    >>> value.tolist(), value.norm, value.zero
    ([3.0, 0.0, -4.0], 5.0, 1)
    >>> Value.of(torch.ones(10, 10)).tolist() is None
    True
    """

    shape: tuple[int, ...]
    dtype: str
    device: str
    _numbers: NestedNumbers = None
    _statistics: Statistics | None = None
    _note: Note | None = None

    @classmethod
    def of(cls, tensor: "torch.Tensor") -> "Value":
        """Measure ``tensor`` now; later changes to it are not seen."""
        from hookviz.autograd.tensor_statistics import measure  # the one thing here that needs torch

        return cls(*measure(tensor))

    @property
    def note(self) -> str | None:
        """Why nothing more is known of the tensor (a sparse one, say), else None."""
        return None if self._note is None else self._note.text

    @property
    def row(self) -> ValueRow:
        """The value as plain data."""
        return (self.shape, self.dtype, self.device, self._numbers, self._statistics, self._note)

    def tolist(self) -> NestedNumbers:
        """The numbers, nested as ``torch.Tensor.tolist`` nests them; None when there are more than 64."""
        return self._numbers

    @property
    def statistics(self) -> Statistics:
        """(min, max, mean, norm, nan, inf, zero)."""
        if self._statistics is not None:
            return self._statistics
        return (
            _compute_statistics(list(flatten_numbers(self._numbers)))
            if self._note is None
            else (math.nan,) * 4 + (0, 0, 0)
        )

    @property
    def min(self) -> float | None:
        """The smallest number."""
        return self.statistics[0]

    @property
    def max(self) -> float | None:
        """The largest number."""
        return self.statistics[1]

    @property
    def mean(self) -> float | None:
        """The arithmetic mean."""
        return self.statistics[2]

    @property
    def norm(self) -> float:
        """The 2-norm: the root of the sum of squares."""
        return self.statistics[3]

    @property
    def nan(self) -> int | None:
        """How many numbers are NaN."""
        return self.statistics[4]

    @property
    def inf(self) -> int | None:
        """How many numbers are plus or minus infinity."""
        return self.statistics[5]

    @property
    def zero(self) -> int | None:
        """How many numbers are 0."""
        return self.statistics[6]

    def text(self, room: int = 24, *, shape: bool = True, digits: int = 6) -> str:
        """The value on one line: its numbers when they fit in ``room`` characters, else its shape and norm.

        >>> import torch
        >>> Value.of(torch.tensor(8.0)).text(), Value.of(torch.zeros(100)).text()
        ('8', '(100,) norm 0')
        """
        if self._note is not None:
            return self._note.text
        # A number takes a digit, a comma and a space at least: of many it need not be tried.
        line = self.line(digits) if math.prod(self.shape) <= room // 3 + 1 else None
        if line is not None and len(line) <= room:
            return line
        found = self.statistics
        norm = format_number(found[3], min(digits, 4))
        told = say("value.shape_norm", shape=self.shape, norm=norm) if shape else say("value.norm", norm=norm)
        return _append_nonfinite_counts(told, found)

    def line(self, digits: int = 6) -> str | None:
        """All numbers on one line; None when they were not kept."""
        return None if self._numbers is None else format_numbers(self._numbers, digits)

    def block(self) -> str:
        """The value on as many lines as it needs: a matrix row by row, or all statistics."""
        if self._note is not None:
            return say("value.hidden_block", note=self._note.text, shape=self.shape, dtype=self.dtype)
        if 0 in self.shape:
            return f"[]\n{self.shape} {self.dtype}"
        if self._numbers is not None:
            rows = _format_rows(self._numbers, len(self.shape))
            return rows if "\n" in rows else format_numbers(self._numbers)  # a single row needs its brackets
        low, high, mean, norm, *_, zero = found = self.statistics
        parts = {"shape": self.shape, "dtype": self.dtype, "norm": format_number(norm)}
        if low is None or high is None or mean is None:
            return _append_nonfinite_counts(say("value.long.norm", **parts), found)
        parts |= {"min": format_number(low), "max": format_number(high), "mean": format_number(mean)}
        return _append_nonfinite_counts(say("value.long", zero=zero, **parts), found)


def _append_nonfinite_counts(line: str, found: Statistics) -> str:
    """The line, and how many numbers are none or infinite."""
    counts = zip(found[4:6], ("NaN", "Inf"), strict=True)
    return join("join.facts", [line, *(f"{count} {name}" for count, name in counts if count)])


def is_same_value(one: ValueRow | None, other: ValueRow | None) -> bool:
    """Whether two values are alike, NaN being like NaN; of large tensors, whether their statistics are.

    >>> import torch
    >>> same(Value.of(torch.tensor(math.nan)).row, Value.of(torch.tensor(math.nan)).row)
    True
    """
    if isinstance(one, DeferredRow) or isinstance(other, DeferredRow):
        return True  # nobody can tell yet
    return one == other or repr(one) == repr(other)


def get_norm_nan_inf(value: ValueRow) -> tuple[float, int, int]:
    """The 2-norm of a row, and how many of its numbers are NaN and infinite: at least so many, if nobody counted.

    >>> import torch
    >>> size_of(Value.of(torch.tensor([3.0, -4.0])).row), size_of(Value.of(torch.tensor(-2.0)).row)
    ((5.0, 0, 0), (2.0, 0, 0))
    """
    numbers = value[3]
    if type(numbers) is float and math.isfinite(numbers):  # by far the most of a long chain
        return abs(numbers), 0, 0
    _, _, _, norm, nan, inf, _ = Value(*value).statistics
    return float(norm), norm != norm if nan is None else nan, norm == math.inf if inf is None else inf


def format_number(x: complex, digits: int = 6) -> str:
    """A number as a person writes it: six significant digits, no trailing zeros.

    >>> number(8.0), number(0.1 + 0.2), number(-1e-9)
    ('8', '0.3', '-1e-09')
    """
    if isinstance(x, complex):
        return f"{x.real:.{digits}g}{x.imag:+.{digits}g}i"
    return f"{x:.{digits}g}"


def format_numbers(numbers: NestedNumbers, digits: int = 6) -> str:
    """Nested numbers on one line.

    >>> nested([[1.0, 2.5], [3.0, 4.0]])
    '[[1, 2.5], [3, 4]]'
    """
    if isinstance(numbers, (list, tuple)):
        return "[" + ", ".join(format_numbers(part, digits) for part in numbers) + "]"
    return format_number(numbers, digits)


def _format_rows(numbers: NestedNumbers, dimensions: int) -> str:
    if dimensions < 2:
        return format_numbers(numbers)
    gap = "\n" * (dimensions - 1)
    return gap.join(_format_rows(part, dimensions - 1) for part in numbers)


def flatten_numbers(numbers: NestedNumbers) -> Iterator[complex]:
    """The numbers, out of all their lists.

    >>> list(flat([[1, 2], [3]]))
    [1, 2, 3]
    """
    if isinstance(numbers, (list, tuple)):
        for part in numbers:
            yield from flatten_numbers(part)
    else:
        yield numbers


def _compute_statistics(flat: Sequence[Any]) -> Statistics:
    """Statistics of few numbers, from the numbers, by torch's rule that a NaN spreads."""
    if not flat:
        return _EMPTY_STATISTICS
    parts = [part for x in flat for part in ((x.real, x.imag) if isinstance(x, complex) else (x,))]
    norm = math.nan if any(map(math.isnan, parts)) else math.hypot(*parts)
    finite = math.isfinite(norm)
    nan, inf = (0, 0) if finite else (sum(_any(test, x) for x in flat) for test in (math.isnan, math.isinf))
    zero = sum(x == 0 for x in flat)
    if nan or isinstance(flat[0], complex):
        return (math.nan, math.nan, math.nan, norm, nan, inf, zero)
    return (float(min(flat)), float(max(flat)), sum(flat) / len(flat), norm, nan, inf, zero)


def _any(test: Callable[[float], bool], x: complex) -> bool:
    return test(x.real) or test(x.imag)


Values = Value | tuple[Value | None, ...] | None
"""One gradient, or all the gradients of a node with several, None where torch passes none."""
