"""Measure a tensor for a trace: its numbers if they are few, else statistics. The tensor itself is never kept."""

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch

from hookviz.autograd.deferred_values import Header, as_real, defer_norm, defer_statistics, defer_values, fetch_all
from hookviz.autograd.tensor_types import is_symbolic, why_opaque
from hookviz.autograd.torch_internals import (
    DisableTorchFunction,
    disable_dispatch_modes,
    dispatch_modes,
    is_functorch_tensor,
    profiler_is_on,
    switch_profiler,
)
from hookviz.trace.notes import Note
from hookviz.trace.value_rows import (
    MAX_KEPT_NUMBERS,
    VERY_LARGE,
    DeferredRow,
    Statistics,
    StatisticsMode,
    ValueRow,
    get_stored_rows,
)


@cache
def _short_name(kind: torch.dtype | torch.device) -> str:
    """Return the name of a dtype or a device, without ``torch.``."""
    return str(kind).removeprefix("torch.")


_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
_LANES, _MAX_BYTE = 8, 255
"""Bytes in an int64 that are added up at once, and how many such int64 can be added before a byte overflows."""
_COUNT_DIRECTLY, _COUNT_PACKED = 2**13, 2**16
"""Up to the first number of elements ``count_nonzero`` is fastest; from the second on, adding packed bytes is."""
_AMINMAX_LIMIT = 2**17
"""From this number of elements on, reading them costs more than launching a second kernel."""
_SMALLEST_RMS = 1e-15
"""With a smaller root mean square, some squares underflow in float32: 1e-23 squared is 0."""


# Looked up once: measuring a single number takes a few microseconds in all, and there may be thousands.
_TENSOR, _FLOAT, _DENSE = torch.Tensor, torch.float32, torch.strided


def hidden_from_tools() -> AbstractContextManager[Any]:
    """Hide what torch computes within this context from the user's ``TorchDispatchMode`` and from profilers."""
    return _hide() if dispatch_modes() or profiler_is_on() else nullcontext()


class _ProfilerState(threading.local):
    paused = False
    """Whether hookviz has paused the profiler of this thread; torch has no way to ask."""


_profiler_state = _ProfilerState()


@contextmanager
def _hide() -> Iterator[None]:
    outermost = profiler_is_on() and not _profiler_state.paused
    with disable_dispatch_modes():
        if not outermost:
            yield
            return
        _profiler_state.paused = True
        switch_profiler(False)
        try:
            yield
        finally:
            switch_profiler(True)
            _profiler_state.paused = False


def measure(tensor: torch.Tensor) -> ValueRow:
    """Return the value of ``tensor`` as plain data. Never raises, changes nothing and holds no reference to it."""
    with DisableTorchFunction():
        return tuple(measure_or_defer(tensor, wait=True))


def reading_waits(tensor: torch.Tensor) -> bool:
    """Whether reading ``tensor`` now would wait for a device, so that reading is deferred."""
    # Apple's device (mps) has no float64, the dtype of deferred statistics.
    return not tensor.is_cpu and tensor.device.type != "mps"


def can_be_read(tensor: torch.Tensor) -> bool:
    """Return whether the numbers of an ordinary tensor can be read at once, without waiting for a device."""
    is_ordinary = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    return is_ordinary and not tensor.is_meta and not reading_waits(tensor)


def has_readable_numbers(tensor: torch.Tensor) -> bool:
    """Return whether the numbers of a tensor can be read as those of an ordinary one, on whatever device."""
    return why_opaque(tensor) is None and _why_hidden(tensor) is None


def fetch_pending(values: list[Any], start: int) -> int:
    """Fetch the values from ``start`` on that are still on a device; return where to start the next time.

    Raises:
        Exception: the device fails; the values that were not fetched become unreadable ones.
    """
    if not any(type(row) is DeferredRow for row in get_stored_rows(values, start)):
        return len(values)
    try:
        with DisableTorchFunction(), hidden_from_tools():
            fetch_all(values, start)
    except Exception as error:
        for index in range(start, len(values)):
            if type(values[index]) is DeferredRow:
                values[index] = _unreadable_row(error)
        raise
    return len(values)


def shape_row(tensor: torch.Tensor) -> ValueRow:
    """Make the row of a tensor whose numbers are not read: it has the shape in their place."""
    if is_symbolic(tensor):
        return _symbolic_row(tensor)
    shape = tuple(tensor.shape)
    return shape, _short_name(tensor.dtype), _short_name(tensor.device), None, None, Note.verbatim(str(shape))


def measure_or_defer(tensor: torch.Tensor, choice: StatisticsMode | None = "all", *, wait: bool = False) -> Any:
    """As ``measure``, for callers that have switched off ``__torch_function__`` already.

    Without a ``choice``, only the norm of a very large tensor is read. Unless ``wait``, the numbers of a tensor on a
    device stay there for now: a ``DeferredRow`` stands for the row.
    """
    try:
        with hidden_from_tools():
            return _measure_row(tensor, choice, wait)
    except Exception as error:  # torch cannot reduce this kind of tensor
        return _unreadable_row(error)


def as_scalar(tensor: torch.Tensor) -> float | None:
    """Return the number in an ordinary float32 tensor without dimensions on the CPU; None for any other tensor.

    >>> as_scalar(torch.tensor(2.5)), as_scalar(torch.tensor([2.5]))
    (2.5, None)
    """
    if type(tensor) is not _TENSOR or tensor.dtype is not _FLOAT or tensor.dim() or not tensor.is_cpu:
        return None
    if (
        dispatch_modes()
        or profiler_is_on()
        or is_functorch_tensor(tensor)
        or tensor.layout is not _DENSE
        or reading_waits(tensor)
    ):
        return None
    try:
        return tensor.item()
    except RuntimeError:  # a batched tensor, as with ``is_grads_batched``
        return None


def append_value(values: Any, tensor: torch.Tensor, choice: StatisticsMode | None) -> int:
    """Append the value of ``tensor`` to a trace's ``values``, a single number in compact form; return its index."""
    number = as_scalar(tensor)
    if number is None:
        values.append(measure_or_defer(tensor, choice))
    else:
        values.append_compact(number)
    return len(values) - 1


def _unreadable_row(error: Exception) -> ValueRow:
    return (), "", "", None, None, Note.of("value.unknown", why=type(error).__name__)


def _measure_row(tensor: torch.Tensor, choice: StatisticsMode | None, wait: bool) -> ValueRow | DeferredRow:
    opacity = why_opaque(tensor)
    if opacity is not None:
        return _symbolic_row(tensor) if opacity == "symbolic" else _class_row(tensor)
    shape = () if tensor.is_nested else tuple(tensor.shape)  # torch gives no shape of a nested tensor
    header = shape, _short_name(tensor.dtype), _short_name(tensor.device)
    note = _why_hidden(tensor)
    if note is not None:
        return (*header, None, None, note)
    defer = not wait and reading_waits(tensor)
    if tensor.numel() > MAX_KEPT_NUMBERS:
        return _statistics_row(header, tensor, choice, defer)
    return defer_values(header, tensor) if defer else (*header, tensor.tolist(), None, None)


def _statistics_row(
    header: Header, tensor: torch.Tensor, choice: StatisticsMode | None, defer: bool
) -> ValueRow | DeferredRow:
    """Make the row of a tensor with many numbers."""
    reads_norm = choice == "norm" or (choice is None and tensor.numel() > VERY_LARGE)
    tensor, repeats = _without_repeats(tensor.detach())
    if defer:
        return (defer_norm if reads_norm else defer_statistics)(header, tensor, repeats)
    return (*header, None, (_norm_alone if reads_norm else _statistics)(tensor, repeats), None)


def _symbolic_row(tensor: torch.Tensor) -> ValueRow:
    """Make the row of a tensor whose sizes are symbols: they stand in the place of its numbers."""
    text = f"({', '.join(map(str, tensor.shape))})"
    return (), _short_name(tensor.dtype), _short_name(tensor.device), None, None, Note.verbatim(text)


def _class_row(tensor: torch.Tensor) -> ValueRow:
    """Make the row of a tensor of which only class, shape and dtype are read."""
    note = Note.of("value.hidden", kind=type(tensor).__name__)
    return tuple(tensor.shape), _short_name(tensor.dtype), "", None, None, note


def _why_hidden(tensor: torch.Tensor) -> Note | None:
    """A note why the numbers of ``tensor`` are not read; None for an ordinary tensor."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        return Note.of("value.hidden", kind=kind.__name__)
    if tensor.layout is not torch.strided:
        return Note.of("value.hidden", kind=str(tensor.layout).removeprefix("torch."))
    if tensor.is_nested or tensor.is_quantized or tensor.is_meta:
        return Note.of("value.hidden", kind="nested" if tensor.is_nested else "meta" if tensor.is_meta else "quantized")
    if is_functorch_tensor(tensor):
        return Note.of("value.hidden", kind="functorch")
    return None


def drop_repeats(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of ``tensor`` with each number once: an expanded dimension repeats the same numbers."""
    if 0 not in tensor.stride():
        return tensor
    return tensor[tuple(slice(None) if step else slice(0, 1) for step in tensor.stride())]


def in_memory_order(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of ``tensor`` whose dimensions are in the order of its memory."""
    return tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))


def _without_repeats(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The numbers of ``tensor`` without expanded dimensions, floating-point or complex, and how often each repeats."""
    total = tensor.numel()
    tensor = drop_repeats(tensor)
    plain = tensor if tensor.is_floating_point() or tensor.is_complex() else tensor.double()
    return plain, total // tensor.numel()


def _norm_alone(tensor: torch.Tensor, repeats: int) -> Statistics:
    """The norm, which is finite only if all numbers are; if it is not finite, all statistics."""
    norm = _norm(tensor)
    if not math.isfinite(norm):
        return _statistics(tensor, repeats)
    return (None, None, None, norm * math.sqrt(repeats), 0, 0, None)


def _statistics(tensor: torch.Tensor, repeats: int) -> Statistics:
    """(min, max, mean, norm, nan, inf, zero)."""
    if tensor.is_complex():
        return _complex_statistics(tensor, repeats)
    low, high = (x.item() for x in _extremes(tensor))
    bounded = math.isfinite(low) and math.isfinite(high)
    mean = _mean(tensor, bounded)
    norm = _norm(tensor, bounded) if low or high else 0.0
    nan, inf = (0, 0) if bounded else _count_nonfinite(tensor)
    zero = 0 if low > 0 or high < 0 else tensor.numel() - _count_nonzero(tensor)
    return (low, high, mean, norm * math.sqrt(repeats), nan * repeats, inf * repeats, zero * repeats)


def _extremes(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest and the largest number.

    ``aminmax`` is one kernel instead of two, but reads numbers of 32 or 64 bits more slowly than ``amin`` and ``amax``,
    and far more slowly where memory is not read in order.
    """
    if not tensor.is_contiguous():
        tensor = in_memory_order(tensor)
    at_once = tensor.is_contiguous() and (tensor.numel() < _AMINMAX_LIMIT or tensor.dtype in _WIDER)
    return torch.aminmax(tensor) if at_once else (tensor.amin(), tensor.amax())


def _mean(tensor: torch.Tensor, bounded: bool) -> float:
    total = tensor.sum(dtype=_WIDER.get(tensor.dtype)).item()
    if bounded and not math.isfinite(total):
        total = tensor.sum(dtype=torch.float64).item()  # the sum overflowed, not the tensor
    return total / tensor.numel()


def _norm(tensor: torch.Tensor, bounded: bool = True) -> float:
    """The 2-norm; computed again in float64 if squares overflowed or underflowed in float32."""
    tensor = as_real(tensor)
    norm: float = torch.linalg.vector_norm(tensor, dtype=_WIDER.get(tensor.dtype)).item()
    is_inexact = norm == math.inf or norm < _SMALLEST_RMS * math.sqrt(tensor.numel())
    if is_inexact and bounded and tensor.dtype is not torch.float64 and tensor.device.type != "mps":
        norm = torch.linalg.vector_norm(tensor, dtype=torch.float64).item()
    return norm


def _count_nonzero(tensor: torch.Tensor) -> int:
    """As ``tensor.count_nonzero()``, but many times as fast for floating-point numbers on a CPU.

    The truth values, one byte each, are added up eight at a time as int64; the bytes of these few sums are then
    added up.
    """
    if tensor.numel() <= _COUNT_DIRECTLY:
        return int(tensor.count_nonzero().item())
    truths = tensor.bool()
    if truths.numel() < _COUNT_PACKED:
        return int(truths.view(torch.uint8).sum(dtype=torch.int32).item())
    flat = truths.as_strided((truths.numel(),), (1,))  # a new tensor has no gaps, in any order of its dimensions
    whole = flat.numel() // (_LANES * _MAX_BYTE) * (_LANES * _MAX_BYTE)
    sums = flat[:whole].view(torch.int64).view(-1, _MAX_BYTE).sum(1).view(torch.uint8)
    counter = torch.int32 if whole < 2**31 else torch.int64  # summing bytes as int64 takes three times as long
    return int(sums.sum(dtype=counter).item() + flat[whole:].count_nonzero().item())


def _count_nonfinite(tensor: torch.Tensor) -> tuple[int, int]:
    return int(tensor.isnan().sum().item()), int(tensor.isinf().sum().item())


def _complex_statistics(tensor: torch.Tensor, repeats: int) -> Statistics:
    norm = _norm(tensor) * math.sqrt(repeats)
    nan, inf = (0, 0) if math.isfinite(norm) else _count_nonfinite(tensor)
    zero = tensor.numel() - _count_nonzero(tensor)
    return (math.nan, math.nan, math.nan, norm, nan * repeats, inf * repeats, zero * repeats)
