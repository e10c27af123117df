"""Assigns the nodes of a graph to module calls: to those that made them, and to those that returned their tensors."""

import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import next_sequence_number
from hookviz.recorder.modules.followed_modules import FollowedModules
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.trace import CallRow, ReturnedPart, TraceData


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


Module = torch.nn.Module


class GraphOwners:
    """Writes the owner of each node into a trace.

    The owner is the call that made the node, or for a leaf the first call of the module that holds it.
    """

    def __init__(self, trace: TraceData, modules: ModuleRegistry, followed: FollowedModules) -> None:
        self.trace, self.modules, self.followed = trace, modules, followed
        self.node_owners, self.outputs = NodeOwners(), ModuleOutputs()
        self._parameter_owners: dict[int, int] = {}
        """``id`` of a parameter → the first call of its module."""

    def add_parameters(self, parameters: Iterable[torch.Tensor], call: int) -> None:
        """Assign the ``parameters`` of a module to ``call``, unless an earlier call of it has them."""
        for parameter in parameters:
            known = self._parameter_owners.get(id(parameter))
            # A new parameter may have the id of one that went with its module.
            if known is None or not self.modules.is_alive(self.trace.calls[known].module):
                self._parameter_owners[id(parameter)] = call

    def add_stand_in(self, module: Module, leaf: torch.Tensor) -> None:
        """Assign ``leaf``, which stands for a parameter of ``module`` during a pass, to the module's first call."""
        if id(leaf) in self._parameter_owners:
            return
        number = self.modules.find_number(module)
        first = next((index for index, call in enumerate(self.trace.calls) if call.module == number), None)
        if first is not None:
            self._parameter_owners[id(leaf)] = first

    def write_owners(self, snapshot: GraphSnapshot) -> None:
        """Write the owners of the nodes of a graph into the trace, and which calls returned their tensors."""
        owners = self.find_owners(snapshot.nodes) if self.trace.calls else {}
        for node in snapshot.nodes if owners else ():
            if id(node) in owners:
                self.trace.owners[snapshot.numbers[id(node)]] = owners[id(node)]
        for key, parts in self.outputs.find(snapshot.nodes).items():
            self.trace.returned.update(((snapshot.numbers[key], output), part) for output, part in parts.items())

    def followed_nodes(self, nodes: Sequence[Node]) -> set[int]:
        """Return the ``id`` of each node that belongs to a followed module."""
        return {*self.find_owners(nodes), *self.followed.leaf_nodes(nodes)}

    def find_owners(self, nodes: Sequence[Node]) -> dict[int, int]:
        """Map the ``id`` of a node to the call that owns it, for the nodes that have an owner."""
        leaves = {id(node): leaf for node in nodes if (leaf := graph.leaf_of(node)) is not None}
        leaf_owners = {
            key: self._parameter_owners[id(leaf)] for key, leaf in leaves.items() if id(leaf) in self._parameter_owners
        }
        return {**leaf_owners, **self.node_owners.find_owners(nodes)}

    def call_at_node(self, module: Module, node: int) -> int:
        """Return the call that made ``node``, at which full backward hooks of ``module`` run.

        If that call began before the recording, a call with the number 0 is added for it.
        """
        number = self.modules.number(module)
        owner = self.trace.owners.get(node)
        if owner is not None and self.trace.calls[owner].module == number:
            return owner
        self.trace.calls.append(CallRow(number, 0, None, False))
        self.trace.owners[node] = len(self.trace.calls) - 1
        return self.trace.owners[node]

    def renumber(self, calls: Mapping[int, int]) -> None:
        """Renumber the calls (old → new), and forget those that are not in the mapping."""
        self._parameter_owners = {key: calls[call] for key, call in self._parameter_owners.items() if call in calls}
        self.node_owners.renumber(calls)
        self.outputs.renumber(calls)
