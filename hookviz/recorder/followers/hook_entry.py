"""What the ledger of a recording keeps of one hook: numbers and texts, which outlive it."""

import weakref
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.recorder.follower import PassStart
from hookviz.recorder.followers.hook_owners import HookOwner, TensorOwner
from hookviz.recorder.torch.unwrapped_hooks import unwrap_hook, user_function
from hookviz.support.source_code import Source, describe_function
from hookviz.support.wrapped_functions import closure_variables, find_code, innermost_function, is_installed_file


class MultiGradGroup(NamedTuple):
    """What the parts of one multi-grad hook have in common."""

    state: object
    """The dict that the parts share; it is held so that no other hook gets the same ``id``."""
    size: int | None
    """The number of parts; None for a hook that fires at the first gradient, whose parts torch does not count."""


class HookEntry:
    """A hook, from its registration to its removal or to the end of the recording."""

    def __init__(self, kind: str, key: Any, hook: Any, owner: HookOwner, hooks: Any) -> None:
        self.source, self.group = find_user_source(hook)
        self.kind, self.key, self.owner = kind if self.group is None else "multi_grad_hook", key, owner
        self.hooks = weakref.ref(hooks)
        """The dict that has it."""
        self.flags: tuple[str, ...] = ()
        self.has_object = not isinstance(hook, FunctionType)
        """Whether it is a method or an object, which ``copy.deepcopy`` copies; it does not copy functions."""
        self.is_again = False
        """Whether the same function or object was in its dict already when it was registered."""
        self.is_from_library = _is_from_library(hook)
        """Whether its function belongs to an installed package."""
        self.since: int | None = None
        """The number of steps when it was registered; None if that was before the recording."""
        self.registered_at: str | None = None
        self.registered_by: Any = None
        """The key of the module hook that was running when it was registered."""
        self.until: int | None = None
        """The number of steps when it was removed; None if it was not."""
        self.removed_at: str | None = None
        self.overwritten_by: Any = None
        """The key of a hook that was removed, and whose handle had taken the place of that of this one."""
        self.overwritten_at: str | None = None
        self.spared: int | None = None
        """The number of steps when that other hook was removed; None if none was."""
        self.spared_at: str | None = None
        self.version = 0
        """How often its tensor had been changed in place when it was registered."""
        self.passes_before = 0
        self.passes_after: int | None = None
        """The number of passes that had begun when it was registered, and when it was removed."""
        self.seen = self.in_graph = self.partial = self.frozen = self.frozen_at_call = self.transformed = 0
        """The passes that began while it was registered and its tensor existed; those among them that had the tensor in
        their graph; that had it so and were limited to some tensors; at which it did not require grad; at which it did,
        but had not when its module was called last; and that a transform of ``torch.func`` began."""
        self.is_beside = False
        """Whether its tensor was made from one of the graph of a pass that does not use the tensor itself."""
        self.is_late = False
        """Whether a pass had begun that uses its tensor when it was registered."""
        self.is_dropped = False
        """Whether its tensor, no parameter, was gone when the next pass began, and with it the dict: nothing used it.
        """
        self.is_stray = False
        """Whether its tensor is a parameter that no module held that was known when a pass began."""
        self.is_of_uncalled_model = False
        """Whether its tensor was then a parameter of a model of which no module had been called."""

    @property
    def identity(self) -> tuple[Any, int]:
        """What no other hook has: a copy of a module has hooks with the same keys, in dicts of its own."""
        return self.key, id(self.owner)

    def see(self, tensor: torch.Tensor, start: PassStart) -> bool:
        """Note what a pass that begins has to do with the tensor of the hook; return whether that is an unused leaf."""
        owner = self.owner
        if not isinstance(owner, TensorOwner) or (not tensor.is_leaf and tensor._version != self.version):
            return False  # the hook stays with the value from before the tensor was changed in place
        owner.requires_grad = tensor.requires_grad
        self.seen += 1
        self.frozen += not owner.requires_grad
        self.transformed += start.is_transformed
        if start.snapshot.place_of_tensor(tensor) is not None:
            self.in_graph += 1
            self.partial += bool(start.inputs)
            return False
        if not owner.is_leaf:
            self.is_beside = _is_beside(tensor, start.snapshot)
        return owner.is_leaf


def _is_beside(tensor: torch.Tensor, snapshot: GraphSnapshot) -> bool:
    """Return whether ``tensor`` was made from a tensor of the graph."""
    node = tensor.grad_fn
    return node is not None and any(id(following) in snapshot.numbers for following, _ in node.next_functions)


def find_user_source(hook: Any) -> tuple[Source, MultiGradGroup | None]:
    """Return the source of the user's function in a hook, and for a part of a multi-grad hook its group."""
    unwrapped = unwrap_hook(hook)
    source = describe_function(unwrapped.function)
    if unwrapped.state is None:
        return source, None
    size = closure_variables(hook).get("len_tensors")
    return source, MultiGradGroup(unwrapped.state, size if isinstance(size, int) else None)


def _is_from_library(hook: Any) -> bool:
    """Return whether the function of a hook belongs to an installed package, not to the user's own code."""
    code = find_code(innermost_function(user_function(hook)))
    return code is not None and is_installed_file(code.co_filename)


_LOOKED_BACK = 8
"""Among how many hooks of its owner a new one is looked for: of a pile the last ones are enough."""


def is_among(hook: Any, entries: list[tuple[Any, Any]]) -> bool:
    """Return whether a hook is the same function, method or object as one of the last of some entries."""
    return any(_is_same(hook, other) for _key, other in entries[-_LOOKED_BACK:])


def _is_same(hook: Any, other: Any) -> bool:
    if type(hook) is MethodType and type(other) is MethodType:
        return hook.__self__ is other.__self__ and hook.__func__ is other.__func__
    return hook is other
