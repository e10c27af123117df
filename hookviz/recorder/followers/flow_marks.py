"""Marks on tensors, arrays and numbers: which cuts their numbers have come through."""

import sys
from typing import Any, NamedTuple

import torch

from hookviz.autograd.identity_map import IdentityMap
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


class _Mark(NamedTuple):
    """The cuts of one tensor, as the bits of a number, and whether a gradient could go through it by then."""

    cuts: int
    has_graph: bool


class FlowMarks:
    """Gives marks to objects, without holding them, except for floats: these have no weak references."""

    def __init__(self) -> None:
        self.function_cuts = 0
        """The cuts in the forward of an ``autograd.Function``: none if its output gets a graph afterwards."""
        self._marks: IdentityMap[_Mark] = IdentityMap()
        self._arrays: IdentityMap[int] = IdentityMap()
        """Array → its cuts."""
        self._numbers: dict[int, tuple[Any, int]] = {}

    def cuts_of_tensor(self, tensor: torch.Tensor) -> int:
        """Return the cuts of a tensor; 0 for none."""
        mark = self._marks.get(tensor)
        if mark is None:
            return self._cuts_of_shared_memory(tensor) if self._arrays and not tensor.requires_grad else 0
        if self.function_cuts and not mark.has_graph and tensor.requires_grad and not tensor.is_leaf:
            mark = _Mark(mark.cuts & ~self.function_cuts, True)
            self._marks.put(tensor, mark)
        return mark.cuts

    def cuts_of(self, value: Any) -> int:
        """Return the cuts of an array or a number; 0 for any other value."""
        if type(value) in _NUMBER_TYPES:
            number, cuts = self._numbers.get(id(value), (None, 0))
            return cuts if number is value else 0
        for _ in range(_MAX_BASES if self._arrays else 0):
            if not _is_array(value):
                break
            known = self._arrays.get(value)
            if known is not None:
                return known
            value = value.base
        return 0

    def put_on_tensor(self, tensor: torch.Tensor, cuts: int) -> None:
        """Mark a tensor with ``cuts``, in place of the mark that it has."""
        if cuts:
            self._marks.put(tensor, _Mark(cuts, has_history(tensor)))
        else:
            self._marks.forget(tensor)

    def put(self, value: Any, cuts: int) -> None:
        """Mark an array or a number."""
        if type(value) in _NUMBER_TYPES:
            self._numbers.pop(id(value), None)
            self._numbers[id(value)] = (value, cuts)
            if len(self._numbers) > _MAX_NUMBERS:
                del self._numbers[next(iter(self._numbers))]
        elif _is_array(value):
            self._arrays.put(value, cuts)

    def _cuts_of_shared_memory(self, tensor: torch.Tensor) -> int:
        """Return the cuts of an array in whose memory a tensor lies, as after ``torch.from_numpy``."""
        if not tensor.is_cpu or tensor.layout is not torch.strided or type(tensor) is not torch.Tensor:
            return 0
        address, cuts = tensor.data_ptr(), 0
        for array, known in self._arrays.items():
            start: int = array.__array_interface__["data"][0]
            cuts |= known if start <= address < start + array.nbytes else 0
        return cuts

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor, and the weak reference to it."""
        self._marks.forget(tensor)

    def clear(self) -> None:
        """Forget everything."""
        self._marks.clear()
        self._arrays.clear()
        self._numbers.clear()
