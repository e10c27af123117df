"""Fingerprints of gradients: enough to recognise a gradient later without holding it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hookviz.autograd.tensor_types import Layout, find_memory, is_opaque, memory_address

Mark = tuple[int, int]
"""(address of a tensor's numbers, its version): while both stay, nobody has written to it through torch."""


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
    """As ``Memory.layout``."""

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
    """Take the fingerprint of ``tensor`` without reading its numbers."""
    try:
        memory, version = find_memory(tensor), tensor._version
    except (RuntimeError, NotImplementedError):  # sparse, functorch and inference tensors lack a storage or a version
        return Fingerprint(id(tensor), (0, 0), 0, value)
    return Fingerprint(id(tensor), (memory.address, version), memory.storage, value, memory.layout)


def mark_of(tensor: torch.Tensor) -> Mark:
    """Return the address of the numbers of ``tensor``, and its version."""
    try:
        return 0 if is_opaque(tensor) else memory_address(tensor), tensor._version
    except (RuntimeError, NotImplementedError):
        return 0, 0


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
