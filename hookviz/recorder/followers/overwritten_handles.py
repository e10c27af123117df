"""Notes which handles of hooks gave their place to that of another hook, so that ``remove`` can no longer reach them.

A variable that holds a handle and gets another one lets the first one go at the line that registers the second hook.
"""

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.hooks import RemovableHandle

from hookviz.recorder.follower import Follower
from hookviz.recorder.followers.hook_dates import HookDates
from hookviz.recorder.followers.hook_entry import HookEntry
from hookviz.recorder.session import Session


class OverwrittenHandles(Follower):
    """The handles that the program held when another hook was registered, and let go at the same line."""

    def __init__(self, session: Session, dates: HookDates) -> None:
        self.session, self.dates = session, dates
        self._held: dict[Any, weakref.ref[RemovableHandle]] = {}
        """Key of a hook → its handle."""
        self._newest: Any = None
        """The key of the hook that was registered last."""
        self._overwritten: dict[Any, list[Any]] = {}
        """Key of a hook → the keys of those whose handles gave their place to its own."""

    def registered(self, handle: RemovableHandle) -> None:
        """Note the handle of a new hook."""
        self._newest = handle.id
        self._hold(handle)

    def _hold(self, handle: RemovableHandle) -> None:
        """Notice when a handle is let go."""
        key = handle.id

        def let_go(_handle: Any) -> None:
            # Most handles are let go as soon as they are made: torch makes two in each call with backward hooks.
            if self._held.pop(key, None) is not None and key != self._newest:
                self.session.guard(self._let_go, key)

        self._held[key] = weakref.ref(handle, let_go)

    def steps_aside(self) -> None:
        """Notice no handle that is let go: a profiler would show that."""
        self._held = {key: weakref.ref(handle) for key, one in self._held.items() if (handle := one()) is not None}

    def steps_back(self) -> None:
        """Notice it again, of the handles that are still there."""
        for handle in [handle for one in self._held.values() if (handle := one()) is not None]:
            self._hold(handle)

    def _let_go(self, key: Any) -> None:
        """Note that the handle of a hook is gone, if the line that registered the newest one is still running."""
        if self.dates.now()[1] == self.dates.registered_at(self._newest):
            self._overwritten.setdefault(self._newest, []).append(key)

    def removed(self, key: Any, entries: Mapping[Any, HookEntry]) -> None:
        """Note that a hook is removed while those stay whose handles gave their place to its own."""
        for before, other in self._list_before(key):
            entry = entries.get(before)
            if entry is not None and entry.until is None and entry.spared is None:
                entry.overwritten_by, entry.overwritten_at = key, self.dates.registered_at(other)
                entry.spared, entry.spared_at = self.dates.now()

    def _list_before(self, key: Any) -> Iterator[tuple[Any, Any]]:
        """Yield each hook whose handle gave its place, with the one whose handle took it, one after the other."""
        for before in self._overwritten.pop(key, ()):
            yield before, key
            yield from self._list_before(before)

    def close(self) -> None:
        """Let go of all references: what is let go after the recording is of no interest."""
        self._held.clear()
