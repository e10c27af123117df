"""Finds the module call that made a node of a graph."""

import threading
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.torch_internals import next_sequence_number


class NodeOwners:
    """Finds the maker of a node by its sequence number, which torch counts per thread.

    A graph is taken to be made by the thread that runs its backward pass, as nothing in a node says otherwise.
    """

    def __init__(self) -> None:
        self._calls_by_thread: dict[int, tuple[list[int], list[int]]] = {}
        """Thread → (sequence numbers, calls): from each number on, which call was the innermost.

        Beside the thread of the recording, these are threads of the engine in which checkpointing recomputes a call.
        """

    def note_call(self, call: int) -> None:
        """Note that ``call`` is the innermost call of this thread from now on (-1: none)."""
        numbers, calls = self._calls_by_thread.setdefault(threading.get_ident(), ([], []))
        numbers.append(next_sequence_number())
        calls.append(call)

    def find_owners(self, nodes: Sequence[Node]) -> dict[int, int]:
        """Map the ``id`` of a node to the call that made it, for the nodes (leaves excepted) that a call made."""
        numbers, calls = self._calls_by_thread.get(threading.get_ident(), ([], []))
        owners = {}
        for node in nodes:
            position = bisect_right(numbers, node._sequence_nr())
            if position and calls[position - 1] >= 0 and graph.leaf_of(node) is None:
                owners[id(node)] = calls[position - 1]
        return owners

    def renumber(self, renumbered: Mapping[int, int]) -> None:
        """Renumber the calls (old → new), and forget those that are not in the mapping."""
        for thread, (numbers, calls) in self._calls_by_thread.items():
            calls = [renumbered.get(call, -1) for call in calls]
            kept_indices = [i for i, call in enumerate(calls) if call != (calls[i - 1] if i else -1)]
            self._calls_by_thread[thread] = [numbers[i] for i in kept_indices], [calls[i] for i in kept_indices]
