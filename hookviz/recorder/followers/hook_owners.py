"""What the ledger of a recording keeps of the owners of hooks: numbers and texts, which outlive them."""

import weakref
from contextlib import suppress
from typing import Any

import torch
from torch.autograd.graph import Node

from hookviz.autograd import module_tree
from hookviz.recorder.followers.owner_names import OwnerNames
from hookviz.recorder.followers.stand_ins import StandIn, StandIns
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.recorder.modules.graph_owners import TensorKey, find_key
from hookviz.support.user_objects import is_of


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
