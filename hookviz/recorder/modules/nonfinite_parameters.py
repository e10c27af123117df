"""Reads the parameters and buffers of the modules of a model that returns NaN although its input has none."""

import weakref
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import torch

from hookviz.autograd.module_tree import own_buffers, own_parameters
from hookviz.autograd.tensor_statistics import reading_waits
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.recorder.modules.pytree import PytreeLeaf
from hookviz.trace import NonfiniteRow, TraceData
from hookviz.trace.value_rows import DeferredRow
from hookviz.trace.values import get_norm_nan_inf


class NonfiniteParameters:
    """Finds the parameters and buffers with NaN or Inf when a model returns NaN for the first time.

    A healthy run reads none of them. Other rows of a trace hold the parameters that get a gradient; these also hold
    frozen ones, and running statistics.
    """

    def __init__(self, trace: TraceData, modules: ModuleRegistry) -> None:
        self.trace, self.modules = trace, modules
        self._searched: weakref.WeakValueDictionary[int, torch.nn.Module] = weakref.WeakValueDictionary()
        """``id`` → model that was searched."""

    def check(self, model: torch.nn.Module, call: int, inputs: Sequence[int], outputs: Sequence[PytreeLeaf]) -> None:
        """Add rows if ``outputs`` of an outermost call have NaN and the values ``inputs`` have none."""
        values = self.trace.values
        if not any(_has_nan(values[leaf.value]) for leaf in outputs) or self._searched.get(id(model)) is model:
            return
        if any(_has_nan(values[index]) for index in inputs):
            return
        self._searched[id(model)] = model
        for _, module in self.modules.alive_modules():
            number = self.modules.find_number(module)
            if number is not None:
                self.trace.nonfinite += [NonfiniteRow(call, number, *found) for found in _list_nonfinite(module)]


def _has_nan(value: Any) -> bool:
    """Whether a value that has been read contains NaN; the norm of a large tensor with NaN is NaN."""
    return not isinstance(value, DeferredRow) and value[-1] is None and get_norm_nan_inf(value)[1] > 0


def _list_nonfinite(module: torch.nn.Module) -> Iterator[tuple[str, str]]:
    """Yield (name, ``nan`` or ``inf``) of each own parameter or buffer of a module that contains NaN or Inf."""
    for name, tensor in chain(own_parameters(module), own_buffers(module)):
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not tensor.is_floating_point() or tensor.is_meta:
            continue
        if reading_waits(tensor):
            continue
        if tensor.detach().isnan().any():
            yield name, "nan"
        elif tensor.detach().isinf().any():
            yield name, "inf"
