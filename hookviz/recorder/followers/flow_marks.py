"""Marks on tensors, arrays and numbers: which cuts their numbers have come through."""

import sys
import weakref
from functools import partial
from typing import Any

import torch

from hookviz.recorder.followers.ops import has_history

_MAX_NUMBERS = 10_000
"""Up to this many numbers that left torch are remembered, the last ones."""
_MAX_BASES = 8
_NUMBER_TYPES = (float, complex)
"""Python shares small whole numbers and booleans: that one is the same object says nothing about where it is from."""


def _is_array(value: Any) -> bool:
    """Whether a value is an array of numpy, which hookviz does not import itself."""
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


class _Mark(weakref.ref[Any]):
    """The cuts of one tensor or array, as the bits of a number."""

    __slots__ = ("cuts", "has_graph")

    cuts: int
    has_graph: bool


class FlowMarks:
    """Gives marks to objects, without holding them, except for floats: these have no weak references."""

    def __init__(self) -> None:
        self.function_cuts = 0
        """The cuts in the forward of an ``autograd.Function``: none if its output gets a graph afterwards."""
        self._marks: dict[int, _Mark] = {}
        """``id`` of an object → its mark. It is removed when the object is freed, without a call in Python."""
        self._arrays: dict[int, weakref.ref[Any]] = {}
        self._numbers: dict[int, tuple[Any, int]] = {}

    def cuts_of_tensor(self, tensor: torch.Tensor) -> int:
        """Return the cuts of a tensor; 0 for none."""
        mark = self._marks.get(id(tensor))
        if mark is None:
            return self._cuts_of_shared_memory(tensor) if self._arrays and not tensor.requires_grad else 0
        if self.function_cuts and not mark.has_graph and tensor.requires_grad and not tensor.is_leaf:
            mark.cuts &= ~self.function_cuts
            mark.has_graph = True
        return mark.cuts

    def cuts_of(self, value: Any) -> int:
        """Return the cuts of an array or a number; 0 for any other value."""
        if type(value) in _NUMBER_TYPES:
            number, cuts = self._numbers.get(id(value), (None, 0))
            return cuts if number is value else 0
        for _ in range(_MAX_BASES if self._arrays else 0):
            if not _is_array(value):
                break
            mark = self._marks.get(id(value))
            if mark is not None:
                return mark.cuts
            value = value.base
        return 0

    def put_on_tensor(self, tensor: torch.Tensor, cuts: int) -> None:
        """Mark a tensor with ``cuts``, in place of the mark that it has."""
        if cuts:
            self._put(tensor, cuts, has_history(tensor))
        else:
            self._marks.pop(id(tensor), None)

    def put(self, value: Any, cuts: int) -> None:
        """Mark an array or a number."""
        if type(value) in _NUMBER_TYPES:
            self._numbers.pop(id(value), None)
            self._numbers[id(value)] = (value, cuts)
            if len(self._numbers) > _MAX_NUMBERS:
                del self._numbers[next(iter(self._numbers))]
        elif _is_array(value):
            self._put(value, cuts, False)
            self._arrays[id(value)] = weakref.ref(value, partial(self._arrays.pop, id(value)))

    def _put(self, value: Any, cuts: int, has_graph: bool) -> None:
        mark = self._marks.get(id(value))
        if mark is None:
            mark = self._marks[id(value)] = _Mark(value, partial(self._marks.pop, id(value)))
        mark.cuts, mark.has_graph = cuts, has_graph

    def _cuts_of_shared_memory(self, tensor: torch.Tensor) -> int:
        """Return the cuts of an array in whose memory a tensor lies, as after ``torch.from_numpy``."""
        if not tensor.is_cpu or tensor.layout is not torch.strided or type(tensor) is not torch.Tensor:
            return 0
        address, cuts = tensor.data_ptr(), 0
        for key, reference in list(self._arrays.items()):
            array = reference()
            if array is not None:
                start: int = array.__array_interface__["data"][0]
                cuts |= self._marks[key].cuts if start <= address < start + array.nbytes else 0
        return cuts

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor, and the weak reference to it."""
        self._marks.pop(id(tensor), None)

    def clear(self) -> None:
        """Forget everything."""
        self._marks.clear()
        self._arrays.clear()
        self._numbers.clear()
