"""Remembers which tensors module calls returned, so that a tensor without a variable has a name."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import Node

from hookviz.autograd.tensor_types import is_tensor
from hookviz.trace import ReturnedPart


class TensorKey(NamedTuple):
    """Identifies a tensor with a history by numbers: torch counts the nodes that each thread makes."""

    thread: int
    sequence: int
    op: str
    output: int


class ModuleOutputs:
    """Knows for the tensors that calls returned which call was the first to return it, and where in its result.

    As for the makers of nodes, a graph is taken to be made by the thread that runs its backward pass.
    """

    def __init__(self) -> None:
        self._parts: dict[tuple[int, int, str], dict[int, ReturnedPart]] = {}
        """Thread, sequence number and op of a node → its output → what a call returned."""

    def note(self, call: int, labelled: Iterable[tuple[str, Any]]) -> None:
        """Note what a call returns: leaves of its result with their labels, such as ``output[0]``."""
        for label, item in labelled:
            key = find_key(item) if is_tensor(item) else None
            if key is not None:
                self._parts.setdefault(key[:3], {}).setdefault(key.output, ReturnedPart(call, label))

    def find(self, nodes: Sequence[Node]) -> dict[int, dict[int, ReturnedPart]]:
        """Map the ``id`` of a node to its outputs that calls returned."""
        thread, found = threading.get_ident(), {}
        for node in nodes if self._parts else ():
            parts = self._parts.get((thread, node._sequence_nr(), type(node).__name__))
            if parts is not None:
                found[id(node)] = parts
        return found

    def find_part(self, key: TensorKey) -> ReturnedPart | None:
        """Return which call returned a tensor that may no longer exist; None if none did."""
        return self._parts.get(key[:3], {}).get(key.output)

    def renumber(self, calls: Mapping[int, int]) -> None:
        """Renumber the calls (old → new), and forget those that are not in the mapping."""
        for key, parts in list(self._parts.items()):
            left = {out: part._replace(call=calls[part.call]) for out, part in parts.items() if part.call in calls}
            self._parts[key] = left
            if not left:
                del self._parts[key]


def find_key(tensor: torch.Tensor) -> TensorKey | None:
    """Return what identifies a tensor with a history that this thread has made; None for a leaf."""
    with suppress(RuntimeError):  # torch refuses everything about a stale output of unbind
        node = tensor.grad_fn if tensor.requires_grad else None
        if node is not None:
            return TensorKey(threading.get_ident(), node._sequence_nr(), type(node).__name__, tensor.output_nr)
    return None
