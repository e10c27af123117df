"""Notes during a recording when hooks are registered and removed, and what the passes see of their owners."""

import weakref
from collections import Counter
from collections.abc import Iterable
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.autograd import variable_names
from hookviz.autograd.torch_internals import MODULE_HOOKS
from hookviz.recorder.follower import Follower, PassStart
from hookviz.recorder.followers.hook_owners import ModuleEvidence, TensorEvidence
from hookviz.recorder.followers.multi_grad_rows import MultiGradGroup
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.recorder.session import Session
from hookviz.recorder.torch.hook_dicts import user_hook_entries
from hookviz.recorder.torch.unwrapped_hooks import closure_variables, unwrap_hook
from hookviz.support.source_code import Source, describe_function, shorten_filename
from hookviz.trace import HOOK_KINDS, MODULE_HOOK_KINDS, HookIdentity, identity_of
from hookviz.trace.value_rows import get_stored_rows

MAX_REMOVALS = 2_000
"""A recording remembers up to this many removed hooks; a note says how many more were removed."""


MAX_MODULE_HOOKS = 2_000
"""A recording remembers the modules of up to this many hooks that are registered during it."""


class Removal(NamedTuple):
    """A hook that was removed during the recording."""

    hooks: "weakref.ref[Any]"
    key: Any
    source: Source
    group: MultiGradGroup | None
    until: int
    removed_at: str
    seen: Counter[str] | None
    """What the passes had seen of its tensor by then; None if the tensor is not known."""


class Registration(NamedTuple):
    """A hook that was registered on a tensor during the recording."""

    hooks: "weakref.ref[Any]"
    tensor: "weakref.ref[torch.Tensor] | None"
    version: int
    """How often the tensor had been changed in place."""
    seen: Counter[str]
    """What the passes had seen of the tensor, because of earlier hooks."""
    kind: str
    source: Source
    group: MultiGradGroup | None
    normed: "weakref.ref[torch.Tensor] | None" = None
    """The parameter of which weight_norm computed the tensor, if it did."""

    @property
    def is_gone(self) -> bool:
        """Whether neither the tensor nor the value that the hook was registered on exists any more."""
        return self.hooks() is None and self.tensor is not None and self.tensor() is None


_REGISTERING_METHODS = {f"register_{kind}": kind for kind in MODULE_HOOK_KINDS}
"""Method of torch.nn.Module → the kind of hook that it registers."""


class ModuleRegistration(NamedTuple):
    """A hook that was registered on a module during the recording."""

    hooks: "weakref.ref[Any]"
    module: "weakref.ref[torch.nn.Module]"
    module_class: str
    kind: str
    source: Source


class HookLog(Follower):
    """Notes what happens to hooks during a recording; none of it may take long.

    torch numbers hooks in the order in which they are registered: that tells which are older than the recording.
    """

    def __init__(self, session: Session, calls: CallTracker) -> None:
        self.session, self.trace, self.calls = session, session.trace, calls
        self.tensors, self.modules = TensorEvidence(), ModuleEvidence(calls)
        self.on_tensors: dict[int, Registration] = {}
        """Key → the hook, for the hooks that were registered on tensors."""
        self.on_modules: dict[int, ModuleRegistration] = {}
        """Key → the hook, for hooks that were registered on modules; not for those that were removed after a call."""
        self.called_unseen: set[Any] = set()
        """The keys of the hooks of modules whose calls were not followed, if there are ``on_modules``."""
        self.missed_module_hooks = 0
        """The number of hooks on modules that were not noted because there were too many."""
        self.removals: list[Removal] = []
        self.missed_removals = 0
        """The number of removals that were not noted because there were too many."""
        self.fired: set[HookIdentity] = set()
        """The hooks that fired in dropped passes; after ``note_firings``, all that fired or may have fired."""
        self.on_graphs: set[Any] = set()
        """The keys of the tensor hooks that were on the graph of a pass."""
        self._unfollowed: dict[int, weakref.ref[Any]] = {}
        """``id`` of the hook dicts of modules that were called and are not followed; shallow copies share them."""
        self._first_key = RemovableHandle.next_id
        self._registered: dict[int, tuple[int, str]] = {}
        """Key → the number of steps when the hook was registered, and by which line of the user's code."""
        self._dropped_steps = 0
        self._dead: set[Any] = set()
        """The keys of hooks that no longer exist and still have rows in the trace."""

    def registered(self, handle: RemovableHandle, registering: FrameType) -> None:
        """Note that torch has made the handle of a new hook, which it puts into its dict next.

        ``registering`` is the frame of the function that registers the hook.
        """
        self._registered[handle.id] = self._dropped_steps + len(self.trace.rows), _locate_caller()
        if registering.f_code.co_name in _REGISTERING_METHODS:
            self.session.guard(self._module_hook_comes, handle, registering)

    def _module_hook_comes(self, handle: RemovableHandle, registering: FrameType) -> None:
        """Note the owner of a hook that a method of a module is about to register: perhaps nothing will call it."""
        if len(self.on_modules) >= MAX_MODULE_HOOKS and not self.missed_module_hooks:
            self.on_modules = {key: one for key, one in self.on_modules.items() if not self._was_called(one)}
        if len(self.on_modules) >= MAX_MODULE_HOOKS:
            self.missed_module_hooks += 1
            return
        variables = registering.f_locals
        module, hook = variables.get("self"), variables.get("hook")
        if isinstance(module, torch.nn.Module) and hook is not None and not _belongs_to_torch(hook):
            kind = _REGISTERING_METHODS[registering.f_code.co_name]
            references = handle.hooks_dict_ref, weakref.ref(module)
            source = find_user_source(hook)[0]
            self.on_modules[handle.id] = ModuleRegistration(*references, type(module).__name__, kind, source)

    def tensor_hook_added(self, kind: str, tensor: torch.Tensor, hooks: Any) -> None:
        """Note the source of a hook that was just added to a tensor, which may soon be gone."""
        key, hook = next(reversed(user_hook_entries(hooks)), (None, None))
        if isinstance(key, int) and key in self._registered:
            source, group = find_user_source(hook)
            version, seen = _version_of(tensor), self.tensors.counts_of(tensor)
            references = weakref.ref(hooks), weakref.ref(tensor)
            normed = _find_normed_parameter(tensor)
            self.on_tensors[key] = Registration(*references, version, seen, kind, source, group, normed)

    def removed(self, handle: RemovableHandle) -> None:
        """Note that a hook is about to be removed, and by which line of the user's code."""
        hooks: Any = handle.hooks_dict_ref()
        if hooks is None or handle.id not in hooks:
            return
        self._forget_called_module(handle.id)
        if len(self.removals) >= MAX_REMOVALS:
            self.missed_removals += 1
            self.on_tensors.pop(handle.id, None)  # it would look as if it were still registered
            return
        self.calls.modules.hook_removed(hooks, handle.id, hooks[handle.id])
        line = _locate_caller()
        until = self._dropped_steps + len(self.trace.rows)
        seen = self._seen_of(handle.id)
        source, group = find_user_source(hooks[handle.id])
        self.removals.append(Removal(weakref.ref(hooks), handle.id, source, group, until, line, seen))

    def _forget_called_module(self, key: int) -> None:
        """Forget the module of a hook that is removed, if it was called."""
        registration = self.on_modules.get(key)
        if registration is not None and self._was_called(registration):
            del self.on_modules[key]

    def _was_called(self, registration: ModuleRegistration) -> bool:
        """Return whether a module exists and was called: then the recording knows it anyway."""
        module = registration.module()
        return module is not None and self.calls.modules.find_number(module) is not None

    def _seen_of(self, key: int) -> Counter[str] | None:
        """Return what the passes have seen of the tensor of a hook that was registered in the recording."""
        registration = self.on_tensors.get(key)
        tensor = None if registration is None or registration.tensor is None else registration.tensor()
        return None if tensor is None else self.tensors.counts_of(tensor)

    def unfollowed_call(self, module: torch.nn.Module) -> None:
        """Note that a module is called, perhaps one that the recording does not follow, or not now."""
        if self.on_modules:
            self.called_unseen.update(*filter(None, map(vars(module).get, MODULE_HOOKS.values())))
        if module in self.calls.followed:
            return
        for attribute in MODULE_HOOKS.values():
            hooks = vars(module).get(attribute)
            if hooks:
                self._unfollowed[id(hooks)] = weakref.ref(hooks)

    def may_have_fired_elsewhere(self, hooks: Any) -> bool:
        """Return whether a dict was also that of a module that was called without being followed."""
        reference = self._unfollowed.get(id(hooks))
        return reference is not None and reference() is hooks

    def pass_begins(self, start: PassStart) -> None:
        """Note which tensors with hooks are not in the graph of a pass, and which modules without a call are used."""
        is_partial = bool(start.inputs)
        self.modules.pass_begins(start.snapshot, is_partial=is_partial)
        if self.has_hooks:
            self.tensors.pass_begins(start.snapshot, start.names.values(), is_partial=is_partial)

    @property
    def has_hooks(self) -> bool:
        """Whether any hook was registered since Python started."""
        return bool(RemovableHandle.next_id)

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget what was seen of a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self.tensors.forget(tensor)
        self.modules.forget(tensor)
        for key, registration in self.on_tensors.items():
            if registration.tensor is not None and registration.tensor() is tensor:
                self.on_tensors[key] = registration._replace(tensor=None)

    def dropped(self, count: int) -> None:
        """Note what fired in the first ``count`` passes, which are about to be dropped."""
        dropped = [row for row in self.trace.rows if row.pass_id < count]
        self._dropped_steps += len(dropped)
        self._note_graphs()
        self._add_fired({row.hook for row in dropped if row.kind in HOOK_KINDS})
        self._forget_dead_hooks()

    def _forget_dead_hooks(self) -> None:
        """Forget the hooks of tensors that no longer exist and of passes that were dropped: a loop may make many."""
        self._dead |= {key for key, registration in self.on_tensors.items() if registration.hooks() is None}
        self.removals = [removal for removal in self.removals if removal.hooks() is not None]
        self.on_tensors = {key: one for key, one in self.on_tensors.items() if key not in self._dead}
        self.on_modules = {key: one for key, one in self.on_modules.items() if one.hooks() is not None}
        self.fired = {identity for identity in self.fired if identity[0] not in self._dead}
        self.on_graphs -= self._dead
        self._dead &= {row.key for row in self.trace.hook_rows}
        self._registered = {key: entry for key, entry in self._registered.items() if entry[0] >= self._dropped_steps}
        self.tensors.forget_dead_tensors()

    def note_firings(self) -> None:
        """Note what fired in the passes that the trace still holds."""
        # Compact rows, which have no hook, are not expanded for this.
        self._add_fired({row.hook for row in get_stored_rows(self.trace.rows, 0) if type(row) is not tuple})
        self.fired |= self.session.unseen_firings
        self._note_graphs()

    def _note_graphs(self) -> None:
        kinds = ("tensor_hook", "post_accumulate_hook", "multi_grad_hook")
        self.on_graphs |= {row.key for row in self.trace.hook_rows if row.kind in kinds}

    def _add_fired(self, hooks: Iterable[int | None]) -> None:
        self.fired |= {identity_of(self.trace.hook_rows[hook]) for hook in hooks if hook is not None}

    def since(self, key: Any) -> int | None:
        """Return the number of steps when a hook was registered; None if that was before the recording."""
        if not isinstance(key, int) or key < self._first_key:
            return None
        step = self._registered[key][0] if key in self._registered else 0
        return max(step - self._dropped_steps, 0)

    def registered_at(self, key: Any) -> str | None:
        """Return the file and line of the code that registered a hook during the recording; None if unknown."""
        return self._registered[key][1] if key in self._registered else None

    def seen_before(self, key: int) -> Counter[str]:
        """Return what the passes had seen of the tensor of a hook before it was registered."""
        registration = self.on_tensors.get(key)
        return Counter() if registration is None else registration.seen

    def is_on_earlier_value(self, key: Any, tensor: torch.Tensor) -> bool:
        """Return whether ``tensor`` may have been changed in place since it got a hook, which stays where it was."""
        registration = self.on_tensors.get(key)
        version = 0 if registration is None else registration.version
        try:
            return not tensor.is_leaf and tensor._version != version
        except RuntimeError:  # a stale output of unbind
            return True

    def until(self, removal: Removal) -> int:
        """Return the number of steps when a hook was removed."""
        return max(removal.until - self._dropped_steps, 0)


def _belongs_to_torch(hook: Any) -> bool:
    """Return whether torch brought a hook, as for weight_norm or pruning."""
    return str(getattr(hook, "__module__", "")).partition(".")[0] == "torch"


def find_user_source(hook: Any) -> tuple[Source, MultiGradGroup | None]:
    """Return the source of the user's function in a hook, and for a part of a multi-grad hook its group."""
    unwrapped = unwrap_hook(hook)
    source = describe_function(hook if unwrapped is None else unwrapped.function)
    if unwrapped is None or unwrapped.kind != "multi_grad_hook":
        return source, None
    size = closure_variables(hook).get("len_tensors")
    return source, MultiGradGroup(unwrapped.state, size if isinstance(size, int) else None)


def _find_normed_parameter(tensor: torch.Tensor) -> "weakref.ref[torch.Tensor] | None":
    """Return the parameter whose direction weight_norm gave to ``tensor``; None for any other tensor."""
    node = tensor.grad_fn
    if node is None or not type(node).__name__.startswith("WeightNorm"):
        return None
    parameter = getattr(node.next_functions[0][0], "variable", None)
    return None if parameter is None else weakref.ref(parameter)


def _locate_caller() -> str:
    """Return the file and line of the user's code that is running."""
    frame = variable_names.caller_frame()
    return f"{shorten_filename(frame.f_code.co_filename) or ''}:{frame.f_lineno}"


def _version_of(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor does not count its changes
        return 0
