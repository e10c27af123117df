"""The functions that formulas may use: a closed set, by name."""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import torch
import torch.nn.functional as F

from hookviz.analysis.formulas.evaluation import PLAIN_FUNCTIONS, Dims
from hookviz.autograd.formulas.bounded_values import (
    BoundedValue,
    as_bounded,
    check_room,
    conjugate,
    elementwise,
    linear,
    rounding_error,
)

aten: Any = torch.ops.aten


def _dimensions(x: torch.Tensor, dim: Dims) -> list[int]:
    """The sorted dimensions in ``dim``; all dimensions for None or an empty list."""
    given = [dim] if isinstance(dim, int) else list(dim or ())
    return sorted(d % max(x.dim(), 1) for d in given) if given else list(range(x.dim()))


def _sum(x: torch.Tensor, dim: Dims = None) -> torch.Tensor:
    return x.sum(_dimensions(x, dim), keepdim=dim is not None) if x.dim() else x.sum()


def _mean(x: torch.Tensor, dim: Dims = None) -> torch.Tensor:
    return x.mean(_dimensions(x, dim), keepdim=True) if x.dim() else x


def _unsqueeze(x: torch.Tensor, dim: Dims, keepdim: bool = False) -> torch.Tensor:
    """Restore the dimensions that a reduction removed; after a reduction over all of them, return ``x`` unchanged."""
    if keepdim or dim is None or (isinstance(dim, tuple) and not dim) or (not x.dim() and dim in (0, -1)):
        return x
    reduced = [dim] if isinstance(dim, int) else list(dim)
    total = x.dim() + len(reduced)
    for d in sorted(d % total for d in reduced):
        x = x.unsqueeze(d)
    return x


def _expand(x: torch.Tensor, shape: Sequence[int], dim: Dims = None, keepdim: bool = True) -> torch.Tensor:
    return (_unsqueeze(x, dim, keepdim) if shape else x).expand(tuple(check_room(shape)))


def _scatter(
    x: torch.Tensor, dim: int, index: torch.Tensor, shape: Sequence[int], keepdim: bool = True
) -> torch.Tensor:
    """Write each number of ``x`` into zeros at the position from which a reduction took it."""
    if not shape:
        return x
    return x.new_zeros(check_room(shape)).scatter(dim, _unsqueeze(index, dim, keepdim), _unsqueeze(x, dim, keepdim))


def _sum_of_repeats(x: torch.Tensor, repeats: Sequence[int], shape: Sequence[int]) -> torch.Tensor:
    """Add up the copies that ``repeat`` made of a tensor with this shape."""
    original = tuple(shape)
    padded = (1,) * (len(repeats) - len(original)) + original
    pairs = [n for pair in zip(repeats, padded, strict=True) for n in pair]
    return x.reshape(pairs).sum(list(range(0, len(pairs), 2))).reshape(original) if pairs else x


def _select_backward(x: torch.Tensor, shape: Sequence[int], dim: int, index: int) -> torch.Tensor:
    return aten.select_backward(x, check_room(shape), dim, index)  # type: ignore[no-any-return]


def _slice_backward(x: torch.Tensor, shape: Sequence[int], *slicing: Any) -> torch.Tensor:
    return torch.slice_scatter(x.new_zeros(check_room(shape)), x, *slicing)


def _pad(x: torch.Tensor, widths: Sequence[int], *value: Any) -> torch.Tensor:
    """As ``aten.constant_pad_nd``: ``widths`` has two numbers per dimension, beginning with the last dimension."""
    pairs = list(zip(widths[::2], widths[1::2], strict=False))[::-1]
    check_room([max(length + sum(pair), 0) for length, pair in zip(x.shape[-len(pairs) :], pairs, strict=False)])
    return aten.constant_pad_nd(x, widths, *value)  # type: ignore[no-any-return]


def _transpose(x: torch.Tensor) -> torch.Tensor:
    return x.mT if x.dim() > 1 else x


def _index_backward(x: torch.Tensor, shape: Sequence[int], indices: Sequence[BoundedValue | None]) -> torch.Tensor:
    positions = [None if index is None else index.value for index in indices]
    return aten.index_put(x.new_zeros(check_room(shape)), positions, x, True)  # type: ignore[no-any-return]


def _gather_backward(x: torch.Tensor, source: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    return x.new_zeros(source.shape).scatter_add(dim, index, x)


def _embedding_backward(x: torch.Tensor, indices: torch.Tensor, rows: int, padding: int) -> torch.Tensor:
    check_room((rows, x.shape[-1]))
    return aten.embedding_dense_backward(x, indices, rows, padding, False)  # type: ignore[no-any-return]


def _one_hot(target: BoundedValue, like: BoundedValue, ignored: int) -> BoundedValue:
    """One-hot rows in the shape of ``like``: 1 at the target class; all 0 if the target is the ignored one."""
    index = target.tensor.unsqueeze(-1 if like.tensor.dim() < 3 else 1)
    marks = torch.zeros_like(like.tensor).scatter(1 if like.tensor.dim() > 1 else 0, index.clamp(min=0), 1)
    return BoundedValue(marks.masked_fill(index == ignored, 0))


def _choose(condition: BoundedValue, first: Any, second: Any) -> BoundedValue:
    """Take the numbers and errors of ``first`` where the condition holds, else of ``second``."""
    mask, one, other = condition.value, as_bounded(first), as_bounded(second)
    return BoundedValue(torch.where(mask, one.value, other.value), torch.where(mask, one.error, other.error))


def _clamp(x: BoundedValue, low: float, high: float) -> BoundedValue:
    return BoundedValue(x.tensor.clamp(low, high), x.error)


def _stack(grads: Sequence[BoundedValue | None], dim: int) -> BoundedValue:
    """Stack the gradients of all parts; None, for a part that was not used, becomes zeros."""
    like = next(grad.tensor for grad in grads if grad is not None)
    tensors = [torch.zeros_like(like) if grad is None else grad.tensor for grad in grads]
    return BoundedValue(torch.stack(tensors, dim))


def _cat(grads: Sequence[BoundedValue | None], dim: int, sizes: Any, shape: Sequence[int]) -> BoundedValue:
    """Concatenate gradients as ``_stack`` does; ``sizes`` has the lengths of all parts but the last."""
    dim %= len(check_room(shape))
    lengths = [sizes] * len(grads) if isinstance(sizes, int) else list(sizes)
    lengths[-1] = shape[dim] - sum(lengths[:-1])
    like = next(grad.tensor for grad in grads if grad is not None)
    tensors = [
        like.new_zeros((*shape[:dim], length, *shape[dim + 1 :])) if grad is None else grad.tensor
        for grad, length in zip(grads, lengths, strict=True)
    ]
    return BoundedValue(torch.cat(tensors, dim))


def _outer(a: Any, b: Any) -> BoundedValue:
    value = torch.outer(a.tensor, b.tensor)
    return BoundedValue(value, rounding_error(value))


_ELEMENTWISE = ("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "erf", "sgn")
_REARRANGING: dict[str, Callable[..., torch.Tensor]] = {
    "t": _transpose,
    "transpose": torch.transpose,
    "permute": torch.permute,
    "reshape": torch.reshape,
    "squeeze": lambda x, dim: x.squeeze(dim) if x.dim() else x,
    "unsqueeze": _unsqueeze,
    "expand": _expand,
    "pad": _pad,
    "select": torch.select,
    "narrow": torch.narrow,
    "scatter": _scatter,
    "select_backward": _select_backward,
    "slice_backward": _slice_backward,
}
_SUMMING: dict[str, Callable[..., torch.Tensor]] = {
    "sum": _sum,
    "mean": _mean,
    "sum_to": lambda x, shape: x.sum_to_size(shape),
    "sum_of_repeats": _sum_of_repeats,
    "index_backward": _index_backward,
    "gather_backward": _gather_backward,
    "embedding_backward": _embedding_backward,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **PLAIN_FUNCTIONS,
    **{name: elementwise(getattr(torch, name)) for name in _ELEMENTWISE},
    **{name: linear(function) for name, function in _REARRANGING.items()},
    **{name: linear(function, sums=True) for name, function in _SUMMING.items()},
    "conj": conjugate,
    "softplus": elementwise(F.softplus),
    "outer": _outer,
    "one_hot": _one_hot,
    "where": _choose,
    "clamp": _clamp,
    "stack": _stack,
    "cat": _cat,
    "add_up": partial(reduce, operator.add),
}
"""Name in formulas → function."""
