"""Arithmetic on values with a bound on their rounding error."""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hookviz.analysis.formulas.evaluation import Missing

ROOM = 4_096
"""No step of a formula gives more numbers than this: an outer product of two values that a trace keeps in
full has at most as many. A shape comes from a file or from a node, and may be of any size."""


@dataclass(frozen=True, eq=False, slots=True)
class BoundedValue:
    """A value in the computation of a gradient, with a bound on its distance from the exact result.

    Python's operators compute with it, also if the other operand is a plain number.

    Raises:
        Missing: the result would have more than ``ROOM`` numbers.
    """

    value: Any
    """A tensor, or a plain number."""
    error: Any = 0.0
    """A bound on the error of each number: a tensor of the same shape, or 0."""

    @property
    def tensor(self) -> torch.Tensor:
        """The value as a tensor."""
        if isinstance(self.value, torch.Tensor):
            return self.value
        return torch.tensor(self.value, dtype=torch.complex128 if isinstance(self.value, complex) else torch.float64)

    @property
    def shape(self) -> torch.Size:
        """The shape of the value."""
        return self.tensor.shape

    def __neg__(self) -> "BoundedValue":
        return BoundedValue(-self.value, self.error)

    def __add__(self, other: Any) -> "BoundedValue":
        other = _operand(self, other)
        value = self.value + other.value
        return BoundedValue(value, self.error + other.error + rounding_error(value))

    __radd__ = __add__

    def __sub__(self, other: Any) -> "BoundedValue":
        other = _operand(self, other)
        value = self.value - other.value
        return BoundedValue(value, self.error + other.error + rounding_error(value))

    def __rsub__(self, other: Any) -> "BoundedValue":
        return as_bounded(other) - self

    def __mul__(self, other: Any) -> "BoundedValue":
        other = _operand(self, other)
        value = self.value * other.value
        error = self.error * magnitude(other.value) + magnitude(self.value) * other.error
        return BoundedValue(value, error + rounding_error(value))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "BoundedValue":
        other = _operand(self, other)
        value = self.value / other.value
        error = 0.0
        if isinstance(other.value, torch.Tensor) or other.value != 0:
            error = (self.error + magnitude(value) * other.error) / magnitude(other.value)
        return BoundedValue(value, error + rounding_error(value))

    def __rtruediv__(self, other: Any) -> "BoundedValue":
        return as_bounded(other) / self

    def __matmul__(self, other: "BoundedValue") -> "BoundedValue":
        """Multiply two matrices; the bound covers a rounding at each step of a sum, in any order."""
        if self.shape.numel() * other.shape.numel() > ROOM:
            raise Missing("large")
        x, y = magnitude(self.value), magnitude(other.value)
        value = self.value @ other.value
        eps = torch.finfo(value.dtype).eps
        return BoundedValue(value, (x * eps + self.error) @ y + x @ (y * eps + other.error))

    def __pow__(self, exponent: Any) -> "BoundedValue":
        """Raise to ``exponent``, which is taken as exact."""
        exponent = _operand(self, exponent).value
        value = self.value**exponent
        steps = 1 + magnitude(exponent)
        is_exact = not isinstance(self.error, torch.Tensor)
        relative = 0.0 if is_exact else self.error * magnitude(exponent) / magnitude(self.value)
        return BoundedValue(value, steps * rounding_error(value) + magnitude(value) * relative)

    def __and__(self, other: "BoundedValue") -> "BoundedValue":
        return BoundedValue(self.value & _operand(self, other).value)

    def __or__(self, other: "BoundedValue") -> "BoundedValue":
        return BoundedValue(self.value | _operand(self, other).value)

    def __eq__(self, other: Any) -> "BoundedValue":  # type: ignore[override]
        return self._compare(operator.eq, other)

    def __lt__(self, other: Any) -> "BoundedValue":
        return self._compare(operator.lt, other)

    def __le__(self, other: Any) -> "BoundedValue":
        return self._compare(operator.le, other)

    def __gt__(self, other: Any) -> "BoundedValue":
        return self._compare(operator.gt, other)

    def __ge__(self, other: Any) -> "BoundedValue":
        return self._compare(operator.ge, other)

    def _compare(self, compare: Callable[[Any, Any], Any], other: Any) -> "BoundedValue":
        return BoundedValue(compare(self.value, _operand(self, other).value))


def _operand(one: BoundedValue, other: Any) -> BoundedValue:
    """``other`` as the second operand of an elementwise operator; checks the size of the result."""
    bounded = as_bounded(other)
    first, second = one.value, bounded.value
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor) and first.numel() * second.numel() > ROOM:
        check_room(torch.broadcast_shapes(first.shape, second.shape))  # type: ignore[no-untyped-call]
    return bounded


def check_room(shape: Sequence[int]) -> Sequence[int]:
    """Return ``shape`` if such a tensor has at most ``ROOM`` numbers.

    Raises:
        Missing: it has more.

    >>> check_room((2, 3))
    (2, 3)
    """
    if math.prod(shape) > ROOM:
        raise Missing("large")
    return shape


def as_bounded(x: Any) -> BoundedValue:
    """Return ``x`` as an exact value, or unchanged if it has a bound already."""
    return x if isinstance(x, BoundedValue) else BoundedValue(x)


def magnitude(x: Any) -> Any:
    """The absolute values of ``x``, in double precision.

    >>> magnitude(torch.tensor([-2.0, 3.0])), magnitude(-1)
    (tensor([2., 3.], dtype=torch.float64), 1)
    """
    return x.abs().double() if isinstance(x, torch.Tensor) and x.dtype != torch.bool else abs(x * 1)


def rounding_error(x: Any) -> Any:
    """A bound on the error of rounding ``x`` once to its dtype; 0 for integers."""
    if not isinstance(x, torch.Tensor):
        return 0.0
    exact = not (x.is_floating_point() or x.is_complex())
    return magnitude(x) * (0.0 if exact else torch.finfo(x.dtype).eps)


def elementwise(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], Any]:
    """Lift an elementwise function to bounded values; its error is found at both ends of the interval.

    Of a plain number it gives a plain number: the dtype of a tensor would change the dtype of other values.
    """

    def apply(x: Any) -> Any:
        if not isinstance(x, BoundedValue):
            return function(as_bounded(x).tensor).item()
        value = function(x.tensor)
        error = 2 * rounding_error(value)
        if isinstance(x.error, torch.Tensor):
            exact = x.tensor.to(torch.complex128 if value.is_complex() else torch.float64)
            center = function(exact)
            deviations = (magnitude(function(exact + step) - center) for step in (x.error, -x.error))
            error = error + torch.fmax(*deviations)
        return BoundedValue(value, error)

    return apply


def conjugate(x: Any) -> Any:
    """Return the complex conjugate of a bounded value or a plain number; a real one unchanged."""
    if isinstance(x, BoundedValue) and x.tensor.is_complex():
        return BoundedValue(x.value.conj(), x.error)
    return x.conjugate() if isinstance(x, complex) else x


def linear(function: Callable[..., torch.Tensor], *, sums: bool = False) -> Callable[..., BoundedValue]:
    """Lift a function that rearranges the numbers of its first argument, or with ``sums`` also adds them up."""

    def apply(x: Any, *rest: Any) -> BoundedValue:
        x = as_bounded(x)
        arguments = [argument.value if isinstance(argument, BoundedValue) else argument for argument in rest]
        value = function(x.tensor, *arguments)
        error = x.error
        if sums and (value.is_floating_point() or value.is_complex()):
            error = error + rounding_error(x.tensor)
        return BoundedValue(value, function(error, *arguments) if isinstance(error, torch.Tensor) else 0.0)

    return apply
