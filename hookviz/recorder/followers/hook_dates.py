"""Notes when hooks are registered and removed, and by which line of the user's code."""

from typing import Any

from torch.utils.hooks import RemovableHandle

from hookviz.autograd import variable_names
from hookviz.recorder.follower import Follower
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
