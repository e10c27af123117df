"""Finds which call returned the tensors that a later call takes, where torch records no graph that says so."""

import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from hookviz.autograd.tensor_types import has_own_storage, is_tensor
from hookviz.autograd.torch_internals import StorageWeakRef

FEW_STORAGES = 1_000
"""Up to this many storages are remembered before those that were freed are looked for."""


class _Returned(weakref.ref[torch.Tensor]):
    """A tensor that a call returned."""

    __slots__ = ("call",)

    call: int


class TensorFlow:
    """Remembers, without holding them, the tensors without a graph that calls returned.

    A view of such a tensor, as ``flatten`` makes it, is recognised by its storage, even if the tensor itself is gone.
    """

    def __init__(self) -> None:
        self._tensors: dict[int, _Returned] = {}
        """``id`` of a tensor → the tensor, and the last call that returned it.

        An entry is removed when its tensor is freed, without a call in Python: a profiler may follow these.
        """
        self._storages: dict[int, tuple[Any, int]] = {}
        """Address of a storage → a weak reference to it, which keeps the address taken, and the last such call."""
        self._most_storages = FEW_STORAGES

    def note(self, call: int, items: Iterable[Any]) -> None:
        """Note what ``call`` returns: the leaves of its result."""
        for item in items:
            if _is_without_graph(item):
                self._note_tensor(call, item)

    def _note_tensor(self, call: int, tensor: torch.Tensor) -> None:
        returned = self._tensors.get(id(tensor))
        if returned is None:
            returned = self._tensors[id(tensor)] = _Returned(tensor, partial(self._tensors.pop, id(tensor)))
        returned.call = call
        storage = _refer_to_storage(tensor)
        if storage is not None:
            self._storages[storage.cdata] = storage, call
        if len(self._storages) > self._most_storages:
            self._storages = {key: entry for key, entry in self._storages.items() if not entry[0].expired()}
            self._most_storages = max(FEW_STORAGES, 2 * len(self._storages))

    def find_calls(self, items: Iterable[Any]) -> tuple[int, ...]:
        """Return the calls that returned the tensors without a graph among ``items``, the earliest first."""
        if not self._storages and not self._tensors:
            return ()
        found = {self._find_call(item) for item in items if _is_without_graph(item)}
        return tuple(sorted(call for call in found if call is not None))

    def _find_call(self, tensor: torch.Tensor) -> int | None:
        returned = self._tensors.get(id(tensor))
        if returned is not None:
            return returned.call
        storage = _refer_to_storage(tensor)
        return None if storage is None else self._storages.get(storage.cdata, (None, None))[1]

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self._tensors.pop(id(tensor), None)

    def renumber(self, calls: Mapping[int, int]) -> None:
        """Renumber the calls (old → new), and forget those that are not in the mapping."""
        for key, returned in list(self._tensors.items()):
            if returned.call in calls:
                returned.call = calls[returned.call]
            else:
                self._tensors.pop(key, None)
        self._storages = {
            key: (storage, calls[call]) for key, (storage, call) in self._storages.items() if call in calls
        }

    def clear(self) -> None:
        """Forget everything."""
        self._tensors.clear()
        self._storages.clear()


def _is_without_graph(item: Any) -> bool:
    return is_tensor(item) and not item.requires_grad


def _refer_to_storage(tensor: torch.Tensor) -> Any:
    """Return a weak reference to the storage of a tensor; None if it has none, as a sparse one."""
    with suppress(NotImplementedError):
        if has_own_storage(tensor):
            return StorageWeakRef(tensor.untyped_storage())
    return None
