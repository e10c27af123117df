"""Samples of tensors, evenly spaced over their numbers, and how they are distributed."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from hookviz.autograd.graph_tensors import has_no_memory
from hookviz.autograd.tensor_statistics import (
    as_scalar,
    can_be_read,
    drop_repeats,
    has_readable_numbers,
    in_memory_order,
)
from hookviz.support.groups import group
from hookviz.trace.histogram_rows import BIN_COUNT, BIN_SHIFT, find_bin

MAX_SAMPLE = 2048
"""Of a tensor with more numbers, at most so many are read: a share of them is then known to within 2 in a hundred,
and a large tensor costs as little as a small one."""
FEW = 8
"""Up to so many numbers are faster to count in Python than with kernels."""

Sample = torch.Tensor | list[float]
"""Numbers that were copied: few as a list, others as a tensor, on the device of what they were copied from."""

_LARGEST = torch.finfo(torch.float32).max


class Distribution(NamedTuple):
    """What is counted and added up of a sample; the sums are over its finite numbers."""

    read: int
    nonfinite: int
    mean: float
    mean_abs: float
    rms: float
    bins: tuple[int, ...]
    counts: tuple[int, ...]


def take_sample(tensor: torch.Tensor) -> Sample | None:
    """Copy up to ``MAX_SAMPLE`` numbers of a tensor; None if it has no real numbers that can be read.

    They are evenly spaced. The space between them has no common divisor with any dimension, so that rows and columns
    are read alike.
    """
    number = as_scalar(tensor)
    if number is not None:
        return [number]
    if (
        not has_readable_numbers(tensor)
        or not tensor.is_floating_point()
        or not tensor.numel()
        or has_no_memory(tensor)
    ):
        return None
    tensor = tensor.detach()
    if tensor.numel() <= FEW and can_be_read(tensor):
        numbers: list[float] = tensor.reshape(-1).tolist()
        return numbers
    # In the order of its memory, which needs no copy unless there are gaps; repeats count once.
    ordered = tensor if tensor.is_contiguous() else in_memory_order(drop_repeats(tensor))
    flat = ordered.reshape(-1)
    space = -(-len(flat) // MAX_SAMPLE)
    while math.gcd(space, len(flat)) > 1 and space > 1:
        space += 1
    return flat[::space].clone()


def fetch_samples(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples with their tensors as float32 on the CPU, after one transfer for each device and dtype.

    What is beyond the range of float32 counts as the largest number in it.
    """
    fetched = list(samples)
    waiting = [(index, sample) for index, sample in enumerate(samples) if isinstance(sample, torch.Tensor)]
    kinds = group(((sample.device, sample.dtype), (index, sample)) for index, sample in waiting)
    for (_device, dtype), pairs in kinds.items():
        indexes, tensors = zip(*pairs, strict=True)
        joined = torch.cat(tensors).cpu()
        if dtype is torch.float64:
            joined = joined.clamp(-_LARGEST, _LARGEST).where(joined.isfinite(), joined)
        parts = torch.split(joined.float(), [len(tensor) for tensor in tensors])
        for index, part in zip(indexes, parts, strict=True):
            fetched[index] = part
    return fetched


def distribute(sample: Sample) -> Distribution:
    """Return the distribution of a sample that was fetched."""
    if isinstance(sample, list):
        return distribute_few(sample)
    wide = sample.double()
    total = wide.sum().item()
    if not math.isfinite(total):
        finite = sample[sample.isfinite()]
        if len(finite) < len(sample):
            return distribute(finite)._replace(nonfinite=len(sample) - len(finite))
    sums = total, torch.linalg.vector_norm(wide, 1).item(), torch.linalg.vector_norm(wide).item()
    return _make_distribution(len(sample), 0, sums, _fill_bins(sample))


def distribute_few(sample: Sequence[float]) -> Distribution:
    """Return the distribution of a few numbers.

    >>> distribute_few([1.0, -1.5, 0.0, 1.2])[-2:]
    ((508, 1534, 0), (2, 1, 1))
    """
    counts: dict[int, int] = {}
    total = size = squares = 0.0
    for number in sample:
        if math.isfinite(number):
            place = find_bin(number)
            counts[place] = counts.get(place, 0) + 1
            total, size, squares = total + number, size + abs(number), squares + number * number
    counted = tuple(counts), tuple(counts.values())
    read = sum(counted[1])
    return _make_distribution(read, len(sample) - read, (total, size, math.sqrt(squares)), counted)


_Counted = tuple[tuple[int, ...], tuple[int, ...]]
"""The bins that are not empty, and how many numbers are in each."""


def _make_distribution(read: int, nonfinite: int, sums: tuple[float, float, float], counted: _Counted) -> Distribution:
    total, size, norm = sums
    count = max(read, 1)
    return Distribution(read, nonfinite, total / count, size / count, norm / math.sqrt(count), *counted)


def _fill_bins(finite: torch.Tensor) -> _Counted:
    """Count float32 numbers in their bins, which their first bits are."""
    counts = ((finite.view(torch.int32) >> BIN_SHIFT) & (BIN_COUNT - 1)).bincount(minlength=BIN_COUNT)
    filled = counts.nonzero().squeeze(1)
    return tuple(filled.tolist()), tuple(counts.index_select(0, filled).tolist())


def measure_move(before: Sample, after: Sample) -> float:
    """Return the root mean square of how far the numbers of a sample are from those before."""
    earlier, later = (torch.as_tensor(one, dtype=torch.float64, device="cpu") for one in (before, after))
    norm: float = torch.linalg.vector_norm(later - earlier).item()
    return norm / math.sqrt(len(earlier))
