"""What a recording reads only if there is NaN or Inf: parameters and buffers of a model, and large leaves of a pass."""

import math
import weakref
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.graph_tensors import has_no_memory
from hookviz.autograd.module_tree import own_buffers, own_parameters
from hookviz.autograd.tensor_statistics import can_be_read, measure_or_defer
from hookviz.recorder.modules.arguments import PytreeLeaf
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.trace import NonfiniteRow, StepRow, TraceData
from hookviz.trace.value_rows import DeferredRow, get_stored_rows
from hookviz.trace.values import get_norm_nan_inf, holds_nonfinite


def any_nonfinite(trace: TraceData, values: Any) -> bool:
    """Return whether one of ``values``, an index or a tuple of indexes, is known to hold NaN or Inf."""
    for index in values if isinstance(values, tuple) else (values,):
        value: Any = None if index is None else list.__getitem__(trace.values, index)  # a float is a compact row
        if value is not None and (not math.isfinite(value) if type(value) is float else holds_nonfinite(value)):
            return True
    return False


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
        if not can_be_read(tensor) or not tensor.is_floating_point():
            continue
        if tensor.detach().isnan().any():
            yield name, "nan"
        elif tensor.detach().isinf().any():
            yield name, "inf"


def measure_unread_leaves(trace: TraceData, snapshot: GraphSnapshot) -> None:
    """Measure the unread leaves of a pass that has ended, if it has NaN or Inf.

    The NaN or Inf may be in the output of a model, or in the gradient of such a leaf. A leaf that was written to since
    the pass began stays unread.
    """
    if not snapshot.tensors.unread_leaves or not _shows_nonfinite(trace, snapshot):
        return
    leaf_rows = _leaf_rows(trace, snapshot)
    for node, (reference, version) in snapshot.tensors.unread_leaves.items():
        leaf = reference()
        if leaf is not None and leaf._version == version and not has_no_memory(leaf):
            trace.values.append(measure_or_defer(leaf, wait=True))
            trace.tensors[leaf_rows[node]] = trace.tensors[leaf_rows[node]]._replace(data=len(trace.values) - 1)


def _leaf_rows(trace: TraceData, snapshot: GraphSnapshot) -> dict[int, int]:
    """Map the node of each leaf of a pass to its index in ``trace.tensors``.

    Rows of the enclosing pass may stand between them, since a hook may call ``retain_grad()`` on one of its tensors.
    """
    indices = range(snapshot.tensors.first_row, len(trace.tensors))
    rows = ((index, trace.tensors[index]) for index in indices)
    return {row.node: index for index, row in rows if row.pass_id == snapshot.pass_id and row.leaf}


def _shows_nonfinite(trace: TraceData, snapshot: GraphSnapshot) -> bool:
    """Return whether a model returned NaN or Inf before this pass, or an unread leaf got such a gradient in it."""
    for row in reversed(get_stored_rows(trace.rows, snapshot.first_row)):
        if type(row) is not StepRow or row.pass_id != snapshot.pass_id:
            continue
        is_model_output = row.kind == "forward" and row.call is not None and trace.calls[row.call].parent is None
        got_gradient = row.kind in ("accumulate", "returned") and row.node in snapshot.tensors.unread_leaves
        if (is_model_output or got_gradient) and any_nonfinite(trace, row.after):
            return True
    return False
