"""The modules that a recording follows, and whether they are only a part of a model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph, module_tree
from hookviz.autograd.identity_map import IdentityMap
from hookviz.recorder.torch.compiled_regions import find_maker, list_made_parameters

if TYPE_CHECKING:
    from hookviz.recorder.notes import Notes

Module = torch.nn.Module


class FollowedModules:
    """The modules that were given to ``record``, and all modules in them. If none was given, every module is followed.

    If a module is called that holds some of them and other parameters, too, they are a part of a model: of each
    backward pass, only the nodes that they made are then observed.
    """

    def __init__(self, models: Sequence[Module]) -> None:
        self._ids = {id(module) for model in models for module in module_tree.all_modules(model)}
        self._parameters = {id(parameter) for model in models for parameter in module_tree.all_parameters(model)}
        self._others: IdentityMap[bool] = IdentityMap()
        """Module → True if it was called and they are no part of it."""
        self.outer: str | None = None
        """The class of the model of which they are a part; None for whole models."""
        self.maker = ""
        """What made a module of one of them that was called instead: ``torch.jit.trace``, for example."""
        self.node_count = self.observed_count = 0
        """Number of nodes in the last pass, and of observed nodes among them."""

    def __contains__(self, module: Module) -> bool:
        return not self._ids or id(module) in self._ids

    @property
    def are_part(self) -> bool:
        """Whether they are a part of a model that was called."""
        return self.outer is not None

    def other_called(self, module: Module) -> None:
        """Notice the call of a module that is not followed: it may be the model of which these are a part."""
        if self.outer is not None or not self._ids or self._others.get(module):
            return
        if self._is_larger(module):
            self.outer = type(module).__name__
        else:
            self._others.put(module, True)
            self.maker = self.maker or self._find_maker(module)

    def _find_maker(self, module: Module) -> str:
        maker = find_maker(module)
        parameters = list_made_parameters(module) if maker else ()
        return maker if any(id(parameter) in self._parameters for parameter in parameters) else ""

    def _is_larger(self, module: Module) -> bool:
        """Whether a module holds one that is followed, and parameters of others; a wrapper such as DDP has none."""
        if not any(id(inner) in self._ids for inner in module_tree.all_modules(module)):
            return False
        return any(id(parameter) not in self._parameters for parameter in module_tree.all_parameters(module))

    def leaf_nodes(self, nodes: Sequence[Node]) -> set[int]:
        """Return the ``id`` of each AccumulateGrad node of their parameters, which may be used without a call."""
        leaves = ((id(node), graph.leaf_of(node)) for node in nodes)
        return {key for key, leaf in leaves if leaf is not None and id(leaf) in self._parameters}

    def add_notes(self, notes: "Notes") -> None:
        """Add notes about the modules and nodes that were left out."""
        if self.outer is not None and self.node_count:
            notes.say("part", outer=self.outer, seen=self.observed_count, nodes=self.node_count)
        elif self.outer is not None:
            notes.say("part.forward", outer=self.outer)
