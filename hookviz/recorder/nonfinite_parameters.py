"""Reads the parameters and buffers of a module that returns NaN although its input has none."""

import weakref
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import torch

from hookviz.autograd.module_tree import own_buffers, own_parameters
from hookviz.recorder.pytree import PytreeLeaf
from hookviz.trace import NonfiniteRow, TraceData
from hookviz.trace.value_rows import DeferredRow
from hookviz.trace.values import get_norm_nan_inf


class NonfiniteParameters:
    """Finds the parameters and buffers with NaN or Inf, once for each module; a healthy run reads none of them.

    Other rows of a trace hold the parameters that get a gradient; these also hold frozen ones, and running statistics.
    """

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._found: weakref.WeakValueDictionary[int, torch.nn.Module] = weakref.WeakValueDictionary()
        """``id`` → module for which there are rows."""

    def check(self, module: torch.nn.Module, call: int, inputs: Sequence[int], outputs: Sequence[PytreeLeaf]) -> None:
        """Add rows for the parameters and buffers that may have put NaN into ``outputs``; all values are indexes."""
        values = self.trace.values
        if not any(_has_nan(values[leaf.value]) for leaf in outputs) or self._found.get(id(module)) is module:
            return
        if any(_has_nan(values[index]) for index in inputs):
            return
        rows = [NonfiniteRow(call, name, kind) for name, kind in _find_nonfinite(module)]
        if rows:
            self._found[id(module)] = module
            self.trace.nonfinite += rows


def _has_nan(value: Any) -> bool:
    """Whether a value that has been read contains NaN; the norm of a large tensor with NaN is NaN."""
    if isinstance(value, DeferredRow) or value[-1] is not None:
        return False
    statistics = value[-2]
    if statistics is not None:
        return bool(statistics[3] != statistics[3])
    return get_norm_nan_inf(value)[1] > 0


def _find_nonfinite(module: torch.nn.Module) -> Iterator[tuple[str, str]]:
    """Yield (name, ``nan`` or ``inf``) of each own parameter or buffer of a module that contains NaN or Inf."""
    for name, tensor in chain(own_parameters(module), own_buffers(module)):
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not tensor.is_floating_point() or tensor.is_meta:
            continue
        if tensor.detach().isnan().any():
            yield name, "nan"
        elif tensor.detach().isinf().any():
            yield name, "inf"
