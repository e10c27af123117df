"""What a trace keeps of a tensor: its numbers when few, else statistics, and never the tensor itself."""

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from hookviz.autograd.deferred_values import defer_norm, defer_statistics, defer_values, fetch_all, parts_of
from hookviz.autograd.torch_internals import (
    DisableTorchFunction,
    FakeTensor,
    disable_dispatch_modes,
    dispatch_modes,
    is_functorch_tensor,
    profiler_is_on,
    switch_profiler,
)
from hookviz.support.messages import say
from hookviz.trace.notes import Note
from hookviz.trace.value_rows import (
    MAX_KEPT_NUMBERS,
    DeferredRow,
    Statistics,
    StatisticsMode,
    ValueRow,
    get_stored_rows,
)


def checked_statistics(which: object) -> StatisticsMode:
    """``which`` as it was given, once it is seen to be a choice of statistics.

    Raises:
        TypeError: it is not a text.
        ValueError: it is another text.
    """
    known: dict[object, StatisticsMode] = {"all": "all", "norm": "norm"}
    if not isinstance(which, str):
        raise TypeError(say("error.statistics", which=repr(which)))
    if which not in known:
        raise ValueError(say("error.statistics", which=repr(which)))
    return known[which]


class _Names(dict[Any, str]):
    """What a dtype or a device is called, looked up rather than spelled out each time."""

    def __missing__(self, key: Any) -> str:
        self[key] = str(key).removeprefix("torch.")
        return self[key]


_NAMES = _Names()
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
_LANES, _DEEP = 8, 255
"""Of many truth values so many are added up at once, and so many times before one could run over into the next."""
_FEWER, _MANY = 2**13, 2**16
"""Up to so many numbers torch counts in the shortest time; from so many on truth values are added up as said above."""
_LARGE = 2**17
"""From so many numbers on, reading them costs more than starting to."""
_FINE = 1e-15
"""Where the root of the mean square is smaller, some squares are too small for float32: 1e-23 squared is 0 there."""


# Looked up once: of thousands of single numbers each takes a few microseconds as a whole.
_TENSOR, _FLOAT, _DENSE = torch.Tensor, torch.float32, torch.strided


def hidden_from_tools() -> AbstractContextManager[Any]:
    """Within this, neither a ``TorchDispatchMode`` of the user's nor a profiler sees what is done."""
    return _hidden() if dispatch_modes() or profiler_is_on() else nullcontext()


class _Hiding(threading.local):
    profiler = False
    """Whether the profiler of this thread looks away; torch itself does not tell."""


_hiding = _Hiding()


@contextmanager
def _hidden() -> Iterator[None]:
    outermost = profiler_is_on() and not _hiding.profiler
    with disable_dispatch_modes():
        if not outermost:
            yield
            return
        _hiding.profiler = True
        switch_profiler(False)
        try:
            yield
        finally:
            switch_profiler(True)
            _hiding.profiler = False


def address(tensor: torch.Tensor) -> int:
    """Where the numbers of ``tensor`` lie in memory; 0 where it has none.

    To ask that of a fake tensor is "almost definitely a bug", of which torch warns.

    Raises:
        RuntimeError, NotImplementedError: torch does not tell (sparse, functorch).
    """
    return 0 if type(tensor) is not _TENSOR and isinstance(tensor, FakeTensor) else tensor.data_ptr()


def measure(tensor: torch.Tensor) -> ValueRow:
    """The value of ``tensor`` now, as plain data; never raises, changes nothing, keeps nothing of it."""
    with DisableTorchFunction():
        return tuple(measured(tensor, wait=True))


def is_deferred(tensor: torch.Tensor) -> bool:
    """Whether to read ``tensor`` would make a device wait."""
    # Apple's knows no float64, in which the statistics travel.
    return not tensor.is_cpu and tensor.device.type != "mps"


def fetch_pending(values: list[Any], start: int) -> int:
    """Bring over what is still on a device, from ``start`` on; where to start the next time.

    Raises:
        Exception: the device does not answer; what was not brought over is then unknown.
    """
    if not any(type(row) is DeferredRow for row in get_stored_rows(values, start)):
        return len(values)
    try:
        with DisableTorchFunction(), hidden_from_tools():
            fetch_all(values, start)
    except Exception as error:
        for index in range(start, len(values)):
            if type(values[index]) is DeferredRow:
                values[index] = _unknown(error)
        raise
    return len(values)


def shape_only(tensor: torch.Tensor) -> ValueRow:
    """The row of a tensor whose numbers nobody reads: its shape stands for them."""
    shape = tuple(tensor.shape)
    return shape, _NAMES[tensor.dtype], _NAMES[tensor.device], None, None, Note.verbatim(str(shape))


def measured(tensor: torch.Tensor, which: StatisticsMode = "all", *, wait: bool = False) -> Any:
    """As ``measure``, for callers that have switched off ``__torch_function__`` already.

    Unless it is to ``wait``, the numbers of a tensor on a device stay there for now: a ``DeferredRow`` stands for the
    row.
    """
    try:
        with hidden_from_tools():
            return _measure(tensor, which, wait)
    except Exception as error:  # a kind of tensor that torch itself cannot reduce
        return _unknown(error)


def scalar_of(tensor: torch.Tensor) -> float | None:
    """The number of an ordinary float32 tensor of no dimensions on the CPU; None for any other.

    >>> scalar_of(torch.tensor(2.5)), scalar_of(torch.tensor([2.5]))
    (2.5, None)
    """
    if type(tensor) is not _TENSOR or tensor.dtype is not _FLOAT or tensor.dim() or not tensor.is_cpu:
        return None
    if (
        dispatch_modes()
        or profiler_is_on()
        or is_functorch_tensor(tensor)
        or tensor.layout is not _DENSE
        or is_deferred(tensor)
    ):
        return None
    try:
        return tensor.item()
    except RuntimeError:  # one of many that are computed at once, as for ``is_grads_batched``
        return None


def append_value(values: Any, tensor: torch.Tensor, which: StatisticsMode) -> int:
    """Measure ``tensor`` into the ``values`` of a trace, which keep a single number in little room; its place there."""
    number = scalar_of(tensor)
    if number is None:
        values.append(measured(tensor, which))
    else:
        values.append_compact(number)
    return len(values) - 1


def _unknown(error: Exception) -> ValueRow:
    return (), "", "", None, None, Note.of("value.unknown", why=type(error).__name__)


def _measure(tensor: torch.Tensor, which: StatisticsMode, wait: bool) -> ValueRow | DeferredRow:
    shape = () if tensor.is_nested else tuple(tensor.shape)  # of a nested tensor torch refuses to tell it
    head = shape, _NAMES[tensor.dtype], _NAMES[tensor.device]
    note = _strange(tensor)
    if note is not None:
        return (*head, None, None, note)
    later = not wait and is_deferred(tensor)
    if tensor.numel() <= MAX_KEPT_NUMBERS:
        return defer_values(head, tensor) if later else (*head, tensor.tolist(), None, None)
    tensor, share = _bare(tensor.detach())
    if later:
        return (defer_norm if which == "norm" else defer_statistics)(head, tensor, share)
    return (*head, None, (_norm_alone if which == "norm" else _statistics)(tensor, share), None)


def _strange(tensor: torch.Tensor) -> Note | None:
    """Why the numbers of ``tensor`` are left alone, or None for an ordinary tensor."""
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


def _bare(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Floating-point or complex numbers, each once, and how many times ``tensor`` shows each of them."""
    total = tensor.numel()
    if 0 in tensor.stride():  # an expanded dimension holds the same numbers again
        tensor = tensor[tuple(slice(None) if step else slice(0, 1) for step in tensor.stride())]
    plain = tensor if tensor.is_floating_point() or tensor.is_complex() else tensor.double()
    return plain, total // tensor.numel()


def _norm_alone(tensor: torch.Tensor, share: int) -> Statistics:
    """The norm, of which it follows that nothing is NaN or infinite; where it is not finite, all statistics."""
    norm = _norm(tensor)
    if not math.isfinite(norm):
        return _statistics(tensor, share)
    return (None, None, None, norm * math.sqrt(share), 0, 0, None)


def _statistics(tensor: torch.Tensor, share: int) -> Statistics:
    """(min, max, mean, norm, nan, inf, zero)."""
    if tensor.is_complex():
        return _complex_statistics(tensor, share)
    low, high = (x.item() for x in _extremes(tensor))
    bounded = math.isfinite(low) and math.isfinite(high)
    mean = _mean(tensor, bounded)
    norm = _norm(tensor, bounded) if low or high else 0.0
    nan, inf = (0, 0) if bounded else _count_strange(tensor)
    zero = 0 if low > 0 or high < 0 else tensor.numel() - _count_nonzero(tensor)
    return (low, high, mean, norm * math.sqrt(share), nan * share, inf * share, zero * share)


def _extremes(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest and the largest number.

    ``aminmax`` starts once, but reads each number of 32 or 64 bits more slowly than the two others; where memory is not
    read in order it is slower by far.
    """
    if not tensor.is_contiguous():
        tensor = tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))
    at_once = tensor.is_contiguous() and (tensor.numel() < _LARGE or tensor.dtype in _WIDER)
    return torch.aminmax(tensor) if at_once else (tensor.amin(), tensor.amax())


def _mean(tensor: torch.Tensor, bounded: bool) -> float:
    total = tensor.sum(dtype=_WIDER.get(tensor.dtype)).item()
    if bounded and not math.isfinite(total):
        total = tensor.sum(dtype=torch.float64).item()  # the sum overflowed, not the tensor
    return total / tensor.numel()


def _norm(tensor: torch.Tensor, bounded: bool = True) -> float:
    """The 2-norm, once more in float64 where squares were too large or too small for float32."""
    tensor = parts_of(tensor)
    norm: float = torch.linalg.vector_norm(tensor, dtype=_WIDER.get(tensor.dtype)).item()
    lost = norm == math.inf or norm < _FINE * math.sqrt(tensor.numel())
    if lost and bounded and tensor.dtype is not torch.float64 and tensor.device.type != "mps":
        norm = torch.linalg.vector_norm(tensor, dtype=torch.float64).item()
    return norm


def _count_nonzero(tensor: torch.Tensor) -> int:
    """As ``tensor.count_nonzero()``, which takes many times as long for floating-point numbers on a CPU.

    Of many numbers the truth values, a byte each, are added up as if eight of them were one whole number; the few sums
    that come of it are taken apart into bytes again.
    """
    if tensor.numel() <= _FEWER:
        return int(tensor.count_nonzero().item())
    truths = tensor.bool()
    if truths.numel() < _MANY:
        return int(truths.view(torch.uint8).sum(dtype=torch.int32).item())
    flat = truths.as_strided((truths.numel(),), (1,))  # a new tensor has no gaps, whatever the order of dimensions
    whole = flat.numel() // (_LANES * _DEEP) * (_LANES * _DEEP)
    sums = flat[:whole].view(torch.int64).view(-1, _DEEP).sum(1).view(torch.uint8)
    counter = torch.int32 if whole < 2**31 else torch.int64  # bytes summed up as int64 take three times as long
    return int(sums.sum(dtype=counter).item() + flat[whole:].count_nonzero().item())


def _count_strange(tensor: torch.Tensor) -> tuple[int, int]:
    return int(tensor.isnan().sum().item()), int(tensor.isinf().sum().item())


def _complex_statistics(tensor: torch.Tensor, share: int) -> Statistics:
    norm = _norm(tensor) * math.sqrt(share)
    nan, inf = (0, 0) if math.isfinite(norm) else _count_strange(tensor)
    zero = tensor.numel() - _count_nonzero(tensor)
    return (math.nan, math.nan, math.nan, norm, nan * share, inf * share, zero * share)
