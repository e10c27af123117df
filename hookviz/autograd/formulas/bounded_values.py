"""Numbers with a bound on what rounding may have done to them, and how sums and products carry both on."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class BoundedValue(NamedTuple):
    """A value on the way to a gradient, and how far it may be from what exact arithmetic gives."""

    value: Any
    """A tensor, or a plain number."""
    error: Any
    """How far off each number may be: a tensor of the same shape, or 0."""

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


def term(x: Any) -> BoundedValue:
    """``x`` as a term that is exact."""
    return x if isinstance(x, BoundedValue) else BoundedValue(x, 0.0)


def size_of(x: Any) -> Any:
    """The absolute values of ``x``, in double precision.

    >>> size_of(torch.tensor([-2.0, 3.0])), size_of(-1)
    (tensor([2., 3.], dtype=torch.float64), 1)
    """
    return x.abs().double() if isinstance(x, torch.Tensor) and x.dtype != torch.bool else abs(x * 1)


def rounded(x: Any) -> Any:
    """How far off one rounding may leave ``x``: by its dtype, and nothing for whole numbers."""
    if not isinstance(x, torch.Tensor):
        return 0.0
    exact = not (x.is_floating_point() or x.is_complex())
    return size_of(x) * (0.0 if exact else torch.finfo(x.dtype).eps)


def add(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """The sum."""
    value = a.value + b.value
    return BoundedValue(value, a.error + b.error + rounded(value))


def subtract(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """The difference."""
    value = a.value - b.value
    return BoundedValue(value, a.error + b.error + rounded(value))


def multiply(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """The product, number by number."""
    value = a.value * b.value
    return BoundedValue(value, a.error * size_of(b.value) + size_of(a.value) * b.error + rounded(value))


def divide(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """The quotient, number by number."""
    value = a.value / b.value
    error = (a.error + size_of(value) * b.error) / size_of(b.value) if not _is_zero(b.value) else 0.0
    return BoundedValue(value, error + rounded(value))


def _is_zero(x: Any) -> bool:
    return not isinstance(x, torch.Tensor) and x == 0


def matrix_product(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """The matrix product; a sum in it may be rounded at each of its steps, in whatever order they are taken."""
    x, y = size_of(a.value), size_of(b.value)
    value = a.value @ b.value
    eps = torch.finfo(value.dtype).eps
    return BoundedValue(value, (x * eps + a.error) @ y + x @ (y * eps + b.error))


def power(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    """A power; what goes into it is a saved value, and exact."""
    value = a.value**b.value
    steps = 1 + size_of(b.value)
    relative = a.error * size_of(b.value) / size_of(a.value) if isinstance(a.error, torch.Tensor) else 0.0
    return BoundedValue(value, steps * rounded(value) + size_of(value) * relative)


def smooth(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], Any]:
    """A function of each number by itself; how it spreads an error is tried out at both ends of it.

    Of a plain number it is a plain number: a tensor would be of a dtype, and others would become so, too.
    """

    def of(x: Any) -> Any:
        if not isinstance(x, BoundedValue):
            return function(term(x).tensor).item()
        value = function(x.tensor)
        error = 2 * rounded(value)
        if isinstance(x.error, torch.Tensor):
            exact = x.tensor.to(torch.complex128 if value.is_complex() else torch.float64)
            middle = function(exact)
            ends = (size_of(function(exact + step) - middle) for step in (x.error, -x.error))
            error = error + torch.fmax(*ends)
        return BoundedValue(value, error)

    return of


def conjugate(x: Any) -> Any:
    """The complex conjugate."""
    return (
        BoundedValue(x.value.conj(), x.error) if isinstance(x, BoundedValue) and x.tensor.is_complex() else _plainly(x)
    )


def _plainly(x: Any) -> Any:
    return x.conjugate() if isinstance(x, complex) else x


def linear(function: Callable[..., torch.Tensor], *, sums: bool = False) -> Callable[..., BoundedValue]:
    """A function that only moves the numbers of its first argument about, or also ``sums`` them."""

    def of(x: Any, *rest: Any) -> BoundedValue:
        x = term(x)
        plain = [part.value if isinstance(part, BoundedValue) else part for part in rest]
        value = function(x.tensor, *plain)
        error = x.error
        if sums and (value.is_floating_point() or value.is_complex()):
            error = error + rounded(x.tensor)
        return BoundedValue(value, function(error, *plain) if isinstance(error, torch.Tensor) else 0.0)

    return of
