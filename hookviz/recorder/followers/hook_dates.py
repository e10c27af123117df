"""Notes when hooks are registered and removed, and by which line of the user's code.

A variable that holds a handle and gets another one lets the first one go at the line that registers the second hook:
``remove`` can then no longer reach the first.
"""

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.hooks import RemovableHandle

from hookviz.autograd import variable_names
from hookviz.recorder.follower import Follower
from hookviz.recorder.followers.hook_entry import HookEntry
from hookviz.recorder.session import Session
from hookviz.support.source_code import shorten_filename
from hookviz.trace import TraceData


class HookDates(Follower):
    """The time of a recording is the number of its steps, those of dropped passes included.

    torch numbers hooks in the order in which they are registered: that tells which are older than the recording.
    """

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.dropped_steps = 0
        """The number of steps that were dropped with their passes."""
        self._first_key = RemovableHandle.next_id
        self._end: int | None = None
        """The key of the first hook that was registered after the recording stopped."""
        self._registered: dict[Any, tuple[int, str]] = {}
        """Key → when a hook was registered, and by which line."""

    def now(self) -> tuple[int, str]:
        """Return the time, and the file and line of the user's code that is running."""
        frame = variable_names.caller_frame()
        where = f"{shorten_filename(frame.f_code.co_filename) or ''}:{frame.f_lineno}"
        return self.dropped_steps + len(self.trace.rows), where

    def note_registration(self, key: int) -> None:
        """Note that a hook is registered now."""
        self._registered[key] = self.now()

    def stop(self) -> None:
        """Remember which hooks came before: nothing is seen of later ones."""
        self._end = RemovableHandle.next_id

    def is_after_stop(self, key: Any) -> bool:
        """Return whether the hook with a key came when the recording had stopped, so that nothing of it was seen."""
        return self._end is not None and isinstance(key, int) and key >= self._end

    def find(self, key: Any) -> tuple[int, str] | tuple[None, None]:
        """Return when a hook was registered during the recording, and by which line."""
        return self._registered.get(key, (None, None))

    @property
    def has_hooks(self) -> bool:
        """Whether any hook was registered since Python started."""
        return bool(RemovableHandle.next_id)

    def registered_at(self, key: Any) -> str | None:
        """Return the file and line of the code that registered a hook during the recording; None if unknown."""
        return self.find(key)[1]

    def is_new(self, key: Any) -> bool:
        """Return whether the hook with a key was registered during the recording."""
        return isinstance(key, int) and key >= self._first_key

    def since(self, key: Any) -> int | None:
        """Return how many of the steps that are left came before a hook; None if it is older than the recording."""
        return self.count_left(self.find(key)[0] or 0) if self.is_new(key) else None

    def count_left(self, time: int | None) -> int | None:
        """Return how many of the steps that are left came before a time."""
        return None if time is None else max(time - self.dropped_steps, 0)

    def steps_dropped(self, count: int) -> None:
        """Note that steps are dropped, and forget when hooks were registered before the ones that are left."""
        self.dropped_steps += count
        self._registered = {key: date for key, date in self._registered.items() if date[0] >= self.dropped_steps}


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
        """Note the handle of a new hook, and notice when it is let go."""
        key = self._newest = handle.id

        def let_go(_handle: Any) -> None:
            # Most handles are let go as soon as they are made: torch makes two in each call with backward hooks.
            if self._held.pop(key, None) is not None and key != self._newest:
                self.session.guard(self._let_go, key)

        self._held[key] = weakref.ref(handle, let_go)

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
