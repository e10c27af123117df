"""How much a recording keeps: its last passes, so that a training loop of any length fits into memory."""

from collections.abc import Callable

from hookviz.recorder.notes import Notes, warn
from hookviz.recorder.pass_sampler import is_outermost
from hookviz.support.interrupts import Uninterrupted
from hookviz.support.messages import say
from hookviz.trace import TraceData
from hookviz.trace.dropped_passes import Renumbered, drop_passes
from hookviz.trace.notes import Note

MANY_STEPS = 20_000
"""A step takes about 1 KB. A recording that holds more steps, and goes on and on, says once how to keep it small."""
MIN_REPEATS = 20
"""Fewer passes and calls of models than this are large themselves, rather than many."""


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


class Retention:
    """Lets go of the oldest passes of a recording."""

    def __init__(
        self,
        trace: TraceData,
        keep: int | None,
        notes: Notes,
        *,
        is_idle: Callable[[], bool],
        on_renumber: Callable[[Renumbered], None],
    ) -> None:
        self.trace, self.keep, self.notes = trace, keep, notes
        self._is_idle, self._on_renumber = is_idle, on_renumber
        self._note: Note | None = None
        self._dropped = 0
        self._starts: list[int] = []
        """The passes that were begun outside of others, by their numbers in the trace: these are counted."""
        self._calls = 0
        """How many module calls have ended that no other call was around."""
        self._warned = False

    def pass_begins(self, number: int) -> None:
        """A pass begins; one that begins inside another goes where that goes."""
        if is_outermost():
            self._starts.append(number)

    def call_ended(self) -> None:
        """A module call is over that no other call is around."""
        self._calls += 1

    def trim_if_needed(self, *, last: bool = False) -> None:
        """Trim the trace if it holds too much: twice too much, until the ``last`` time, for each trimming costs.

        While a pass or a module call is running, in whatever thread, its numbers are in use: then the trace waits.
        """
        if len(self.trace.rows) >= MANY_STEPS and not (self._warned or last):
            self._warn_of_growth()
        if self.keep is None:
            return
        over = len(self._starts) - self.keep
        if over > (0 if last else self.keep) and self._is_idle():
            self._trim(over)

    def _warn_of_growth(self) -> None:
        """Say what to do about a recording that grows without end; ``keep`` bounds passes, but no calls without one."""
        bounded = self.keep is not None and self._starts
        if max(len(self._starts), self._calls) >= MIN_REPEATS and not bounded:
            self._warned = True
            growth = self._growth_notes()
            if not warn(" ".join(note.text for note in growth)):  # the trace then says it
                for note in growth:
                    self.notes.add(note)

    def _growth_notes(self) -> list[Note]:
        """What grows, and what helps: ``keep`` and ``every`` count passes, and change nothing where there is none."""
        steps = f"{len(self.trace.rows):,}"
        if self._starts:
            return [Note.of("trace.grows", steps=steps, passes=f"{len(self._starts):,}")]
        grows = [Note.of("trace.grows.calls", steps=steps, calls=f"{self._calls:,}")]
        return grows if self.keep is None else [*grows, Note.of("trace.grows.keep", keep=self.keep)]

    def _trim(self, over: int) -> None:
        with Uninterrupted():
            count = self._starts[over]
            moved = drop_passes(self.trace, count)
            self._starts = [start - count for start in self._starts[over:]]
            self._dropped += over
            self._on_renumber(moved)
        note = Note.of("note.dropped", dropped=self._dropped, kept=len(self._starts))
        self.trace.remarks = [known for known in self.trace.remarks if known != self._note] + [note]
        self._note = note
