"""Tells what an object of the user's program is by its class alone, and where a tensor has its numbers.

``isinstance`` may run the user's code.
"""

from typing import Any, Literal, NamedTuple, TypeGuard

import torch

from hookviz.autograd.torch_internals import FakeTensor
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS

_ORDINARY = (torch.Tensor, torch.nn.Parameter)


def is_tensor(item: Any) -> TypeGuard[torch.Tensor]:
    """Return whether an object is a tensor; a mock that only claims to be one is none.

    >>> from unittest.mock import MagicMock
    >>> is_tensor(torch.ones(1)), is_tensor(MagicMock(spec=torch.Tensor))
    (True, False)
    """
    return issubclass(type(item), torch.Tensor)


def runs_user_code(tensor: torch.Tensor) -> bool:
    """Return whether each op on a tensor runs a ``__torch_dispatch__`` of the user's, even one that changes nothing.

    Those of torch's own classes, such as DTensor, are none of the user's.
    """
    kind = type(tensor)
    return (
        kind not in _ORDINARY
        and kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
        and not kind.__module__.startswith("torch.")
    )


def is_symbolic(tensor: torch.Tensor) -> bool:
    """Return whether the sizes of a tensor are symbols: to compare one adds a guard to the program that has them."""
    kind = type(tensor)
    return (
        kind not in _ORDINARY and issubclass(kind, FakeTensor) and any(type(size) is not int for size in tensor.shape)
    )


def why_opaque(tensor: torch.Tensor) -> Literal["symbolic", "class"] | None:
    """Return why hookviz may look at the shape, dtype and version of a tensor only; None if nothing is disturbed."""
    if type(tensor) in _ORDINARY:
        return None
    return "symbolic" if is_symbolic(tensor) else "class" if runs_user_code(tensor) else None


def is_opaque(tensor: torch.Tensor) -> bool:
    """Return whether hookviz may look at the shape, dtype and version of a tensor only: anything else disturbs."""
    return why_opaque(tensor) is not None


def has_own_storage(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has its storage itself: that of a subclass may be a stand-in."""
    return type(tensor) in _ORDINARY


def has_few_numbers(tensor: torch.Tensor) -> bool:
    """Return whether all numbers of a tensor are kept."""
    return not is_opaque(tensor) and tensor.numel() <= MAX_KEPT_NUMBERS


Layout = tuple[tuple[int, int], ...]
"""(stride, size) of each run of numbers, sorted; adjacent dimensions that continue each other form one run."""


class Memory(NamedTuple):
    """Where a tensor has its numbers; all 0 if it has none, or if torch must not be asked."""

    address: int = 0
    """Of its first number."""
    storage: int = 0
    """The address at which its storage begins."""
    layout: Layout | None = None
    """Which numbers of the storage a large tensor shows, regardless of the order and split of its dimensions."""


def find_memory(tensor: torch.Tensor) -> Memory:
    """Find the memory of a tensor, without reading its numbers.

    ``untyped_storage()`` would give the storage too, but its Python wrapper counts as a user of the storage, and then
    the engine would no longer sum into this gradient in place.

    Raises:
        RuntimeError, NotImplementedError: torch gives no address (sparse, functorch).
    """
    if is_opaque(tensor):
        return Memory()
    storage = address = memory_address(tensor)
    offset = int(tensor.storage_offset())
    if offset and address:
        storage -= offset * tensor.element_size()
    is_large = tensor.numel() > MAX_KEPT_NUMBERS and not tensor.is_neg()
    return Memory(address, storage, _find_layout(tensor) if is_large else None)


def memory_address(tensor: torch.Tensor) -> int:
    """Return the memory address of the numbers of a tensor; 0 if it has no memory.

    Fake tensors are not asked: torch warns that reading their address is "almost definitely a bug".

    Raises:
        RuntimeError, NotImplementedError: torch gives no address (sparse, functorch).
    """
    return 0 if type(tensor) not in _ORDINARY and issubclass(type(tensor), FakeTensor) else tensor.data_ptr()


def _find_layout(tensor: torch.Tensor) -> Layout:
    if tensor.is_contiguous():
        return ((1, tensor.numel()),)
    runs: list[tuple[int, int]] = []
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and runs and runs[-1][0] * runs[-1][1] == step:
            runs[-1] = (runs[-1][0], runs[-1][1] * size)
        elif size > 1:
            runs.append((step, size))
    return tuple(runs)
