"""Arithmetic on values with a bound on their rounding error."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class BoundedValue(NamedTuple):
    """A value in the computation of a gradient, with a bound on its distance from the exact result."""

    value: Any
    """A tensor, or a plain number."""
    error: Any
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


def as_bounded(x: Any) -> BoundedValue:
    """Return ``x`` as an exact value, or unchanged if it has a bound already."""
    return x if isinstance(x, BoundedValue) else BoundedValue(x, 0.0)


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


def add(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """Add two values."""
    value = a.value + b.value
    return BoundedValue(value, a.error + b.error + rounding_error(value))


def subtract(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """Subtract ``b`` from ``a``."""
    value = a.value - b.value
    return BoundedValue(value, a.error + b.error + rounding_error(value))


def multiply(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """Multiply two values elementwise."""
    value = a.value * b.value
    return BoundedValue(value, a.error * magnitude(b.value) + magnitude(a.value) * b.error + rounding_error(value))


def divide(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """Divide ``a`` by ``b`` elementwise."""
    value = a.value / b.value
    error = (a.error + magnitude(value) * b.error) / magnitude(b.value) if not _is_zero(b.value) else 0.0
    return BoundedValue(value, error + rounding_error(value))


def _is_zero(x: Any) -> bool:
    return not isinstance(x, torch.Tensor) and x == 0


def matrix_product(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """Multiply two matrices; the bound covers a rounding at each step of a sum, in any order."""
    x, y = magnitude(a.value), magnitude(b.value)
    value = a.value @ b.value
    eps = torch.finfo(value.dtype).eps
    return BoundedValue(value, (x * eps + a.error) @ y + x @ (y * eps + b.error))


def power(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """Raise ``a`` to ``b``; ``b`` is taken as exact."""
    value = a.value**b.value
    steps = 1 + magnitude(b.value)
    relative = a.error * magnitude(b.value) / magnitude(a.value) if isinstance(a.error, torch.Tensor) else 0.0
    return BoundedValue(value, steps * rounding_error(value) + magnitude(value) * relative)


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
