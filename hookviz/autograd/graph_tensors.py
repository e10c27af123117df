"""Write the tensors of one graph into a trace: their data, their ``.grad``, and where their hooks are kept."""

import weakref
from contextlib import suppress
from typing import Any

import torch

from hookviz.autograd.tensor_statistics import append_value, shape_row
from hookviz.autograd.tensor_types import has_few_numbers, is_opaque, memory_address
from hookviz.autograd.torch_internals import FakeTensor, read_grad
from hookviz.trace import NodeOutput, TensorRow, TraceData

PlacedHookDict = tuple[str, Any, int, int | None]
"""(kind of hook, dict that keeps the hooks, number of the node, output of the node, if it is the dict of a tensor)"""


class GraphTensors:
    """Writes the tensors of one graph into a trace. Holds them until the pass begins, and only numbers after that."""

    def __init__(self, trace: TraceData, pass_id: int) -> None:
        self.trace, self.pass_id = trace, pass_id
        self.first_row = len(trace.tensors)
        """The index in ``trace.tensors`` from which on the rows of this graph lie, with those of passes inside it."""
        self.retained: dict[NodeOutput, tuple[weakref.ref[torch.Tensor], int | None]] = {}
        """Place → a tensor that retains its gradient, and the number of that value before the pass."""
        self.unread_leaves: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        """The number of an AccumulateGrad whose leaf is too large to read → the leaf and its version."""
        self.grads_before: dict[int, int | None] = {}
        """The number of an AccumulateGrad → the number of the value of its leaf's ``.grad`` before the pass."""
        self.hook_dicts: list[PlacedHookDict] = []
        self._by_id: dict[int, tuple[torch.Tensor, int]] = {}
        """``id`` → (tensor, number of its value); held until the pass begins, so that no other has its ``id``."""
        self._by_memory: dict[Any, int] | None = {}
        """Memory and view of a tensor → the number of its value; None once the pass runs, which may write to it."""

    def add(self, name: str, tensor: torch.Tensor, place: NodeOutput) -> None:
        """Add a row for ``tensor``, whose gradient arrives at ``place``."""
        leaf, retains = tensor.is_leaf, tensor.retains_grad
        grad = read_grad(tensor) if leaf or retains else None
        value = None if grad is None else self.add_value(grad)
        if leaf:
            self.grads_before[place[0]] = value
        row = TensorRow(self.pass_id, *place, name, leaf, retains, self._data(tensor, leaf, place[0]), value)
        self.trace.tensors.append(row)
        if retains:
            self.retained[place] = (weakref.ref(tensor), value)
        if not leaf and tensor._backward_hooks is not None:
            self.hook_dicts.append(("tensor_hook", tensor._backward_hooks, *place))

    def has_row(self, place: NodeOutput) -> bool:
        """Whether the trace has a row for the tensor of this graph at ``place``."""
        return any((row.node, row.output) == place for row in self.trace.tensors[self.first_row :])

    def _data(self, tensor: torch.Tensor, leaf: bool, node: int) -> int:
        """Add the value of a tensor's data, and return its number.

        Of a large leaf only the shape is kept, since reading all parameters would cost too much. The same holds for a
        leaf whose memory is freed between forward and backward, as FSDP does.
        """
        if not tensor.is_nested and has_few_numbers(tensor) and not (leaf and has_no_memory(tensor)):
            return self.shared_value(tensor)
        if not leaf or tensor.is_nested or is_opaque(tensor):
            return self.add_value(tensor)
        with suppress(RuntimeError, NotImplementedError):  # functorch, inference: these have no version
            self.unread_leaves[node] = weakref.ref(tensor), tensor._version
        return self.value_or_shape(tensor)

    def add_value(self, tensor: torch.Tensor) -> int:
        """Add the value of ``tensor`` to the trace, and return its number."""
        return append_value(self.trace.values, tensor, self.trace.statistics)

    def shared_value(self, tensor: torch.Tensor) -> int:
        """As ``add_value``, for a tensor that the graph or the caller holds; keeps the same numbers only once."""
        if self._by_memory is None or is_opaque(tensor):
            return self.add_value(tensor)
        entry = self._by_id.get(id(tensor))
        if entry is None:
            entry = self._by_id[id(tensor)] = tensor, self._value_by_memory(self._by_memory, tensor)
        return entry[1]

    def value_or_shape(self, tensor: torch.Tensor) -> int:
        """As ``shared_value``, but of a tensor with many numbers only the shape is kept."""
        if tensor.is_nested or is_opaque(tensor):
            return self.add_value(tensor)
        if has_few_numbers(tensor) and not has_no_memory(tensor):
            return self.shared_value(tensor)
        self.trace.values.append(shape_row(tensor))
        return len(self.trace.values) - 1

    def _value_by_memory(self, by_memory: dict[Any, int], tensor: torch.Tensor) -> int:
        try:
            memory = (tensor.device, memory_address(tensor), tensor.shape, tensor.stride())
            key = (*memory, tensor.dtype, tensor.is_conj(), tensor.is_neg(), type(tensor))
        except (RuntimeError, NotImplementedError):  # sparse, functorch: torch gives no address
            return self.add_value(tensor)
        if key not in by_memory:
            by_memory[key] = self.add_value(tensor)
        return by_memory[key]

    def forget_values(self) -> None:
        """Forget which tensors were read: the pass is about to run and may write to them."""
        self._by_memory = None
        self._by_id.clear()


def has_no_memory(tensor: torch.Tensor) -> bool:
    """Whether the memory of a tensor was freed, though it has elements and is of a kind that has memory."""
    try:
        is_fake = type(tensor) is FakeTensor
        return not is_fake and tensor.numel() > 0 and not tensor.is_meta and memory_address(tensor) == 0
    except (RuntimeError, NotImplementedError):  # sparse, functorch: such tensors never have an address
        return False
