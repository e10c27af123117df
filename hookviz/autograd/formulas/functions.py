"""The functions that a formula may use: a closed set, each by the name under which it is read."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from hookviz.analysis.formulas.evaluation import PLAIN_FUNCTIONS, Dims
from hookviz.autograd.formulas.bounded_values import BoundedValue, conjugate, linear, rounded, smooth, term

aten: Any = torch.ops.aten

ROOM = 4_096
"""No step of a formula gives more numbers than this: as many as two values that are kept number by number make when
each number of one meets each of the other. A shape comes from a file or from a node, and may ask for any number."""


class TooLarge(Exception):
    """A formula would give more numbers than ``ROOM``."""


def bounded(shape: Sequence[int]) -> Sequence[int]:
    """``shape``, for a tensor that has room.

    Raises:
        TooLarge: it would have more numbers than ``ROOM``.

    >>> bounded((2, 3))
    (2, 3)
    """
    if math.prod(shape) > ROOM:
        raise TooLarge
    return shape


def _onto(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """One of torch's backward functions: it puts its first argument into zeros of the shape that is the second."""
    return lambda x, shape, *where: function(x, bounded(shape), *where)


def _dims(x: torch.Tensor, dim: Dims) -> list[int]:
    """The dimensions that are meant: all of them for None or none at all."""
    several = [dim] if isinstance(dim, int) else list(dim or ())
    return sorted(d % max(x.dim(), 1) for d in several) if several else list(range(x.dim()))


def _sum(x: torch.Tensor, dim: Dims = None) -> torch.Tensor:
    return x.sum(_dims(x, dim), keepdim=dim is not None) if x.dim() else x.sum()


def _mean(x: torch.Tensor, dim: Dims = None) -> torch.Tensor:
    return x.mean(_dims(x, dim), keepdim=True) if x.dim() else x


def _unsqueeze(x: torch.Tensor, dim: Dims, keepdim: bool = False) -> torch.Tensor:
    """Put dimensions back that a reduction has taken away; where all were reduced, nothing is left to put back."""
    if keepdim or dim is None or (isinstance(dim, tuple) and not dim) or (not x.dim() and dim in (0, -1)):
        return x
    several = [dim] if isinstance(dim, int) else list(dim)
    total = x.dim() + len(several)
    for d in sorted(d % total for d in several):
        x = x.unsqueeze(d)
    return x


def _expand(x: torch.Tensor, shape: Sequence[int], dim: Dims = None, keepdim: bool = True) -> torch.Tensor:
    return (_unsqueeze(x, dim, keepdim) if shape else x).expand(tuple(bounded(shape)))


def _scatter(
    x: torch.Tensor, dim: int, index: torch.Tensor, shape: Sequence[int], keepdim: bool = True
) -> torch.Tensor:
    """Zeros, and in them each number of ``x`` where it was taken from."""
    if not shape:
        return x
    return x.new_zeros(bounded(shape)).scatter(dim, _unsqueeze(index, dim, keepdim), _unsqueeze(x, dim, keepdim))


def _product_of_others(x: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """For each number the product of all others, along ``dim`` or of all."""
    if not x.dim():
        return torch.ones_like(x)
    rows = x.reshape(-1) if dim is None else x.movedim(dim, -1)
    count = rows.shape[-1]
    own = torch.eye(count, dtype=torch.bool)
    products = rows.unsqueeze(-2).expand(*rows.shape, count).masked_fill(own, 1).prod(-1)
    return products.reshape(x.shape) if dim is None else products.movedim(-1, dim)


def _product(x: Any, dim: int | None = None) -> BoundedValue:
    value = _product_of_others(term(x).tensor, dim)
    return BoundedValue(value, rounded(value) * term(x).tensor.numel())


def _sum_of_repeats(x: torch.Tensor, repeats: Sequence[int], shape: Sequence[int]) -> torch.Tensor:
    """The sum of the copies that ``repeat`` made of a tensor with this shape."""
    whole = tuple(shape)
    padded = (1,) * (len(repeats) - len(whole)) + whole
    pairs = [n for pair in zip(repeats, padded, strict=True) for n in pair]
    return x.reshape(pairs).sum(list(range(0, len(pairs), 2))).reshape(whole) if pairs else x


def _narrow(x: torch.Tensor, dim: int, start: int, length: int) -> torch.Tensor:
    return x.narrow(dim, start, length)


def _slice_backward(x: torch.Tensor, shape: Sequence[int], *which: Any) -> torch.Tensor:
    return torch.slice_scatter(x.new_zeros(bounded(shape)), x, *which)


def _pad(x: torch.Tensor, widths: Sequence[int], *value: Any) -> torch.Tensor:
    """As ``aten.constant_pad_nd``: ``widths`` has two for each dimension, those of the last dimension first."""
    pairs = list(zip(widths[::2], widths[1::2], strict=False))[::-1]
    bounded([max(length + sum(pair), 0) for length, pair in zip(x.shape[-len(pairs) :], pairs, strict=False)])
    return aten.constant_pad_nd(x, widths, *value)  # type: ignore[no-any-return]


def _transposed(x: torch.Tensor) -> torch.Tensor:
    return x.mT if x.dim() > 1 else x


def _index_backward(x: torch.Tensor, shape: Sequence[int], indices: Sequence[BoundedValue | None]) -> torch.Tensor:
    places = [None if index is None else index.value for index in indices]
    return aten.index_put(x.new_zeros(bounded(shape)), places, x, True)  # type: ignore[no-any-return]


def _gather_backward(x: torch.Tensor, of: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    return x.new_zeros(of.shape).scatter_add(dim, index, x)


def _masked_select_backward(x: torch.Tensor, of: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(torch.where(mask, x.new_zeros(()), of)).masked_scatter(mask, x)


def _embedding_backward(x: torch.Tensor, indices: torch.Tensor, rows: int, padding: int) -> torch.Tensor:
    bounded((rows, x.shape[-1]))
    return aten.embedding_dense_backward(x, indices, rows, padding, False)  # type: ignore[no-any-return]


def _one_hot(target: BoundedValue, like: BoundedValue, ignored: int) -> BoundedValue:
    """1 in the class that is the target, 0 elsewhere and in a row that is ignored."""
    index = target.tensor.unsqueeze(-1 if like.tensor.dim() < 3 else 1)
    marks = torch.zeros_like(like.tensor).scatter(1 if like.tensor.dim() > 1 else 0, index.clamp(min=0), 1)
    return BoundedValue(marks.masked_fill(index == ignored, 0), 0.0)


def where(condition: Any, one: Any, other: Any) -> BoundedValue:
    """``one`` where the condition holds, else ``other``."""
    one, other, chosen = term(one), term(other), term(condition).value
    return BoundedValue(*(torch.where(chosen, a, b) for a, b in zip(one, other, strict=True)))


def _clamp(x: BoundedValue, low: float, high: float) -> BoundedValue:
    return BoundedValue(x.tensor.clamp(low, high), x.error)


def _stack(grads: Sequence[BoundedValue | None], dim: int) -> BoundedValue:
    """The gradients of all parts; those of parts that nobody used are zeros."""
    like = next(grad.tensor for grad in grads if grad is not None)
    parts = [torch.zeros_like(like) if grad is None else grad.tensor for grad in grads]
    return BoundedValue(torch.stack(parts, dim), 0.0)


def _cat(grads: Sequence[BoundedValue | None], dim: int, sizes: Any, shape: Sequence[int]) -> BoundedValue:
    """As ``_stack``, for parts one behind the other; ``sizes`` says how long they are, all of them but the last."""
    dim %= len(bounded(shape))
    lengths = [sizes] * len(grads) if isinstance(sizes, int) else list(sizes)
    lengths[-1] = shape[dim] - sum(lengths[:-1])
    like = next(grad.tensor for grad in grads if grad is not None)
    parts = [
        like.new_zeros((*shape[:dim], length, *shape[dim + 1 :])) if grad is None else grad.tensor
        for grad, length in zip(grads, lengths, strict=True)
    ]
    return BoundedValue(torch.cat(parts, dim), 0.0)


_SMOOTH = {name: smooth(getattr(torch, name)) for name in ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "sinh", "cosh")}
_SMOOTH |= {name: smooth(getattr(torch, name)) for name in ("tanh", "sigmoid", "erf", "sgn")}
_MOVES: dict[str, Callable[..., torch.Tensor]] = {
    "t": _transposed,
    "transpose": torch.transpose,
    "permute": torch.permute,
    "reshape": torch.reshape,
    "squeeze": lambda x, dim: x.squeeze(dim) if x.dim() else x,
    "unsqueeze": _unsqueeze,
    "expand": _expand,
    "flip": lambda x, dim: x.flip(dim) if x.dim() else x,
    "roll": torch.roll,
    "tril": torch.tril,
    "triu": torch.triu,
    "pad": _pad,
    "select": torch.select,
    "narrow": _narrow,
    "diagonal": torch.diagonal,
    "scatter": _scatter,
    "select_backward": _onto(aten.select_backward),
    "slice_backward": _slice_backward,
    "diagonal_backward": _onto(aten.diagonal_backward),
    "trace_backward": _onto(aten.trace_backward),
    "masked_select_backward": _masked_select_backward,
}
_SUMS: dict[str, Callable[..., torch.Tensor]] = {
    "sum": _sum,
    "mean": _mean,
    "cumsum": torch.cumsum,
    "sum_to": lambda x, shape: x.sum_to_size(shape),
    "sum_of_repeats": _sum_of_repeats,
    "index_backward": _index_backward,
    "index_select_backward": _onto(aten.index_select_backward),
    "gather_backward": _gather_backward,
    "embedding_backward": _embedding_backward,
}


def _outer(a: Any, b: Any) -> BoundedValue:
    value = torch.outer(a.tensor, b.tensor)
    return BoundedValue(value, rounded(value))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **PLAIN_FUNCTIONS,
    **_SMOOTH,
    **{name: linear(function) for name, function in _MOVES.items()},
    **{name: linear(function, sums=True) for name, function in _SUMS.items()},
    "conj": conjugate,
    "softplus": smooth(F.softplus),
    "outer": _outer,
    "product_of_others": _product,
    "one_hot": _one_hot,
    "where": where,
    "clamp": _clamp,
    "stack": _stack,
    "cat": _cat,
}
"""By name, all functions that a formula may use."""
