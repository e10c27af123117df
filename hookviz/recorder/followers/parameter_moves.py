"""Measures how far an optimizer moves its parameters in one step."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NamedTuple

import torch
from torch.optim import Optimizer

from hookviz.autograd import tensor_statistics

MAX_MOVES = 10
"""Of one step, this many parameters are measured, the first ones."""
MAX_NUMBERS = 2**20
"""With more numbers than this in all, the parameters beyond are not measured: each is copied while the step runs."""


class _Copy(NamedTuple):
    """A parameter before a step."""

    position: int
    """Its position among the parameters of the optimizer."""
    group: int
    parameter: torch.Tensor
    numbers: torch.Tensor


class Move(NamedTuple):
    """How far a parameter was moved."""

    position: int
    group: int
    norm: float | None
    """None if it is not finite."""


def copy_parameters(optimizer: Optimizer) -> list[_Copy]:
    """Copy the first parameters of an optimizer, as they are before its step."""
    copies, room = list[_Copy](), MAX_NUMBERS
    for position, (group, parameter) in enumerate(_list_parameters(optimizer)):
        if len(copies) == MAX_MOVES or not _is_readable(parameter) or parameter.numel() > room:
            break
        room -= parameter.numel()
        copies.append(_Copy(position, group, parameter, parameter.detach().clone()))
    return copies


def measure_moves(copies: Sequence[_Copy]) -> list[Move]:
    """Return how far each parameter is from its copy."""
    pairs = [(copy, copy.parameter.detach()) for copy in copies]
    norms = [(copy, float(torch.linalg.vector_norm(now - copy.numbers))) for copy, now in pairs]
    return [Move(copy.position, copy.group, norm if isfinite(norm) else None) for copy, norm in norms]


def _list_parameters(optimizer: Optimizer) -> Iterator[tuple[int, torch.Tensor]]:
    for number, group in enumerate(optimizer.param_groups):
        yield from ((number, parameter) for parameter in group["params"])


def _is_readable(tensor: torch.Tensor) -> bool:
    """Whether a tensor can be copied and compared at once, without waiting for a device."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and tensor.is_floating_point()
        and not tensor.is_meta
        and not tensor_statistics.reading_waits(tensor)
    )
