"""Tells what an object of the user's program is by its class alone: ``isinstance`` may run its code."""

from typing import Any, TypeGuard

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


def is_opaque(tensor: torch.Tensor) -> bool:
    """Return whether hookviz may look at the shape, dtype and version of a tensor only: anything else disturbs."""
    return type(tensor) not in _ORDINARY and (is_symbolic(tensor) or runs_user_code(tensor))


def has_few_numbers(tensor: torch.Tensor) -> bool:
    """Return whether all numbers of a tensor are kept."""
    return not is_opaque(tensor) and tensor.numel() <= MAX_KEPT_NUMBERS
