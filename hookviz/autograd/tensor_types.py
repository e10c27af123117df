"""Tells what an object of the user's program is by its class alone: ``isinstance`` may run its code."""

from typing import Any, TypeGuard

import torch


def is_tensor(item: Any) -> TypeGuard[torch.Tensor]:
    """Return whether an object is a tensor; a mock that only claims to be one is none.

    >>> from unittest.mock import MagicMock
    >>> is_tensor(torch.ones(1)), is_tensor(MagicMock(spec=torch.Tensor))
    (True, False)
    """
    return issubclass(type(item), torch.Tensor)
