"""How much memory tensors keep alive, with the graphs behind them."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch

SAVED = "_saved_"
"""How the names of the attributes begin in which a node keeps what it saved for backward."""


def held_megabytes(tensors: Iterable[torch.Tensor]) -> float:
    """Count the megabytes of ``tensors`` and of everything that the graphs behind them saved for backward.

    Each storage counts once. Leaves, such as parameters, do not count: they are there without the graph, too.

    >>> x = torch.ones(1_000_000, requires_grad=True)
    >>> y = (x * 2).exp().sum()
    >>> round(held_megabytes([y])), held_megabytes([y.detach()])
    (4, 4e-06)
    """
    kept = list(tensors)
    storages = {_storage(tensor) for tensor in kept}
    leaves = set()
    for node in _nodes_behind(kept):
        if hasattr(node, "variable"):
            leaves.add(_storage(node.variable))
        storages.update(map(_storage, _saved_tensors(node)))
    return sum(size for _, size in storages - leaves) / 1_000_000


def _storage(tensor: torch.Tensor) -> tuple[int, int]:
    """The address and the size in bytes of what a tensor keeps its numbers in."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def _nodes_behind(tensors: Iterable[torch.Tensor]) -> Iterator[Any]:
    """Yield each node of the graphs of ``tensors`` once."""
    waiting: list[Any] = [tensor.grad_fn for tensor in tensors]
    visited = {None}
    while waiting:
        node = waiting.pop()
        if node not in visited:
            visited.add(node)
            waiting += [previous for previous, _ in node.next_functions]
            yield node


def _saved_tensors(node: Any) -> Iterator[torch.Tensor]:
    """Yield what a node saved for backward; nothing once a backward pass has freed it."""
    for name in filter(lambda name: name.startswith(SAVED), dir(node)):
        try:
            value = getattr(node, name)
        except RuntimeError:  # it was freed
            continue
        parts = value if isinstance(value, tuple) else (value,)
        yield from (part for part in parts if isinstance(part, torch.Tensor))
