"""Notes which hooks fired, or may have fired where no step shows it."""

import weakref
from collections.abc import Iterable
from typing import Any

import torch

from hookviz.autograd.torch_internals import MODULE_HOOKS
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.recorder.session import Session
from hookviz.trace import HOOK_KINDS, HookIdentity, identity_of
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
        self._modules = {}
        for key, module in self.fired:
            if module is not None:
                self._modules.setdefault(key, []).append(module)

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
