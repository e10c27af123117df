"""What the ledger of a recording keeps of one hook and of its owner: numbers and texts, which outlive both."""

import weakref
from contextlib import suppress
from typing import Any

import torch

from hookviz.autograd import module_tree
from hookviz.autograd.torch_internals import MODULE_HOOKS
from hookviz.recorder.followers.multi_grad_rows import MultiGradGroup
from hookviz.support.source_code import Source


class HookOwner:
    """The module, tensor or optimizer that has a hook; it may no longer exist."""

    def __init__(self, owner: Any) -> None:
        self.name = ""
        """The name by the variables when its hook was registered; the recording may have a better one."""
        self.reference: weakref.ref[Any] | None = weakref.ref(owner)

    def get(self) -> Any:
        """Return the owner; None if it no longer exists."""
        return None if self.reference is None else self.reference()


class ModuleOwner(HookOwner):
    """A module that has a hook."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__(module)
        self.class_name, self.has_forward = type(module).__name__, module_tree.has_forward(module)
        self.dict_ids = {id(vars(module).get(attribute)) for attribute in MODULE_HOOKS.values()}
        """The ``id`` of each of its hook dicts, which a shallow copy of it shares."""


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
        self.call: int | None = None
        """The module call that made it, if one did."""
        self.normed: weakref.ref[torch.Tensor] | None = None
        """The parameter of which weight_norm computed it, if it did."""


class HookEntry:
    """A hook, from its registration to its removal or to the end of the recording."""

    def __init__(self, kind: str, key: Any, source: Source, owner: HookOwner, hooks: Any) -> None:
        self.kind, self.key, self.source, self.owner = kind, key, source, owner
        self.hooks = weakref.ref(hooks)
        """The dict that has it."""
        self.group: MultiGradGroup | None = None
        self.flags: tuple[str, ...] = ()
        self.since: int | None = None
        """The number of steps when it was registered; None if that was before the recording."""
        self.registered_at: str | None = None
        self.until: int | None = None
        """The number of steps when it was removed; None if it was not."""
        self.removed_at: str | None = None
        self.version = 0
        """How often its tensor had been changed in place when it was registered."""
        self.passes_before = 0
        self.passes_after: int | None = None
        """The number of passes that had begun when it was registered, and when it was removed."""
        self.seen = self.in_graph = self.partial = self.frozen = self.frozen_at_call = 0
        """The passes that began while it was registered and its tensor existed; those among them that had the tensor in
        their graph; that had it so and were limited to some tensors; at which it did not require grad; and at which it
        did, but had not when its module was called last."""
        self.detour = ""
        """The op that made its tensor from a tensor of the graph of a pass that does not use the tensor itself."""
        self.is_stray = False
        """Whether its tensor is a parameter that no module held that was known when a pass began."""

    @property
    def identity(self) -> tuple[Any, int]:
        """What no other hook has: a copy of a module has hooks with the same keys, in dicts of its own."""
        return self.key, id(self.owner)
