"""Assigns the nodes of a graph to module calls."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.recorder.modules.followed_modules import FollowedModules
from hookviz.recorder.modules.module_outputs import ModuleOutputs
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.recorder.modules.node_owners import NodeOwners
from hookviz.trace import CallRow, TraceData

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
