"""The ledger of hooks: when each was registered and removed, which fired, and what happened to its owner in between.

It is kept while the program runs, in numbers and texts: what is said about a hook is the same whether its owner still
exists when the recording ends, or not.
"""

import weakref
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.autograd.torch_internals import MODULE_HOOKS, TENSOR_HOOKS
from hookviz.recorder.follower import Follower, PassStart
from hookviz.recorder.followers.hook_dates import HookDates, OverwrittenHandles
from hookviz.recorder.followers.hook_entry import HookEntry, is_among
from hookviz.recorder.followers.hook_owners import HookOwner, HookOwners, StandIns, TensorOwner
from hookviz.recorder.followers.parameter_ledger import ParameterLedger
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.recorder.session import Session
from hookviz.recorder.torch.hook_dicts import user_hook_entries
from hookviz.support.groups import group
from hookviz.trace import HOOK_KINDS, MODULE_HOOK_KINDS, STEP_HOOK_KINDS, HookIdentity, HookRow, identity_of
from hookviz.trace.hook_facts import ON_TENSOR_KINDS
from hookviz.trace.value_rows import get_stored_rows


class HookFirings:
    """The hooks that fired in a recording, also in passes that were dropped."""

    def __init__(self, session: Session, calls: CallTracker) -> None:
        self.session, self.trace, self.calls = session, session.trace, calls
        self.fired: set[HookIdentity] = set()
        """The hooks that fired in dropped passes; after ``note_all``, all that fired or may have fired."""
        self.on_graphs: set[Any] = set()
        """The keys of the tensor hooks that were on the graph of a pass."""
        self._unfollowed: dict[int, weakref.ref[Any]] = {}
        """``id`` of the reference → it, for the hook dicts of modules that were called and not followed."""
        self._modules: dict[Any, list[int]] = {}
        """Key → the modules for which a hook with this key fired, as of ``note_all``."""
        self._dead: set[Any] = set()
        """The keys of hooks that no longer exist and still have rows in the trace."""

    @property
    def keys(self) -> set[Any]:
        """The keys of the hooks that fired."""
        return {key for key, _module in self.fired}

    def note_all(self) -> None:
        """Note what fired in the passes that the trace still holds."""
        # Compact rows, which have no hook, are not expanded for this.
        self._add({row.hook for row in get_stored_rows(self.trace.rows, 0) if type(row) is not tuple})
        self.fired |= self.session.unseen_firings
        self._note_graphs()
        self._modules = group((key, module) for key, module in self.fired if module is not None)

    def passes_dropped(self, count: int) -> int:
        """Note what fired in the first ``count`` passes, which are about to be dropped; return their steps."""
        dropped = [row for row in self.trace.rows if row.pass_id < count]
        self._note_graphs()
        self._add({row.hook for row in dropped if row.kind in HOOK_KINDS})
        return len(dropped)

    def forget(self, keys: set[Any]) -> None:
        """Forget hooks that no longer exist, as soon as no row of the trace names them."""
        self._dead |= keys
        self.fired = {identity for identity in self.fired if identity[0] not in self._dead}
        self.on_graphs -= self._dead
        self._dead &= {row.key for row in self.trace.hook_rows}

    def _note_graphs(self) -> None:
        self.on_graphs |= {row.key for row in self.trace.hook_rows if row.kind in ON_TENSOR_KINDS}

    def _add(self, hooks: Iterable[int | None]) -> None:
        self.fired |= {identity_of(self.trace.hook_rows[hook]) for hook in hooks if hook is not None}

    # -- modules that are not followed

    def unfollowed_call(self, module: torch.nn.Module) -> None:
        """Note that a module is called that the recording does not follow, or not now."""
        for hooks in filter(None, map(vars(module).get, MODULE_HOOKS.values())):
            reference = weakref.ref(hooks)
            self._unfollowed[id(reference)] = reference

    def find_modules(self, key: Any) -> list[int]:
        """Return the modules for which a hook with this key fired: a copy of a module has hooks with the same keys."""
        return self._modules.get(key, [])

    def has_fired_from(self, hooks: "weakref.ref[Any]", key: Any) -> bool:
        """Return whether a hook in this dict fired, or may have, in a call that was not followed.

        Python makes one reference to each dict, which tells dicts apart also when they are gone.
        """
        if id(hooks) in self._unfollowed:
            return True
        return any(self.calls.modules.dict_of_hook(key, module) is hooks for module in self.find_modules(key))


MAX_ENTRIES = 4_000
"""The ledger has entries for up to this many hooks of modules and optimizers; a note says if there were more."""

_REGISTERING_METHODS = {f"register_{kind}": kind for kind in (*MODULE_HOOK_KINDS, *STEP_HOOK_KINDS)}
"""Method of a module or of an optimizer → the kind of hook that it registers."""


class HookLedger(Follower):
    """Follows each hook from its registration to its removal; none of it may take long.

    torch numbers hooks in the order in which they are registered: that tells which are older than the recording. Older
    ones get an entry when the recording first meets their owner.
    """

    def __init__(self, session: Session, calls: CallTracker, parameters: ParameterLedger) -> None:
        self.session, self.trace, self.calls, self.parameters = session, session.trace, calls, parameters
        self.owners = HookOwners(calls)
        self.stand_ins = StandIns(self.owners.names)
        self.entries: dict[Any, HookEntry] = {}
        """Key → the hook, for those that were registered during the recording."""
        self.older: dict[tuple[Any, int], HookEntry] = {}
        """Key and ``id`` of the dict → the hook, for older ones."""
        self.missed = 0
        """The number of hooks that have no entry because there were too many."""
        self.passes = 0
        self.partial_passes = 0
        """The number of those that compute the gradients of some tensors only."""
        self.whole_passes = 0
        """The number of passes whose graph was observed as a whole."""
        self.firings = HookFirings(session, calls)
        self._removed: dict[int, list[HookEntry]] = {}
        """``id`` of a dict → the older hooks that were removed from it before their owner was known."""
        self._on_tensors: dict[tuple[Any, int], HookEntry] = {}
        """The hooks of tensors that are registered now."""
        self.dates = HookDates(self.trace)
        self.handles = OverwrittenHandles(session, self.dates)

    # -- hooks come and go

    def registered(self, handle: RemovableHandle, registering: FrameType) -> None:
        """Note that torch has made the handle of a new hook, which it puts into its dict next.

        ``registering`` is the frame of the function that registers the hook.
        """
        self.dates.note_registration(handle.id)
        self.handles.registered(handle)
        kind = _REGISTERING_METHODS.get(registering.f_code.co_name)
        if kind is not None:
            self.session.guard(self._hook_comes, handle, kind, registering)

    def _hook_comes(self, handle: RemovableHandle, kind: str, registering: FrameType) -> None:
        """Add the entry of a hook that a method of a module or an optimizer is about to register."""
        variables = registering.f_locals
        owner, hook = variables.get("self"), variables.get("hook")
        is_known_class = isinstance(owner, (torch.nn.Module, torch.optim.Optimizer))
        if not is_known_class or hook is None or _belongs_to_torch(hook) or not self._has_room():
            return
        entry = HookEntry(kind, handle.id, hook, self.owners.find(owner), handle.hooks_dict_ref())
        entry.flags = tuple(flag for flag in ("with_kwargs", "always_call") if variables.get(flag) is True)
        entry.is_again = is_among(hook, user_hook_entries(handle.hooks_dict_ref()))
        self._add(entry)

    def _has_room(self) -> bool:
        """Return whether another hook of a module gets an entry; with many, those that fired give theirs up."""
        if len(self.entries) - len(self._on_tensors) >= MAX_ENTRIES and not self.missed:
            self.firings.note_all()
            fired = self.firings.keys
            self.entries = {key: one for key, one in self.entries.items() if key not in fired}
        is_full = len(self.entries) - len(self._on_tensors) >= MAX_ENTRIES
        self.missed += is_full
        return not is_full

    def tensor_hook_added(self, kind: str, tensor: torch.Tensor, hooks: Any, *, is_late: bool = False) -> None:
        """Add the entry of a hook that was just added to a tensor, which may soon be gone.

        ``is_late``: whether a pass that uses the tensor has begun already.
        """
        entries = user_hook_entries(hooks)
        key, hook = entries[-1] if entries else (None, None)
        if self.dates.registered_at(key) is None:
            return
        entry = HookEntry(kind, key, hook, self.owners.find(tensor), hooks)
        entry.version, entry.is_late, entry.is_again = _version_of(tensor), is_late, is_among(hook, entries[:-1])
        self._add(entry)
        self._on_tensors[entry.identity] = entry

    def _add(self, entry: HookEntry) -> None:
        entry.passes_before = self.whole_passes
        entry.since, entry.registered_at = self.dates.find(entry.key)
        call = self.calls.innermost()
        entry.registered_by = None if call is None else call.running_hook
        self.entries[entry.key] = entry

    def add_older(self, kind: str, key: Any, hook: Any, owner: Any, hooks: Any, name: str) -> HookEntry:
        """Return the entry of a hook in a dict of ``owner``, named ``name``; an older one gets an entry now."""
        known = self.entries.get(key)
        if known is None or known.hooks() is not hooks:
            known = self.older.get((key, id(hooks)))
        if known is None or known.hooks() is not hooks:
            known = self.older[key, id(hooks)] = HookEntry(kind, key, hook, self.owners.find(owner, name), hooks)
            known.since, known.registered_at = self.dates.find(key)
            known.passes_before = self.whole_passes
        known.owner.name = name
        return known

    def removed(self, handle: RemovableHandle) -> None:
        """Note that a hook is about to be removed, and by which line of the user's code."""
        hooks: Any = handle.hooks_dict_ref()
        if hooks is None or handle.id not in hooks:
            return
        self.calls.modules.hook_removed(hooks, handle.id, hooks[handle.id])
        entry = self.entries.get(handle.id)
        if (entry is None or entry.hooks() is not hooks) and not self.dates.is_new(handle.id):
            entry = self._find_removed(handle.id, hooks)
        if entry is not None:
            self._on_tensors.pop(entry.identity, None)
            entry.until, entry.removed_at = self.dates.now()
            entry.passes_after = self.whole_passes
        self.handles.removed(handle.id, self.entries)

    def _find_removed(self, key: Any, hooks: Any) -> HookEntry | None:
        """Return the entry of an older hook that is about to be removed; its owner may not be known yet."""
        known = self.older.get((key, id(hooks)))
        if known is not None or not self._has_room():
            return known
        entry = HookEntry("", key, hooks[key], HookOwner(hooks), hooks)
        entry.kind = ""
        self.older[key, id(hooks)] = entry
        self._removed.setdefault(id(hooks), []).append(entry)
        return entry

    def has_removals(self, hooks: Any) -> bool:
        """Return whether an older hook was removed from a dict before its owner was known."""
        return any(entry.hooks() is hooks for entry in self._removed.get(id(hooks), ()))

    def add_removed(self, kind: str, owner: Any, hooks: Any, name: str) -> None:
        """Give the hooks that were removed from a dict their owner, which was found later."""
        for entry in self._removed.get(id(hooks), ()):
            if entry.hooks() is hooks and not entry.kind:
                entry.kind, entry.owner = kind if entry.group is None else "multi_grad_hook", self.owners.find(owner)
                entry.owner.name = name

    # -- modules that torch made of others are called

    def call_written(self, call: int, module: torch.nn.Module) -> None:
        """Note what runs in the place of modules with hooks."""
        if self.dates.has_hooks and self.stand_ins.note(module, self.trace.plain_call(call)):
            self.owners.note_stand_ins(self.stand_ins)

    def unfollowed_call(self, module: torch.nn.Module) -> None:
        """Note a call of a module that the recording does not follow, or not now."""
        self.firings.unfollowed_call(module)
        if self.dates.has_hooks and self.stand_ins.note(module):
            self.owners.note_stand_ins(self.stand_ins)

    # -- passes begin

    def pass_opened(self, pass_id: int) -> None:
        """Name the models of new hooks, also those that are not called: their parameters may be in the graph."""
        self.owners.name_models()

    def pass_begins(self, start: PassStart) -> None:
        """Note which tensors with hooks belong to the graph of a pass, unless only a part of it is observed."""
        self.passes += 1
        self.partial_passes += bool(start.inputs)
        if not self.dates.has_hooks or len(start.snapshot.nodes) < len(start.snapshot.all_nodes):
            return
        met: set[int] = set()
        for name, tensor in start.names.items():  # of several names the first counts: that of a module comes early
            if any(getattr(tensor, attribute) for attribute in TENSOR_HOOKS.values()) and id(tensor) not in met:
                met.add(id(tensor))
                self._meet(tensor, name)
        self.whole_passes += 1
        for identity, entry in list(self._on_tensors.items()):
            tensor = entry.owner.get()
            if tensor is None:
                del self._on_tensors[identity]
                entry.owner.is_discarded = not entry.seen
                entry.is_dropped = not entry.seen and entry.hooks() is None
            else:
                with suppress(RuntimeError):  # torch refuses everything about a stale output of unbind
                    if entry.see(tensor, start) and isinstance(tensor, torch.nn.Parameter):
                        self._look_outside(entry, tensor)

    def _meet(self, tensor: torch.Tensor, name: str) -> None:
        """Add entries for the hooks of a tensor that a variable or a module holds now."""
        for kind, attribute in TENSOR_HOOKS.items():
            hooks = getattr(tensor, attribute)
            for key, hook in user_hook_entries(hooks) if hooks else ():
                entry = self.add_older(kind, key, hook, tensor, hooks, name)
                self._on_tensors[entry.identity] = entry

    def _look_outside(self, entry: HookEntry, parameter: torch.Tensor) -> None:
        """Note of a parameter that a pass does not use whether it was frozen at its call, and whether it is held."""
        known = self.parameters.find_entry(parameter)
        is_called = known is not None and known.module is not None
        entry.frozen_at_call += known is not None and is_called and not known.requires_grad
        is_of_called_model = is_called or self.calls.modules.holds(parameter)
        is_held_elsewhere = not is_of_called_model and self.owners.names.is_held(parameter)
        entry.is_stray = not (is_of_called_model or is_held_elsewhere)
        entry.is_of_uncalled_model = is_held_elsewhere

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget the reference to a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self.owners.forget(tensor)
        self.stand_ins.forget(tensor)

    # -- passes are dropped, and the recording ends

    def dropped(self, count: int) -> None:
        """Note what fired in the first ``count`` passes, which are about to be dropped; forget hooks that are gone."""
        self.dates.steps_dropped(self.firings.passes_dropped(count))
        fired = self.firings.keys
        gone = {key: one for key, one in self.entries.items() if one.hooks() is None}
        forgotten = {key for key, one in gone.items() if key in fired or _is_forgotten(one, self.dates)}
        self.entries = {key: one for key, one in self.entries.items() if key not in forgotten}
        self.older = {key: one for key, one in self.older.items() if one.hooks() is not None}
        self.owners.forget_dead()
        self.firings.forget(forgotten)

    def close(self) -> None:
        """Write of the hooks that fired by which line they were registered, and what the ledger knows of them."""
        for index, row in enumerate(self.trace.hook_rows):
            entry = self.entries.get(row.key)
            where = self.dates.registered_at(row.key) or row.registered_at
            row = row._replace(registered_at=where)
            self.trace.hook_rows[index] = row if entry is None else _complete(row, entry, self.dates)


def _complete(row: HookRow, entry: HookEntry, dates: HookDates) -> HookRow:
    """Add to the row of a hook that fired what the ledger knows of it."""
    row = row._replace(again=entry.is_again, bound=entry.has_object, registered_by=entry.registered_by)
    row = row._replace(removed_at=entry.removed_at or None, until=dates.count_left(entry.until))
    row = row._replace(overwritten_by=entry.overwritten_by, overwritten_at=entry.overwritten_at)
    return row._replace(spared=dates.count_left(entry.spared), spared_at=entry.spared_at)


def _is_forgotten(entry: HookEntry, dates: HookDates) -> bool:
    """Return whether a hook was registered on a tensor before the passes that are left: a loop may make many."""
    return isinstance(entry.owner, TensorOwner) and (entry.since or 0) < dates.dropped_steps


def _belongs_to_torch(hook: Any) -> bool:
    """Return whether torch brought a hook, as for weight_norm or pruning."""
    return str(getattr(hook, "__module__", "")).partition(".")[0] == "torch"


def _version_of(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor does not count its changes
        return 0
