"""Names the owners of hooks by the variables of the user's code, while its functions run and the owners exist."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch

from hookviz.autograd import module_tree
from hookviz.autograd.variable_names import Holder, caller_frame, expression_for, list_models, user_frames
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.support.user_objects import is_of

Module = torch.nn.Module


class OwnerNames:
    """Finds names for what got a hook.

    The recording names a model when it is first called. These names are for what is never called; the outermost
    function with a variable for the model counts, since one that registers hooks often calls it otherwise.
    """

    def __init__(self, modules: ModuleRegistry) -> None:
        self.modules = modules
        self._modules: dict[int, tuple[weakref.ref[Module], str]] = {}
        """``id`` of a module → the module and its name."""
        self._holders: dict[int, tuple[weakref.ref[Module], str]] = {}
        """``id`` of a parameter → a module that held it, and its name there."""
        self._failed: set[tuple[int, int]] = set()
        """(code, instruction) of registrations whose owner was not found: a loop repeats them."""

    def name(self, owner: Any) -> str:
        """Return the name of an owner; empty if no variable leads to it."""
        if is_of(owner, Module):
            return self._name_module(owner)
        if isinstance(owner, torch.nn.Parameter):
            return self._name_parameter(owner) or self._find_variable(owner)
        return self._find_variable(owner)

    def find_holder_class(self, parameter: torch.Tensor) -> str:
        """Return the class of a module that holds ``parameter``; empty if none was found."""
        module = self._holders[id(parameter)][0]() if self._known_parameter(parameter) else None
        return "" if module is None else type(module).__name__

    def is_held(self, parameter: torch.Tensor) -> bool:
        """Return whether a module that was found for a hook holds ``parameter``."""
        return bool(self._known_parameter(parameter))

    def _find_variable(self, owner: Any) -> str:
        return expression_for(owner, caller_frame()) or ""

    def _name_module(self, module: Module) -> str:
        known = self.modules.known_name(module) or self._known_name(module)
        if not known and self._search(module, module_tree.all_modules):
            known = self._known_name(module)
        return known

    def _known_name(self, module: Module) -> str:
        reference, name = self._modules.get(id(module), (None, ""))
        return name if reference is not None and reference() is module else ""

    def _name_parameter(self, parameter: torch.Tensor) -> str:
        known = self._known_parameter(parameter)
        if not known and self._search(parameter, module_tree.all_parameters):
            known = self._known_parameter(parameter)
        return known

    def _known_parameter(self, parameter: torch.Tensor) -> str:
        reference, name = self._holders.get(id(parameter), (None, ""))
        module = None if reference is None else reference()
        if module is None or not any(one is parameter for _, one in module_tree.own_parameters(module)):
            return ""
        return f"{self._name_module(module)}.{name}"

    def _search(self, owner: Any, list_parts: Callable[[Module], Iterable[Any]]) -> bool:
        """Look for a model that has ``owner`` among its parts, and note the names of all modules in it."""
        frames = user_frames()
        place = id(frames[0].f_code), frames[0].f_lasti
        visited: set[int] = set()
        for frame in reversed(frames) if place not in self._failed else ():
            for holder in list_models(frame):
                is_new = id(holder.root) not in visited
                if is_new and any(part is owner for part in list_parts(holder.root)):
                    self._note(holder)
                    return True
                visited.add(id(holder.root))
        self._failed.add(place)
        return False

    def _note(self, holder: Holder) -> None:
        root_name = self.modules.known_name(holder.root) or holder.name
        for path, module in module_tree.named_modules(holder.root):
            self._modules[id(module)] = weakref.ref(module), f"{root_name}.{path}" if path else root_name
            for name, parameter in module_tree.own_parameters(module):
                self._holders.setdefault(id(parameter), (self._modules[id(module)][0], name))
