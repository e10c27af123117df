"""What can be seen of a gradient without holding it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hookviz.autograd.tensor_statistics import memory_address
from hookviz.trace.value_rows import FEW

Mark = tuple[int, int]
"""(where a tensor's numbers lie, its version): while both stay, nobody has written to it through torch."""


Layout = tuple[tuple[int, int], ...]
"""(stride, size) of each run of numbers, sorted; dimensions that continue each other are one run."""


@dataclass(slots=True)
class Fingerprint:
    """What was seen of a gradient at one moment, without holding it; its value once somebody has looked."""

    identity: int
    mark: Mark
    storage: int
    value: int | None
    layout: Layout | None = None
    """For a tensor of many numbers: which of them it shows, whatever the order and the cut of its dimensions."""


Sent = tuple[int, int, Fingerprint]
"""(node, which of its edges, what came along it); node -1 is the seed."""


Gradients = Sequence[torch.Tensor | None]


def fingerprint_of(tensor: torch.Tensor, value: int | None = None) -> Fingerprint:
    """``tensor`` as far as can be seen without reading its numbers.

    ``untyped_storage()`` would tell the storage too, but its Python wrapper counts as a user of the storage, and the
    engine would no longer sum into this gradient in place.
    """
    try:
        storage = pointer = memory_address(tensor)
        offset = int(tensor.storage_offset())
        if offset and pointer:
            storage -= offset * tensor.element_size()
        layout = _layout(tensor) if tensor.numel() > FEW and not tensor.is_neg() else None
        return Fingerprint(id(tensor), (pointer, tensor._version), storage, value, layout)
    except (RuntimeError, NotImplementedError):  # sparse, functorch, inference: no storage or no version to compare
        return Fingerprint(id(tensor), (0, 0), 0, value)


def mark_of(tensor: torch.Tensor) -> Mark:
    """Where the numbers of ``tensor`` lie, and its version."""
    try:
        return memory_address(tensor), tensor._version
    except (RuntimeError, NotImplementedError):
        return 0, 0


def _layout(tensor: torch.Tensor) -> Layout:
    if tensor.is_contiguous():
        return ((1, tensor.numel()),)
    runs: list[tuple[int, int]] = []
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and runs and runs[-1][0] * runs[-1][1] == step:
            runs[-1] = (runs[-1][0], runs[-1][1] * size)
        elif size > 1:
            runs.append((step, size))
    return tuple(runs)


def value_of(fingerprint: Fingerprint | None) -> int | None:
    return None if fingerprint is None else fingerprint.value


def one(values: list[int | None]) -> Any:
    """One value as itself, several as a tuple."""
    return values[0] if len(values) == 1 else tuple(values)


def values_of(fingerprints: list[Fingerprint | None]) -> Any:
    """The value of one fingerprint, or those of several as a tuple."""
    if len(fingerprints) == 1:
        return None if fingerprints[0] is None else fingerprints[0].value
    return tuple([None if fingerprint is None else fingerprint.value for fingerprint in fingerprints])
