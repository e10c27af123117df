"""Finds which call returned the tensors that a later call takes, where torch records no graph that says so.

Either that call had no graph, or the tensors were cut off from it since, as by ``detach()``.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch

from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.tensor_types import has_own_storage, is_tensor
from hookviz.autograd.torch_internals import StorageWeakRef

FEW_STORAGES = 1_000
"""Up to this many storages are remembered before those that were freed are looked for."""


class Sources(NamedTuple):
    """Where the tensors without a graph that a call takes are from."""

    calls: tuple[int, ...] = ()
    """The calls that returned them."""
    cut_calls: tuple[int, ...] = ()
    """The calls that returned them with a graph, which they have lost since."""


class TensorFlow:
    """Remembers, without holding them, the tensors that calls returned.

    A view of such a tensor, as ``flatten`` makes it, is recognised by its storage, even if the tensor itself is gone.
    So is what ``detach()`` and ``.data`` return.
    """

    def __init__(self) -> None:
        self._tensors: IdentityMap[int] = IdentityMap()
        """Tensor without a graph → the last call that returned it."""
        self._viewed: IdentityMap[bool] = IdentityMap()
        """Leaf → True if a call returned a view of it: the memory is its own."""
        self._storages: dict[int, tuple[Any, int]] = {}
        """Address of a storage → a weak reference to it, which keeps the address taken, and the last such call."""
        self._storages_with_graph: dict[int, tuple[Any, int]] = {}
        """The same for tensors with a graph."""
        self._most_storages = FEW_STORAGES

    def note(self, call: int, items: Iterable[Any]) -> None:
        """Note what ``call`` returns: the leaves of its result."""
        for item in items:
            if is_tensor(item):
                self._note_tensor(call, item)

    def _note_tensor(self, call: int, tensor: torch.Tensor) -> None:
        if tensor.requires_grad:
            self._tensors.forget(tensor)
        else:
            self._tensors.put(tensor, call)
        storage = _refer_to_storage(tensor)
        if storage is not None:
            if tensor._base is not None and _is_leaf(tensor._base):
                self._viewed.put(tensor._base, True)
            storages = self._storages if _is_leaf(tensor) else self._storages_with_graph
            storages[storage.cdata] = storage, call
        if len(self._storages) + len(self._storages_with_graph) > self._most_storages:
            self._remove_freed_storages()

    def _remove_freed_storages(self) -> None:
        for storages in (self._storages, self._storages_with_graph):
            for key in [key for key, (storage, _) in storages.items() if storage.expired()]:
                del storages[key]
        self._most_storages = max(FEW_STORAGES, 2 * (len(self._storages) + len(self._storages_with_graph)))

    def find_sources(self, items: Sequence[Any]) -> Sources:
        """Find the calls that returned the tensors without a graph among ``items``, the earliest first."""
        calls, cut_calls = set[int](), set[int]()
        for item in items if self._storages or self._storages_with_graph or self._tensors else ():
            if is_tensor(item) and not item.requires_grad:
                self._find_call(item, calls, cut_calls)
            elif is_tensor(item) and _is_leaf(item) and not self._viewed.get(item):
                call = self.find_graph_call(item)  # the leaf was made of what this call returned
                cut_calls.update(() if call is None else (call,))
        if cut_calls:  # not cut off if it is among the items with its graph, too
            with_graph = (item for item in items if is_tensor(item) and item.requires_grad and not _is_leaf(item))
            cut_calls.difference_update(self.find_graph_call(item) for item in with_graph)
        return Sources(tuple(sorted(calls)), tuple(sorted(cut_calls)))

    def _find_call(self, tensor: torch.Tensor, calls: set[int], cut_calls: set[int]) -> None:
        """Add the call that returned a tensor to ``calls``, or to ``cut_calls`` if it returned it with a graph.

        If calls with a graph and others returned its storage, its numbers come from those with a graph in any case.
        """
        call = self._tensors.get(tensor)
        if call is not None:
            calls.add(call)
            return
        storage = _refer_to_storage(tensor)
        for storages, found in ((self._storages_with_graph, cut_calls), (self._storages, calls)):
            if storage is not None and storage.cdata in storages:
                found.add(storages[storage.cdata][1])
                return

    def find_graph_call(self, tensor: torch.Tensor) -> int | None:
        """Return the last call that returned a tensor, or one with its memory, with a graph; None if none did."""
        storage = _refer_to_storage(tensor)
        return None if storage is None else self._storages_with_graph.get(storage.cdata, (None, None))[1]

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self._tensors.forget(tensor)
        self._viewed.forget(tensor)

    def renumber(self, calls: Mapping[int, int]) -> None:
        """Renumber the calls (old → new), and forget those that are not in the mapping."""
        self._tensors.renumber(calls)
        self._storages = _renumber_storages(self._storages, calls)
        self._storages_with_graph = _renumber_storages(self._storages_with_graph, calls)

    def clear(self) -> None:
        """Forget everything."""
        self._tensors.clear()
        self._viewed.clear()
        self._storages.clear()
        self._storages_with_graph.clear()


def _renumber_storages(storages: Mapping[int, tuple[Any, int]], calls: Mapping[int, int]) -> dict[int, tuple[Any, int]]:
    """Renumber the calls of some storages, and leave out those whose call is not in the mapping."""
    return {key: (storage, calls[call]) for key, (storage, call) in storages.items() if call in calls}


def _is_leaf(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a leaf; torch refuses to say so of an output of unbind whose base was edited in place."""
    with suppress(RuntimeError):
        return tensor.is_leaf
    return False


def _refer_to_storage(tensor: torch.Tensor) -> Any:
    """Return a weak reference to the storage of a tensor; None if it has none, as a sparse one."""
    with suppress(NotImplementedError):
        if has_own_storage(tensor):
            return StorageWeakRef(tensor.untyped_storage())
    return None
