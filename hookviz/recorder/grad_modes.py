"""Whether torch records a graph right now, and whether tensors belong to one."""

import sys
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

import torch
import torch.utils.checkpoint

from hookviz.trace.rows import GradMode

_REENTRANT_FORWARD = torch.utils.checkpoint.CheckpointFunction.forward.__code__
"""The first forward of a reentrant checkpoint, which runs in ``no_grad``."""


def grad_mode() -> GradMode:
    """Return the mode in which the calling code runs.

    >>> with torch.inference_mode():
    ...     grad_mode()
    'inference'
    """
    if torch.is_grad_enabled():
        return "grad"
    if torch.is_inference_mode_enabled():
        return "inference"
    return "checkpoint" if is_running(_REENTRANT_FORWARD) else "no_grad"


def is_running(code: CodeType) -> bool:
    """Return whether a function runs now, in this thread, that has this code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


def requires_grad(items: Iterable[Any]) -> bool | None:
    """Return whether one of the tensors among ``items`` requires grad; None if there are no tensors."""
    flags = [item.requires_grad for item in items if isinstance(item, torch.Tensor)]
    return any(flags) if flags else None
