"""Which module call each node of a graph belongs to."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.recorder.module_filter import ModuleFilter
from hookviz.recorder.module_registry import ModuleRegistry
from hookviz.recorder.node_owners import NodeOwners
from hookviz.trace import CallRow, TraceData

Module = torch.nn.Module


class GraphOwners:
    """Writes the owners of nodes into a trace: a call that made the node, or a module's that holds the leaf."""

    def __init__(self, trace: TraceData, modules: ModuleRegistry, module_filter: ModuleFilter) -> None:
        self.trace, self.modules, self.module_filter = trace, modules, module_filter
        self.made = NodeOwners(marking=bool(module_filter.modules))
        self._parameters: dict[int, int] = {}
        """``id`` of a parameter → the first call of its module."""

    def add_parameters(self, parameters: Iterable[torch.Tensor], call: int) -> None:
        """The ``parameters`` of a module that is called belong to its first call."""
        for parameter in parameters:
            self._parameters.setdefault(id(parameter), call)

    def add_stand_in(self, module: Module, leaf: torch.Tensor) -> None:
        """``leaf`` stands for a parameter of ``module`` while it computes: it belongs to the first call of that."""
        if id(leaf) in self._parameters:
            return
        number = self.modules.known(module)
        first = next((index for index, call in enumerate(self.trace.calls) if call.module == number), None)
        if first is not None:
            self._parameters[id(leaf)] = first

    def write(self, snapshot: GraphSnapshot) -> None:
        """Note which call made each node of a graph; a leaf's node belongs to the module whose parameter it is."""
        owners = self.owners(snapshot.nodes) if self.trace.calls else {}
        for node in snapshot.nodes if owners else ():
            if id(node) in owners:
                self.trace.owners[snapshot.numbers[id(node)]] = owners[id(node)]

    def chosen(self, nodes: Sequence[Node]) -> set[int]:
        """``id`` of each node that belongs to what is followed."""
        return {*self.owners(nodes), *self.module_filter.leaves(nodes)}

    def owners(self, nodes: Sequence[Node]) -> dict[int, int]:
        """``id`` of a node → the call that it belongs to, for those that belong to one."""
        leaves = {id(node): leaf for node in nodes if (leaf := graph.leaf_of(node)) is not None}
        known = {key: self._parameters[id(leaf)] for key, leaf in leaves.items() if id(leaf) in self._parameters}
        return {**known, **self.made.owners(nodes)}

    def call_of(self, module: Module, node: int) -> int:
        """The call that made ``node``, one of the two at which a module's full backward hooks run.

        A call from before the recording has the number 0.
        """
        number = self.modules.number(module)
        owner = self.trace.owners.get(node)
        if owner is not None and self.trace.calls[owner].module == number:
            return owner
        self.trace.calls.append(CallRow(number, 0, None, False))
        self.trace.owners[node] = len(self.trace.calls) - 1
        return self.trace.owners[node]

    def renumber(self, calls: Mapping[int, int]) -> None:
        """Calls got new numbers (old → new); what is not among them is forgotten."""
        self._parameters = {key: calls[call] for key, call in self._parameters.items() if call in calls}
        self.made.renumber(calls)
