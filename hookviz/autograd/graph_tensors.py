"""The tensors of one graph, written into a trace: their data, their ``.grad``, and where their hooks are kept."""

import weakref
from contextlib import suppress
from typing import Any

import torch

from hookviz.autograd.tensor_statistics import address, append_value, shape_only
from hookviz.autograd.torch_internals import FakeTensor
from hookviz.trace import NodeOutput, TensorRow, TraceData
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS

HookDictAt = tuple[str, Any, int, int]
"""(kind of hook, the dict it is kept in, number of the node, output of the node or -1)"""


class GraphTensors:
    """Writes the tensors of one graph into a trace. Holds them until the pass begins, and only numbers after that."""

    def __init__(self, trace: TraceData, pass_id: int) -> None:
        self.trace, self.pass_id = trace, pass_id
        self.first = len(trace.tensors)
        """Where the rows of this graph begin among ``trace.tensors``; between them come those of passes inside it."""
        self.retained: dict[NodeOutput, tuple[weakref.ref[torch.Tensor], int | None]] = {}
        """The tensors that keep their gradient, and its value before the pass."""
        self.unread: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        """The number of an AccumulateGrad whose leaf is too large to be read → the leaf, and its version."""
        self.grads: dict[int, int | None] = {}
        """The number of an AccumulateGrad → the value of its leaf's ``.grad`` before the pass."""
        self.hook_dicts: list[HookDictAt] = []
        self._seen: dict[int, tuple[torch.Tensor, int]] = {}
        """``id`` → a tensor, held so that no other gets its ``id``, and the number of its value; until it has begun."""
        self._known: dict[Any, int] | None = {}
        """What a tensor shows → the number of its value; None as soon as something runs that could write to it."""

    def add(self, name: str, tensor: torch.Tensor, place: NodeOutput) -> None:
        """A row for ``tensor``, whose gradient arrives at ``place``."""
        leaf, retains = tensor.is_leaf, tensor.retains_grad
        grad = tensor.grad if leaf or retains else None
        value = None if grad is None else self.value(grad)
        if leaf:
            self.grads[place[0]] = value
        row = TensorRow(self.pass_id, *place, name, leaf, retains, self._data(tensor, leaf, place[0]), value)
        self.trace.tensors.append(row)
        if retains:
            self.retained[place] = (weakref.ref(tensor), value)
        if not leaf and tensor._backward_hooks is not None:
            self.hook_dicts.append(("tensor_hook", tensor._backward_hooks, *place))

    def _data(self, tensor: torch.Tensor, leaf: bool, node: int) -> int:
        """The number of a tensor's own value.

        A large leaf's is its shape: to read all parameters costs too much. So is that of one whose numbers are let go
        of between forward and backward, as FSDP does.
        """
        if not tensor.is_nested and tensor.numel() <= MAX_KEPT_NUMBERS and not (leaf and has_no_memory(tensor)):
            return self.known(tensor)
        if not leaf or tensor.is_nested:
            return self.value(tensor)
        with suppress(RuntimeError, NotImplementedError):  # functorch, inference: no version to tell a change by
            self.unread[node] = weakref.ref(tensor), tensor._version
        self.trace.values.append(shape_only(tensor))
        return len(self.trace.values) - 1

    def value(self, tensor: torch.Tensor) -> int:
        """The number of the value of ``tensor`` in the trace."""
        return append_value(self.trace.values, tensor, self.trace.statistics)

    def known(self, tensor: torch.Tensor) -> int:
        """As ``value``, for a tensor that the graph or the caller holds; the same numbers are kept once."""
        if self._known is None:
            return self.value(tensor)
        seen = self._seen.get(id(tensor))
        if seen is None:
            seen = self._seen[id(tensor)] = tensor, self._known_by_place(self._known, tensor)
        return seen[1]

    def _known_by_place(self, known: dict[Any, int], tensor: torch.Tensor) -> int:
        try:
            place = (tensor.device, address(tensor), tensor.shape, tensor.stride())
            key = (*place, tensor.dtype, tensor.is_conj(), tensor.is_neg(), type(tensor))
        except (RuntimeError, NotImplementedError):  # sparse, functorch: no place in memory to tell it by
            return self.value(tensor)
        if key not in known:
            known[key] = self.value(tensor)
        return known[key]

    def pass_begins(self) -> None:
        """The pass is about to run: what was read of a tensor may not be so for long."""
        self._known = None
        self._seen.clear()


def has_no_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor of some numbers has no memory that holds them, though it is of a kind that has."""
    try:
        return tensor.numel() > 0 and not tensor.is_meta and address(tensor) == 0 and type(tensor) is not FakeTensor
    except (RuntimeError, NotImplementedError):  # sparse, functorch: no place in memory at all
        return False
