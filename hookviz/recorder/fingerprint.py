"""Fingerprints of gradients: enough to recognise a gradient later without holding it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hookviz.autograd.tensor_statistics import memory_address
from hookviz.autograd.tensor_types import is_opaque
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS

Mark = tuple[int, int]
"""(address of a tensor's numbers, its version): while both stay, nobody has written to it through torch."""


Layout = tuple[tuple[int, int], ...]
"""(stride, size) of each run of numbers, sorted; adjacent dimensions that continue each other form one run."""


@dataclass(slots=True)
class Fingerprint:
    """What hookviz remembers of a gradient at one moment, without holding it.

    ``value`` is the number of its value in the trace, or None if it has not been measured.
    """

    identity: int
    mark: Mark
    storage: int
    value: int | None
    layout: Layout | None = None
    """Which numbers of the storage a large tensor shows, regardless of the order and split of its dimensions."""

    def is_of(self, tensor: torch.Tensor) -> bool:
        """Return whether this is the fingerprint of ``tensor``, and nobody has written to it through torch since."""
        return self.identity == id(tensor) and self.mark == mark_of(tensor)

    def find_effect(self, before: "Fingerprint", has_same_numbers: Callable[[], bool]) -> str:
        """Return what became of a tensor since ``before``: "kept", "edited" in place, or "replaced" by another one.

        ``has_same_numbers`` is asked only if it decides: a write past torch leaves the version as it was.
        """
        if self.identity != before.identity:
            return "replaced"
        return "kept" if self.is_unwritten_since(before) and has_same_numbers() else "edited"

    def is_unwritten_since(self, other: "Fingerprint") -> bool:
        """Return whether both are of the same numbers in memory, and nobody wrote to them through torch in between."""
        return self.mark == other.mark

    def is_at_address_of(self, other: "Fingerprint") -> bool:
        """Return whether both are of the same numbers in memory, perhaps written to in between."""
        return self.mark[0] == other.mark[0]

    def is_view_of(self, other: "Fingerprint") -> bool:
        """Return whether a large tensor shows the numbers of another one, unwritten, perhaps with other strides."""
        return (self.mark, self.layout) == (other.mark, other.layout)


SentGradient = tuple[int | None, int, Fingerprint]
"""(sending node, index of its edge, the gradient on that edge); the seed has no node."""


Gradients = Sequence[torch.Tensor | None]


def fingerprint_of(tensor: torch.Tensor, value: int | None = None) -> Fingerprint:
    """Take the fingerprint of ``tensor`` without reading its numbers.

    ``untyped_storage()`` would give the storage too, but its Python wrapper counts as a user of the storage, and then
    the engine would no longer sum into this gradient in place.
    """
    try:
        if is_opaque(tensor):
            return Fingerprint(id(tensor), (0, tensor._version), 0, value)
        storage = pointer = memory_address(tensor)
        offset = int(tensor.storage_offset())
        if offset and pointer:
            storage -= offset * tensor.element_size()
        layout = _layout(tensor) if tensor.numel() > MAX_KEPT_NUMBERS and not tensor.is_neg() else None
        return Fingerprint(id(tensor), (pointer, tensor._version), storage, value, layout)
    except (RuntimeError, NotImplementedError):  # sparse, functorch and inference tensors lack a storage or a version
        return Fingerprint(id(tensor), (0, 0), 0, value)


def mark_of(tensor: torch.Tensor) -> Mark:
    """Return the address of the numbers of ``tensor``, and its version."""
    try:
        return 0 if is_opaque(tensor) else memory_address(tensor), tensor._version
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
    """Return the value number of a fingerprint; None if there is no fingerprint."""
    return None if fingerprint is None else fingerprint.value


def single_or_tuple(values: list[int | None]) -> Any:
    """Return a single value as itself, and several values as a tuple."""
    return values[0] if len(values) == 1 else tuple(values)


def value_numbers(fingerprints: list[Fingerprint | None]) -> Any:
    """Return the value number of a single fingerprint, and those of several as a tuple."""
    if len(fingerprints) == 1:
        return None if fingerprints[0] is None else fingerprints[0].value
    return tuple([None if fingerprint is None else fingerprint.value for fingerprint in fingerprints])
