"""A tensor in words: its numbers when few, its statistics always, and never the tensor itself."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from hookviz.words import say

FEW = 64
"""Up to this many numbers are kept one by one; beyond it, statistics only."""

Row = tuple[Any, ...]
"""What a trace keeps of a value: (shape, dtype, device, numbers, statistics, note), plain data."""

Numbers = Any
"""A number, or lists of numbers nested as the tensor's dimensions are."""

Statistics = tuple[float, float, float, float, int, int, int]
"""(min, max, mean, norm, nan, inf, zero)"""

_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
_EMPTY: Statistics = (math.nan, math.nan, math.nan, 0.0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Value:
    """What a tensor held at one moment.

    ``min``, ``max``, ``mean`` and ``norm`` (the 2-norm) are what torch gives: a NaN in the tensor makes them
    NaN, and ``nan``, ``inf`` and ``zero`` count how many numbers are so. Complex tensors have a norm, and NaN
    for the other three.

    >>> value = Value.of(torch.tensor([3.0, 0.0, -4.0]))
    >>> value.tolist(), value.norm, value.zero
    ([3.0, 0.0, -4.0], 5.0, 1)
    >>> Value.of(torch.ones(10, 10)).tolist() is None
    True
    """

    shape: tuple[int, ...]
    dtype: str
    device: str
    _numbers: Numbers = None
    _statistics: Statistics | None = None
    note: str | None = None
    """Why nothing more is known of the tensor (a sparse one, say), else None."""

    @classmethod
    def of(cls, tensor: torch.Tensor) -> "Value":
        """Measure ``tensor`` now; later changes to it are not seen."""
        return cls(*measure(tensor))

    @property
    def row(self) -> Row:
        """The value as plain data."""
        return (self.shape, self.dtype, self.device, self._numbers, self._statistics, self.note)

    def tolist(self) -> Numbers:
        """The numbers, nested as ``torch.Tensor.tolist`` nests them; None when there are more than 64."""
        return self._numbers

    @property
    def statistics(self) -> Statistics:
        """(min, max, mean, norm, nan, inf, zero)."""
        if self._statistics is not None:
            return self._statistics
        return _count(list(_flat(self._numbers))) if self.note is None else (math.nan,) * 4 + (0, 0, 0)

    @property
    def min(self) -> float:
        """The smallest number."""
        return self.statistics[0]

    @property
    def max(self) -> float:
        """The largest number."""
        return self.statistics[1]

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return self.statistics[2]

    @property
    def norm(self) -> float:
        """The 2-norm: the root of the sum of squares."""
        return self.statistics[3]

    @property
    def nan(self) -> int:
        """How many numbers are NaN."""
        return self.statistics[4]

    @property
    def inf(self) -> int:
        """How many numbers are plus or minus infinity."""
        return self.statistics[5]

    @property
    def zero(self) -> int:
        """How many numbers are 0."""
        return self.statistics[6]

    def text(self, room: int = 24, *, shape: bool = True, digits: int = 6) -> str:
        """The value on one line: its numbers when they fit in ``room`` characters, else its shape and norm.

        >>> Value.of(torch.tensor(8.0)).text(), Value.of(torch.zeros(100)).text()
        ('8', '(100,) norm 0')
        """
        if self.note is not None:
            return self.note
        line = self.line(digits)
        if line is not None and len(line) <= room:
            return line
        norm = say("value.norm", norm=number(self.norm, digits))
        return self._trouble(f"{self.shape} {norm}" if shape else norm)

    def line(self, digits: int = 6) -> str | None:
        """All numbers on one line; None when they were not kept."""
        return None if self._numbers is None else nested(self._numbers, digits)

    def block(self) -> str:
        """The value on as many lines as it needs: a matrix row by row, or all statistics."""
        if self.note is not None:
            return f"{self.note}\n{self.shape} {self.dtype}"
        if 0 in self.shape:
            return f"[]\n{self.shape} {self.dtype}"
        if self._numbers is not None:
            return _rows(self._numbers, len(self.shape))
        low, high, mean, norm = map(number, self.statistics[:4])
        parts = {"shape": self.shape, "dtype": self.dtype, "min": low, "max": high, "mean": mean, "norm": norm}
        return self._trouble(say("value.long", zero=self.zero, **parts))

    def _trouble(self, line: str) -> str:
        counts = ((self.nan, "NaN"), (self.inf, "Inf"))
        return line + "".join(f" · {count} {name}" for count, name in counts if count)


def same(one: Row | None, other: Row | None) -> bool:
    """Whether two values are alike, NaN being like NaN; of large tensors, whether their statistics are.

    >>> same(measure(torch.tensor(math.nan)), measure(torch.tensor(math.nan)))
    True
    """
    return one == other or repr(one) == repr(other)


def number(x: complex, digits: int = 6) -> str:
    """A number as a person writes it: six significant digits, no trailing zeros.

    >>> number(8.0), number(0.1 + 0.2), number(-1e-9)
    ('8', '0.3', '-1e-09')
    """
    if isinstance(x, complex):
        return f"{x.real:.{digits}g}{x.imag:+.{digits}g}i"
    return f"{x:.{digits}g}"


def nested(numbers: Numbers, digits: int = 6) -> str:
    """Nested numbers on one line.

    >>> nested([[1.0, 2.5], [3.0, 4.0]])
    '[[1, 2.5], [3, 4]]'
    """
    if isinstance(numbers, Sequence):
        return "[" + ", ".join(nested(part, digits) for part in numbers) + "]"
    return number(numbers, digits)


def _rows(numbers: Numbers, dimensions: int) -> str:
    if dimensions < 2:
        return nested(numbers)
    gap = "\n" * (dimensions - 1)
    return gap.join(_rows(part, dimensions - 1) for part in numbers)


def _flat(numbers: Numbers) -> Iterator[complex]:
    if isinstance(numbers, Sequence):
        for part in numbers:
            yield from _flat(part)
    else:
        yield numbers


def _count(flat: Sequence[Any]) -> Statistics:
    """Statistics of few numbers, from the numbers, by torch's rule that a NaN spreads."""
    if not flat:
        return _EMPTY
    parts = [part for x in flat for part in ((x.real, x.imag) if isinstance(x, complex) else (x,))]
    norm = math.nan if any(map(math.isnan, parts)) else math.hypot(*parts)
    nan, inf = sum(_any(math.isnan, x) for x in flat), sum(_any(math.isinf, x) for x in flat)
    zero = sum(x == 0 for x in flat)
    if nan or isinstance(flat[0], complex):
        return (math.nan, math.nan, math.nan, norm, nan, inf, zero)
    return (float(min(flat)), float(max(flat)), sum(flat) / len(flat), norm, nan, inf, zero)


def _any(test: Callable[[float], bool], x: complex) -> bool:
    return test(x.real) or test(x.imag)


def measure(tensor: torch.Tensor) -> Row:
    """The value of ``tensor`` now, as plain data; never raises, changes nothing, keeps nothing of it."""
    with torch._C.DisableTorchFunction():
        try:
            if torch._C._len_torch_dispatch_stack():
                with _disable_current_modes():
                    return _measure(tensor)
            return _measure(tensor)
        except Exception as error:  # a kind of tensor that torch itself cannot reduce
            return ((), "", "", None, None, say("value.unknown", why=type(error).__name__))


def _measure(tensor: torch.Tensor) -> Row:
    note = _strange(tensor)
    shape = () if tensor.is_nested else tuple(tensor.shape)  # of a nested tensor torch refuses to tell it
    head = (shape, str(tensor.dtype)[6:], str(tensor.device))
    if note is not None:
        return (*head, None, None, note)
    if tensor.numel() <= FEW:
        return (*head, tensor.tolist(), None, None)
    return (*head, None, _statistics(tensor.detach()), None)


def _strange(tensor: torch.Tensor) -> str | None:
    """Why the numbers of ``tensor`` are left alone, or None for an ordinary tensor."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        return say("value.hidden", kind=kind.__name__)
    if tensor.layout is not torch.strided:
        return say("value.hidden", kind=str(tensor.layout).removeprefix("torch."))
    if tensor.is_nested or tensor.is_quantized or tensor.is_meta:
        return say("value.hidden", kind="nested" if tensor.is_nested else "meta" if tensor.is_meta else "quantized")
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return say("value.hidden", kind="functorch")
    return None


def _statistics(tensor: torch.Tensor) -> Statistics:
    """(min, max, mean, norm, nan, inf, zero), accumulated in float32 or wider."""
    total = tensor.numel()
    tensor = tensor[tuple(slice(None) if step else slice(0, 1) for step in tensor.stride())]
    share = total // tensor.numel()  # an expanded dimension holds the same numbers again
    if tensor.is_complex():
        return _complex_statistics(tensor, share)
    if not tensor.is_floating_point():
        tensor = tensor.double()
    wide = _WIDER.get(tensor.dtype, tensor.dtype)
    low, high = tensor.amin().item(), tensor.amax().item()
    mean, norm = _moments(tensor, wide)
    if not (math.isfinite(mean) and math.isfinite(norm)) and math.isfinite(low) and math.isfinite(high):
        mean, norm = _moments(tensor, torch.float64)  # the sum overflowed, not the tensor
    nan, inf = (0, 0) if math.isfinite(low) and math.isfinite(high) else _count_strange(tensor)
    zero = 0 if low > 0 or high < 0 else tensor.numel() - _count_nonzero(tensor)
    return (low, high, mean, norm * math.sqrt(share), nan * share, inf * share, zero * share)


def _moments(tensor: torch.Tensor, dtype: torch.dtype) -> tuple[float, float]:
    mean = tensor.sum(dtype=dtype).item() / tensor.numel()
    return mean, torch.linalg.vector_norm(tensor, dtype=dtype).item()


def _count_nonzero(tensor: torch.Tensor) -> int:
    """As ``tensor.count_nonzero()``, which takes up to ten times as long for floating-point numbers on a CPU."""
    counter = torch.int32 if tensor.numel() < 2**31 else torch.int64  # summed as int64, bytes take three times as long
    return int(tensor.bool().view(torch.uint8).sum(dtype=counter).item())


def _count_strange(tensor: torch.Tensor) -> tuple[int, int]:
    return int(tensor.isnan().sum().item()), int(tensor.isinf().sum().item())


def _complex_statistics(tensor: torch.Tensor, share: int) -> Statistics:
    norm = torch.linalg.vector_norm(tensor).item() * math.sqrt(share)
    nan, inf = _count_strange(tensor)
    zero = tensor.numel() - _count_nonzero(tensor)
    return (math.nan, math.nan, math.nan, norm, nan * share, inf * share, zero * share)
