"""The modules that a recording follows, and whether they are only a part of a model."""

from collections.abc import Sequence

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph, module_tree
from hookviz.autograd.identity_map import IdentityMap

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

    def _is_larger(self, module: Module) -> bool:
        """Whether a module holds one that is followed, and parameters of others; a wrapper such as DDP has none."""
        if not any(id(inner) in self._ids for inner in module_tree.all_modules(module)):
            return False
        return any(id(parameter) not in self._parameters for parameter in module_tree.all_parameters(module))

    def leaf_nodes(self, nodes: Sequence[Node]) -> set[int]:
        """Return the ``id`` of each AccumulateGrad node of their parameters, which may be used without a call."""
        leaves = ((id(node), graph.leaf_of(node)) for node in nodes)
        return {key for key, leaf in leaves if leaf is not None and id(leaf) in self._parameters}
