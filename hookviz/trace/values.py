"""A measured tensor, and how its numbers are written as text."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hookviz.support.messages import _
from hookviz.trace.notes import Note
from hookviz.trace.value_rows import DeferredRow, Statistics, ValueRow

if TYPE_CHECKING:
    import torch

NestedNumbers = Any
"""A number, or lists of numbers nested by the dimensions of the tensor."""

_EMPTY_STATISTICS: Statistics = (math.nan, math.nan, math.nan, 0.0, 0, 0, 0)


@dataclass(frozen=True, slots=True, repr=False)
class Value:
    """The contents of a tensor at one moment: all numbers of a small tensor, the statistics of a large one.

    ``min``, ``max``, ``mean`` and ``norm`` (the 2-norm) are computed as torch does: a NaN in the tensor makes them NaN.
    ``nan``, ``inf`` and ``zero`` count the numbers that are NaN, infinite and 0. A complex tensor has a norm; its
    ``min``, ``max`` and ``mean`` are NaN. A statistic that was not read is None (see ``record(statistics="norm")``):
    ``nan`` only if ``norm`` is NaN, and ``inf`` only if ``norm`` is NaN or infinite.

    >>> import torch
    >>> value = Value.of(torch.tensor([3.0, 0.0, -4.0]))
    >>> value.tolist(), value.norm, value.zero
    ([3.0, 0.0, -4.0], 5.0, 1)
    >>> Value.of(torch.ones(10, 10)).tolist() is None
    True
    """

    shape: tuple[int, ...]
    """The sizes of the dimensions; ``()`` for a tensor with a single number and no dimension."""
    dtype: str
    """The type of the numbers, such as ``float32``."""
    device: str
    """Where the tensor was, such as ``cpu`` or ``cuda:0``."""
    _numbers: NestedNumbers = None
    _statistics: Statistics | None = None
    _note: Note | None = None

    @classmethod
    def of(cls, tensor: "torch.Tensor") -> "Value":
        """Measure ``tensor`` now; later changes to it have no effect on the value."""
        from hookviz.autograd.tensor_statistics import measure  # needs torch, which the rest of this module does not

        return cls(*measure(tensor))

    @property
    def note(self) -> str | None:
        """Why the tensor has no numbers and statistics (a sparse tensor, for example), else None."""
        return None if self._note is None else self._note.text

    @property
    def row(self) -> ValueRow:
        """The value as a row of plain data, as a trace keeps it."""
        return (self.shape, self.dtype, self.device, self._numbers, self._statistics, self._note)

    def tolist(self) -> NestedNumbers:
        """Return the numbers, nested as by ``torch.Tensor.tolist``; None if there are more than 64."""
        return self._numbers

    @property
    def statistics(self) -> Statistics:
        """(min, max, mean, norm, nan, inf, zero); computed from the numbers if these were kept."""
        if self._statistics is not None:
            return self._statistics
        if self._note is not None:
            return (math.nan,) * 4 + (0, 0, 0)
        return _compute_statistics(list(flatten_numbers(self._numbers)))

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
        """Return the value on one line: its numbers if they fit in ``room`` characters, else its shape and norm.

        >>> import torch
        >>> Value.of(torch.tensor(8.0)).text(), Value.of(torch.zeros(100)).text()
        ('8', '(100,) norm 0')
        """
        if self._note is not None:
            return self._note.text
        # A number takes at least three characters (digit, comma, space), so more numbers than this cannot fit.
        line = self.line(digits) if math.prod(self.shape) <= room // 3 + 1 else None
        if line is not None and len(line) <= room:
            return line
        finite_norm = _compute_finite_norm(self._numbers) if self._statistics is None else None
        statistics = self.statistics if finite_norm is None else None
        norm = format_number(finite_norm if statistics is None else statistics[3], min(digits, 4))  # type: ignore[arg-type]
        summary = (
            _("{shape} norm {norm}").format(shape=self.shape, norm=norm)
            if shape
            else _("norm {norm}").format(norm=norm)
        )
        return summary if statistics is None else _append_nonfinite_counts(summary, statistics)

    def __repr__(self) -> str:
        return f"Value {self.shape} {self.dtype} {self.device}: {self.text(room=60, shape=False)}"

    def line(self, digits: int = 6) -> str | None:
        """Return all numbers on one line; None if they were not kept."""
        return None if self._numbers is None else format_numbers(self._numbers, digits)

    def block(self) -> str:
        """Return the value on as many lines as it needs: a matrix row by row, or all statistics."""
        if self._note is not None:
            return f"{self._note.text}\n{self.shape} {self.dtype}"
        if 0 in self.shape:
            return f"[]\n{self.shape} {self.dtype}"
        if self._numbers is not None:
            has_rows = math.prod(self.shape[:-1]) > 1  # a single row keeps its brackets
            return _format_rows(self._numbers, len(self.shape)) if has_rows else format_numbers(self._numbers)
        low, high, mean, norm, *_ignored, zero = statistics = self.statistics
        parts = {"shape": self.shape, "dtype": self.dtype, "norm": format_number(norm)}
        if low is None or high is None or mean is None:
            return _append_nonfinite_counts(
                _("shape  {shape}\ndtype  {dtype}\nnorm   {norm}\n(only the norm was read)").format(**parts), statistics
            )
        parts |= {"min": format_number(low), "max": format_number(high), "mean": format_number(mean)}
        return _append_nonfinite_counts(
            _(
                "shape  {shape}\ndtype  {dtype}\nmin    {min}\nmax    {max}\nmean   {mean}\nnorm   {norm}\nzeros  "
                "{zero}"
            ).format(zero=zero, **parts),
            statistics,
        )


def _append_nonfinite_counts(line: str, statistics: Statistics) -> str:
    """Append the counts of NaN and infinite numbers to ``line``, if there are any."""
    counts = zip(statistics[4:6], ("NaN", "Inf"), strict=True)
    return " · ".join([line, *(f"{count} {name}" for count, name in counts if count)])


def is_same_value(one: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> bool:
    """Whether two values are the same, counting NaN as equal to NaN. Large tensors are compared by their statistics.

    >>> import torch
    >>> is_same_value(Value.of(torch.tensor(math.nan)).row, Value.of(torch.tensor(math.nan)).row)
    True
    """
    if isinstance(one, DeferredRow) or isinstance(other, DeferredRow):
        return True  # not read yet, so a difference cannot be claimed
    return one == other or repr(one) == repr(other)


def get_norm_nan_inf(value: tuple[Any, ...]) -> tuple[float, int, int]:
    """Return (2-norm, NaN count, infinity count) of a value; counts that were not read are derived from the norm.

    A derived count is a lower bound: 1 or 0.

    >>> import torch
    >>> get_norm_nan_inf(Value.of(torch.tensor([3.0, -4.0])).row), get_norm_nan_inf(Value.of(torch.tensor(-2.0)).row)
    ((5.0, 0, 0), (2.0, 0, 0))
    """
    numbers = value[3]
    if type(numbers) is float and math.isfinite(numbers):  # the fast path: most values of a deep network of scalars
        return abs(numbers), 0, 0
    finite_norm = None if numbers is None else _compute_finite_norm(numbers)
    if finite_norm is not None:
        return finite_norm, 0, 0
    norm, nan, inf = (value[4] or Value(*value).statistics)[3:6]
    return float(norm), norm != norm if nan is None else nan, norm == math.inf if inf is None else inf


def holds_nonfinite(value: ValueRow) -> bool:
    """Whether a value is known to hold NaN or Inf; False if its numbers are not known.

    >>> import torch
    >>> [holds_nonfinite(Value.of(torch.full((size,), math.inf)).row) for size in (1, 100)]
    [True, True]
    """
    _norm, nan, inf = get_norm_nan_inf(value)
    return bool(nan or inf)


def format_number(x: complex, digits: int = 6) -> str:
    """Write a number with up to ``digits`` significant digits, without trailing zeros.

    >>> format_number(8.0), format_number(0.1 + 0.2), format_number(-1e-9)
    ('8', '0.3', '-1e-09')
    """
    if isinstance(x, complex):
        return f"{x.real:.{digits}g}{x.imag:+.{digits}g}i"
    return f"{x:.{digits}g}"


def format_numbers(numbers: NestedNumbers, digits: int = 6) -> str:
    """Write nested numbers on one line.

    >>> format_numbers([[1.0, 2.5], [3.0, 4.0]])
    '[[1, 2.5], [3, 4]]'
    """
    if isinstance(numbers, (list, tuple)):
        if numbers and isinstance(numbers[0], (list, tuple)):
            return "[" + ", ".join([format_numbers(part, digits) for part in numbers]) + "]"
        return "[" + ", ".join(_format_row(numbers, digits)) + "]"
    return format_number(numbers, digits)


def _format_row(numbers: Sequence[complex], digits: int) -> list[str]:
    """Write the numbers of the innermost level, real ones without a call for each."""
    if numbers and type(numbers[0]) is float:
        pattern = f"%.{digits}g"
        return [pattern % x for x in numbers]
    return [format_number(x, digits) for x in numbers]


def _format_rows(numbers: NestedNumbers, dimensions: int) -> str:
    """Write nested numbers row by row, with blank lines between the matrices of a tensor of more than 2 dimensions."""
    if dimensions < 2:
        return format_numbers(numbers)
    gap = "\n" * (dimensions - 1)
    return gap.join(_format_rows(part, dimensions - 1) for part in numbers)


def flatten_numbers(numbers: NestedNumbers) -> Iterator[complex]:
    """Yield the numbers of nested lists.

    >>> list(flatten_numbers([[1, 2], [3]]))
    [1, 2, 3]
    """
    if not isinstance(numbers, (list, tuple)):
        yield numbers
    elif numbers and isinstance(numbers[0], (list, tuple)):
        for part in numbers:
            yield from flatten_numbers(part)
    else:  # the innermost level at once: a generator for each number would take most of the time
        yield from numbers


def _compute_finite_norm(numbers: NestedNumbers) -> float | None:
    """Compute the 2-norm of a small tensor alone; None if it is not finite, or the tensor is complex."""
    try:
        norm = math.hypot(*flatten_numbers(numbers))  # type: ignore[arg-type]
    except TypeError:  # complex numbers
        return None
    return norm if math.isfinite(norm) else None


def _compute_statistics(numbers: Sequence[Any]) -> Statistics:
    """Compute statistics from the numbers of a small tensor; as in torch, a NaN makes them NaN."""
    if not numbers:
        return _EMPTY_STATISTICS
    parts = [part for x in numbers for part in ((x.real, x.imag) if isinstance(x, complex) else (x,))]
    norm = math.nan if any(map(math.isnan, parts)) else math.hypot(*parts)
    nan, inf = (0, 0) if math.isfinite(norm) else (_count(numbers, test) for test in (math.isnan, math.isinf))
    zero = sum(x == 0 for x in numbers)
    if nan or isinstance(numbers[0], complex):
        return (math.nan, math.nan, math.nan, norm, nan, inf, zero)
    return (float(min(numbers)), float(max(numbers)), sum(numbers) / len(numbers), norm, nan, inf, zero)


def _count(numbers: Sequence[complex], test: Callable[[float], bool]) -> int:
    """Count the numbers whose real or imaginary part passes ``test``."""
    return sum(test(x.real) or test(x.imag) for x in numbers)


Values = Value | tuple[Value | None, ...] | None
"""One gradient, or a tuple of all gradients of a node; None for a gradient that torch does not pass."""

if TYPE_CHECKING:

    class _OneOrSeveral(Value):
        """The names of a value and those of a tuple of them: the kind of a step decides which of both it holds."""

        def __getitem__(self, index: int) -> Value | Any: ...
        def __iter__(self) -> Iterator[Value | Any]: ...
        def __len__(self) -> int: ...
        @property
        def min(self) -> float | Any: ...
        @property
        def max(self) -> float | Any: ...
        @property
        def mean(self) -> float | Any: ...
        @property
        def nan(self) -> int | Any: ...
        @property
        def inf(self) -> int | Any: ...
        @property
        def zero(self) -> int | Any: ...

    StepValue = _OneOrSeveral | Any
else:
    StepValue = Values
"""What a step holds. A type checker accepts what either form has, so that ``step.after.norm`` needs no ``isinstance``,
and refuses other names; ``Any`` stands for None where that is rare, as in Python's own stubs."""


def as_tuple(values: Any) -> tuple[Any, ...]:
    """Return several values, or their indexes, as they are, and a single one, or None, as a tuple of one.

    >>> as_tuple((3, None)), as_tuple(3)
    ((3, None), (3,))
    """
    return values if isinstance(values, tuple) else (values,)


def rows_of(values: Values) -> list[ValueRow | None]:
    """Return the rows of one or several values, whose texts tell them apart."""
    return [None if value is None else value.row for value in as_tuple(values)]


def are_same_values(one: Values, other: Values) -> bool:
    """Whether what stands before a hook and after it is the same.

    >>> import torch
    >>> value = Value.of(torch.tensor(2.0))
    >>> are_same_values((value, None), (value, None)), are_same_values(value, None)
    (True, False)
    """
    if isinstance(one, Value) and isinstance(other, Value):
        return is_same_value(one.row, other.row)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(are_same_values(*pair) for pair in zip(one, other, strict=True))
    return one is other
