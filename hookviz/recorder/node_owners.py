"""Finds the module call that made a node of a graph, where that is certain."""

import itertools
import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.node_marks import NodeMarks
from hookviz.autograd.torch_internals import next_sequence_number

CallKey = tuple[int, int]
"""(thread, number of the first node of the outermost call) of the call that returned a node."""
UNKNOWN_CALL = (-1, -1)
"""The node is an argument of a call, and its maker is unknown."""


class NodeOwners:
    """Finds the maker of a node by its sequence number, which torch counts per thread."""

    def __init__(self, marks_threads: bool) -> None:
        self.marks_threads = marks_threads
        """Whether other threads may make calls, so that each node's thread has to be noted."""
        self._calls_by_thread: dict[int, tuple[list[int], list[int]]] = {}
        """Thread → (sequence numbers, calls): from each number on, which call was the innermost."""
        self._local = threading.local()  # an ident of ``threading`` may be reused after a thread ends
        self._numbers = itertools.count()
        self._marks: NodeMarks[CallKey] = NodeMarks()
        """Node that a call returned or got as an argument → the key of that call."""

    def note_call(self, call: int) -> int:
        """Note that ``call`` is the innermost call of this thread from now on (-1: none).

        Returns the number of the thread's next node.
        """
        numbers, calls = self._calls_by_thread.setdefault(self._thread_number(), ([], []))
        number: int = next_sequence_number()
        numbers.append(number)
        calls.append(call)
        return number

    def _thread_number(self) -> int:
        if not hasattr(self._local, "number"):
            self._local.number = next(self._numbers)
        number: int = self._local.number
        return number

    def has_several_threads(self) -> bool:
        """Return whether calls ran in several threads, each of which counts its own nodes."""
        return len(self._calls_by_thread) > 1

    def mark_inputs(self, items: Iterable[Any]) -> None:
        """Mark the nodes of an outermost call's arguments: their maker is unknown."""
        self._mark(items, UNKNOWN_CALL)

    def mark_outputs(self, items: Iterable[Any], first_node: int) -> None:
        """Mark the nodes that a call returns.

        ``first_node`` is the number of the first node of the outermost call around it.
        """
        self._mark(items, (self._thread_number(), first_node))

    def _mark(self, items: Iterable[Any], call: CallKey) -> None:
        for item in items if self.marks_threads else ():
            with suppress(RuntimeError):  # torch refuses to give the ``grad_fn`` of some views
                if isinstance(item, torch.Tensor) and item.grad_fn is not None and item.grad_fn not in self._marks:
                    self._marks.put(item.grad_fn, call)

    def sweep(self) -> None:
        """Forget nodes that no longer exist."""
        self._marks.sweep()

    def close(self) -> None:
        """Forget all nodes."""
        self._marks.clear()

    def find_owners(self, nodes: Sequence[Node]) -> dict[int, int]:
        """Map the ``id`` of a node to the call that made it, for the nodes (leaves excepted) where that is certain."""
        inner = {id(node): node for node in nodes if graph.leaf_of(node) is None}
        this_thread = self._thread_number()
        if self._calls_by_thread.keys() <= {this_thread}:
            owners = [(key, self._find_maker(this_thread, node)) for key, node in inner.items()]
        else:
            threads = self._possible_threads(inner)
            owners = [
                (key, self._find_maker(threads[key].pop(), inner[key])) for key in threads if len(threads[key]) == 1
            ]
        return {key: call for key, call in owners if call >= 0}

    def _find_maker(self, thread: int, node: Node) -> int:
        numbers, calls = self._calls_by_thread.get(thread, ([], []))
        position = bisect_right(numbers, node._sequence_nr())
        return calls[position - 1] if position else -1

    def _possible_threads(self, nodes: Mapping[int, Node]) -> dict[int, set[int]]:
        """Return the threads that may have made each node.

        The nodes of a call lie between its outputs and its inputs, and were made in its thread.
        """
        marked = {key: call for key, node in nodes.items() if (call := self._marks.get(node)) is not None}
        possible: dict[int, set[int]] = {}
        queue = [(nodes[key], *call) for key, call in marked.items() if call is not UNKNOWN_CALL]
        while queue:
            node, thread, first_node = queue.pop()
            threads = possible.setdefault(id(node), set())
            if thread in threads or node._sequence_nr() < first_node or self._find_maker(thread, node) < 0:
                continue
            threads.add(thread)
            next_nodes = [following for following, _ in node.next_functions if following is not None]
            queue += [
                (other, thread, first_node) for other in next_nodes if id(other) in nodes and id(other) not in marked
            ]
        return possible

    def renumber(self, renumbered: Mapping[int, int]) -> None:
        """Renumber the calls (old → new), and forget those that are not in the mapping."""
        for thread, (numbers, calls) in self._calls_by_thread.items():
            calls = [renumbered.get(call, -1) for call in calls]
            kept_indices = [i for i, call in enumerate(calls) if call != (calls[i - 1] if i else -1)]
            self._calls_by_thread[thread] = [numbers[i] for i in kept_indices], [calls[i] for i in kept_indices]
