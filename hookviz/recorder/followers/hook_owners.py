"""What the ledger of a recording keeps of the owners of hooks: numbers and texts, which outlive them.

They are named by the variables of the user's code, while its functions run and the owners exist. Torch may have made
other modules of them, by tracing or scripting, that run in their place.
"""

import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import Node

from hookviz.autograd import module_tree
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.torch_internals import is_functorch_tensor
from hookviz.autograd.variable_names import Holder, caller_frame, expression_for, list_models, user_frames
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.recorder.modules.graph_owners import TensorKey, find_key
from hookviz.recorder.modules.module_registry import ModuleRegistry, find_model
from hookviz.recorder.torch.compiled_regions import find_maker, list_made_parameters
from hookviz.support.user_objects import is_of

Module = torch.nn.Module


class OwnerNames:
    """Finds names for what got a hook.

    The recording names a model when it is first called. These names are for what is never called; the outermost
    function with a variable for the model counts, since one that registers hooks often calls it otherwise.
    """

    def __init__(self, modules: ModuleRegistry) -> None:
        self.modules = modules
        self._modules: IdentityMap[str] = IdentityMap()
        """Module → its name."""
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
        return self._modules.get(module) or ""

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
            self._modules.put(module, f"{root_name}.{path}" if path else root_name)
            for name, parameter in module_tree.own_parameters(module):
                self._holders.setdefault(id(parameter), (weakref.ref(module), name))


class StandIn(NamedTuple):
    """A module that torch made of another one."""

    name: str
    maker: str
    """The function of torch's that made it, or the package with that function."""


class StandIns:
    """The modules made by torch that were called, by the parameters that they share with the originals."""

    def __init__(self, names: OwnerNames) -> None:
        self._names = names
        self._called: IdentityMap[bool] = IdentityMap()
        self._by_parameter: IdentityMap[StandIn] = IdentityMap()

    def note(self, module: Module, name: str = "") -> bool:
        """Note that a module is called; return whether it is a stand-in that was not known."""
        maker = find_maker(module)
        if not maker or self._called.get(module):
            return False
        self._called.put(module, True)
        stand_in = StandIn(name or self._names.name(module) or type(module).__name__, maker)
        for parameter in list_made_parameters(module):
            if self._by_parameter.get(parameter) is None:
                self._by_parameter.put(parameter, stand_in)
        return True

    def find(self, module: Any) -> StandIn | None:
        """Return what ran in the place of a module: it has its parameters, or those of the model that holds it."""
        if not self._by_parameter or not is_of(module, Module) or self._called.get(module):
            return None
        found = self._find_with(module)
        is_bare = found is None and next(module_tree.all_parameters(module), None) is None
        holder = find_model(module) if is_bare else None
        return found if holder is None else self._find_with(holder.root)

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget the reference to a parameter."""
        self._by_parameter.forget(tensor)

    def _find_with(self, module: Module) -> StandIn | None:
        found = map(self._by_parameter.get, module_tree.all_parameters(module))
        return next((stand_in for stand_in in found if stand_in is not None), None)


class HookOwner:
    """The module, tensor or optimizer that has a hook; it may no longer exist."""

    def __init__(self, owner: Any) -> None:
        self.name = ""
        """The name by the variables when its hook was registered; the recording may have a better one."""
        self.reference: weakref.ref[Any] | None = weakref.ref(owner)
        self.is_discarded = False
        """Whether it no longer existed when the next pass began."""

    def get(self) -> Any:
        """Return the owner; None if it no longer exists."""
        return None if self.reference is None else self.reference()


class ModuleOwner(HookOwner):
    """A module that has a hook."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__(module)
        self.class_name, self.has_forward = type(module).__name__, module_tree.has_forward(module)
        self.inner = ""
        """The name of a module inside it that had been called when the next pass began."""
        self.stand_in: StandIn | None = None
        """What torch made of its model and ran in its place."""


class OptimizerOwner(HookOwner):
    """An optimizer that has a hook."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        super().__init__(optimizer)
        self.class_name = type(optimizer).__name__


class TensorOwner(HookOwner):
    """A tensor that has a hook."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor)
        self.is_leaf, self.is_parameter = False, isinstance(tensor, torch.nn.Parameter)
        with suppress(RuntimeError):  # torch refuses everything about a stale output of unbind
            self.is_leaf = tensor.is_leaf
        self.is_wrapped = is_functorch_tensor(tensor)
        """Whether a transform of ``torch.func`` made it: it belongs to a graph of the transform's own."""
        self.requires_grad = tensor.requires_grad
        """Whether it required grad when a pass began last, or when the hook was registered."""
        self.key: TensorKey | None = None
        """What identifies it among the tensors that module calls return."""
        self.call: int | None = None
        """The module call that made it, if one did."""
        self.holder_class = ""
        """The class of the module that holds it, if one does."""
        self.made_by = ""
        """The op that made it; empty for a leaf."""
        self.made_from: HookOwner | None = None
        """The leaf that it was made from, if that op takes no other tensor, or is one of weight_norm."""


class HookOwners:
    """All owners of hooks that a recording knows."""

    def __init__(self, calls: CallTracker) -> None:
        self.calls, self.names = calls, OwnerNames(calls.modules)
        self._owners: dict[int, HookOwner] = {}
        """``id`` → each owner that still exists."""
        self._unnamed: list[ModuleOwner] = []
        """The modules that got a hook since the last pass began: perhaps nothing calls them, and so names them."""

    def find(self, owner: Any, name: str = "") -> HookOwner:
        """Return what is kept of an owner; a new one without a name is named by the variables of the user's code."""
        known = self._owners.get(id(owner))
        if known is None or known.get() is not owner:
            known = self._owners[id(owner)] = self._make(owner)
            known.name = name or self.names.name(owner)
            if isinstance(known, TensorOwner):
                known.holder_class = self.names.find_holder_class(owner)
            if isinstance(known, ModuleOwner) and not name:
                self._unnamed.append(known)
        return known

    def _make(self, owner: Any) -> HookOwner:
        if is_of(owner, torch.nn.Module):
            return ModuleOwner(owner)
        if is_of(owner, torch.optim.Optimizer):
            return OptimizerOwner(owner)
        made = TensorOwner(owner)
        with suppress(RuntimeError):  # torch refuses everything about a stale output of unbind
            node = owner.grad_fn
            if node is not None:
                leaf = _find_leaf(node)
                made.made_by, made.made_from = type(node).__name__, None if leaf is None else self.find(leaf)
                made.key = find_key(owner)
                made.call = self.calls.owners.node_owners.find_owners([node]).get(id(node))
        return made

    def name_models(self) -> None:
        """Name the models of new owners, as a call of them would; note what was called in them, and which are gone."""
        for owner in self._unnamed:
            module = owner.get()
            if module is None:
                owner.is_discarded = True
            else:
                self.calls.modules.name_if_held(module)
                owner.inner = self.find_called_inside(module)
        self._unnamed.clear()

    def find_called_inside(self, module: torch.nn.Module) -> str:
        """Return the name of a module inside another one that was called; empty if none was."""
        modules = self.calls.modules
        inner = (modules.find_number(one) for one in module_tree.all_modules(module) if one is not module)
        return next((modules.trace.modules[number].name for number in inner if number is not None), "")

    def note_stand_ins(self, stand_ins: StandIns) -> None:
        """Note which modules with hooks something else runs for."""
        for owner in self._owners.values():
            if isinstance(owner, ModuleOwner):
                owner.stand_in = owner.stand_in or stand_ins.find(owner.get())

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget the reference to a tensor."""
        owner = self._owners.pop(id(tensor), None)
        if owner is not None and owner.get() is tensor:
            owner.reference = None

    def forget_dead(self) -> None:
        """Forget the owners that no longer exist; the hooks of the ledger keep what they need of them."""
        self._owners = {key: owner for key, owner in self._owners.items() if owner.get() is not None}


def _find_leaf(node: Node) -> torch.Tensor | None:
    """Return the leaf that a node computed its tensor from; of several inputs only weight_norm's direction counts."""
    following = node.next_functions
    if len(following) != 1 and not type(node).__name__.startswith("WeightNorm"):
        return None
    return getattr(following[0][0], "variable", None)
