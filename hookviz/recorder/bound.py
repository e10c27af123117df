"""How much a recording keeps: its last passes, so that a training loop of any length fits into memory."""

from typing import TYPE_CHECKING

from hookviz.recorder.saved import ROOM
from hookviz.recorder.turns import outermost
from hookviz.trace.trim import let_go
from hookviz.whole import Uninterrupted
from hookviz.words import say

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording


def checked_keep(keep: int | None) -> int | None:
    """``keep`` as it was given, once it is seen to be a number of passes, or None for all.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is less than 1.
    """
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int)):
        raise TypeError(say("error.keep", keep=repr(keep)))
    if keep is not None and keep < 1:
        raise ValueError(say("error.keep", keep=keep))
    return keep


class Bound:
    """Lets go of the oldest passes of a recording."""

    def __init__(self, recording: "Recording", keep: int | None) -> None:
        self.recording, self.trace, self.keep = recording, recording.trace, keep
        self._note: str | None = None
        self._dropped = 0
        self._starts: list[int] = []
        """The passes that were begun outside of others, by their numbers in the trace: these are counted."""

    def begins(self, number: int) -> None:
        """A pass begins; one that begins inside another goes where that goes."""
        if outermost():
            self._starts.append(number)

    def check(self, *, last: bool = False) -> None:
        """Trim the trace if it holds too much: twice too much, until the ``last`` time, for each trimming costs.

        While a pass or a module call is running, in whatever thread, its numbers are in use: then the trace waits.
        """
        if self.keep is None:
            return
        over = len(self._starts) - self.keep
        if over > (0 if last else self.keep) and not self.recording.running and not self.recording.calls.busy():
            self._trim(over)

    def _trim(self, over: int) -> None:
        with Uninterrupted():
            count = self._starts[over]
            moved = let_go(self.trace, count)
            self._starts = [start - count for start in self._starts[over:]]
            self._dropped += over
            self.recording.saved.room = ROOM
            self.recording.renumber(moved.nodes)
            self.recording.calls.renumber(moved.calls, moved.hooks)
        note = say("note.dropped", dropped=self._dropped, kept=len(self._starts))
        self.trace.notes = [text for text in self.trace.notes if text != self._note] + [note]
        self._note = note
