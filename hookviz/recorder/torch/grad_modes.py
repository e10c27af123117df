"""Whether torch records a graph right now, and whether tensors belong to one."""

import sys
from collections.abc import Iterable
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
import torch.utils.checkpoint

from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import functorch_level
from hookviz.trace.rows import GradMode

_REENTRANT_FORWARD = torch.utils.checkpoint.CheckpointFunction.forward.__code__
"""The first forward of a reentrant checkpoint, which runs in ``no_grad``."""

_APPLY = getattr(torch.autograd.Function.apply, "__func__", None)
"""Calls the forward of an ``autograd.Function``; from torch 2.14 on it is written in C++, and has no frame."""
APPLY_HAS_A_FRAME = _APPLY is not None


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
    return "checkpoint" if _is_running({_REENTRANT_FORWARD}) else "no_grad"


def is_transformed() -> bool:
    """Return whether the calling code runs in a transform of ``torch.func``, such as ``vmap``, ``jvp`` or ``grad``.

    >>> is_transformed(), torch.func.vmap(lambda x: x * is_transformed())(torch.ones(1))
    (False, tensor([1.]))
    """
    return functorch_level() is not None


def is_function_running() -> bool:
    """Return whether the forward of an ``autograd.Function`` runs now, in this thread: torch records no graph in it."""
    if isinstance(_APPLY, FunctionType):
        return _is_running({_APPLY.__code__})
    functions = [torch.autograd.Function]
    for function in functions:  # the list grows
        functions += function.__subclasses__()
    forwards = (getattr(vars(function).get("forward"), "__func__", None) for function in functions)
    return _is_running({forward.__code__ for forward in forwards if isinstance(forward, FunctionType)})


def _is_running(codes: set[CodeType]) -> bool:
    """Return whether a function runs now, in this thread, that has one of these codes."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def requires_grad(items: Iterable[Any]) -> bool | None:
    """Return whether one of the tensors among ``items`` requires grad; None if there are no tensors."""
    flags = [item.requires_grad for item in items if is_tensor(item)]
    return any(flags) if flags else None
