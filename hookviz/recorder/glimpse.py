"""What can be seen of a gradient without holding it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from hookviz.values import FEW

Mark = tuple[int, int]
"""(where a tensor's numbers lie, its version): while both stay, nobody has written to it through torch."""


Layout = tuple[tuple[int, int], ...]
"""(size, stride) of each dimension, sorted."""


@dataclass(slots=True)
class Glimpse:
    """What was seen of a gradient at one moment, without holding it; its value once somebody has looked."""

    identity: int
    mark: Mark
    storage: int
    value: int | None
    layout: Layout | None = None
    """For a tensor of many numbers: which of them it shows, whatever the order of its dimensions."""


class Sent(NamedTuple):
    """What came along one edge; node -1 is the seed."""

    node: int
    slot: int
    glimpse: Glimpse


Gradients = Sequence[torch.Tensor | None]


def glimpse_of(tensor: torch.Tensor, value: int | None = None) -> Glimpse:
    """``tensor`` as far as can be seen without reading its numbers.

    ``untyped_storage()`` would tell the storage too, but its Python wrapper counts as a user of the storage, and the
    engine would no longer sum into this gradient in place.
    """
    try:
        pointer = tensor.data_ptr()
        storage = pointer - int(tensor.storage_offset()) * tensor.element_size()
        layout = tuple(sorted(zip(tensor.shape, tensor.stride(), strict=True))) if tensor.numel() > FEW else None
        return Glimpse(id(tensor), (pointer, tensor._version), storage, value, layout)
    except (RuntimeError, NotImplementedError):  # sparse, functorch, inference: no storage or no version to compare
        return Glimpse(id(tensor), (0, 0), 0, value)


def value_of(glimpse: Glimpse | None) -> int | None:
    return None if glimpse is None else glimpse.value


def one(values: list[int | None]) -> Any:
    """One value as itself, several as a tuple."""
    return values[0] if len(values) == 1 else tuple(values)
