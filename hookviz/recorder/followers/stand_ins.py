"""Notices modules that torch made of others, by tracing or scripting them, and that run in their place."""

import weakref
from typing import Any, NamedTuple

import torch

from hookviz.autograd import module_tree
from hookviz.recorder.followers.owner_names import OwnerNames
from hookviz.recorder.modules.module_registry import find_model
from hookviz.recorder.torch.compiled_regions import find_maker, list_made_parameters
from hookviz.support.user_objects import is_of

Module = torch.nn.Module


class StandIn(NamedTuple):
    """A module that torch made of another one."""

    name: str
    maker: str
    """The function of torch's that made it, or the package with that function."""


class StandIns:
    """The modules made by torch that were called, by the parameters that they share with the originals."""

    def __init__(self, names: OwnerNames) -> None:
        self._names = names
        self._called: dict[int, weakref.ref[Module]] = {}
        self._by_parameter: dict[int, tuple[weakref.ref[torch.Tensor], StandIn]] = {}

    def note(self, module: Module, name: str = "") -> bool:
        """Note that a module is called; return whether it is a stand-in that was not known."""
        maker = find_maker(module)
        known = self._called.get(id(module)) if maker else None
        if not maker or (known is not None and known() is module):
            return False
        self._called[id(module)] = weakref.ref(module)
        stand_in = StandIn(name or self._names.name(module) or type(module).__name__, maker)
        for parameter in list_made_parameters(module):
            self._by_parameter.setdefault(id(parameter), (weakref.ref(parameter), stand_in))
        return True

    def find(self, module: Any) -> StandIn | None:
        """Return what ran in the place of a module: it has its parameters, or those of the model that holds it."""
        if not self._by_parameter or not is_of(module, Module) or id(module) in self._called:
            return None
        found = self._find_with(module)
        is_bare = found is None and next(module_tree.all_parameters(module), None) is None
        holder = find_model(module) if is_bare else None
        return found if holder is None else self._find_with(holder.root)

    def _find_with(self, module: Module) -> StandIn | None:
        for parameter in module_tree.all_parameters(module):
            known = self._by_parameter.get(id(parameter))
            if known is not None and known[0]() is parameter:
                return known[1]
        return None
