"""Limits the size of a trace: drops old passes, so that a training loop of any length fits into memory."""

from collections.abc import Callable

from hookviz.recorder.follower import Follower
from hookviz.recorder.notes import warn_user
from hookviz.recorder.session import Session, is_outermost
from hookviz.support.interpreter import Uninterrupted
from hookviz.trace.cells import Numbers
from hookviz.trace.dropped_passes import drop_passes
from hookviz.trace.notes import Note

MANY_STEPS = 20_000
"""A step takes about 1 KB. A recording with more steps than this, which keeps growing, warns once."""
MIN_REPEATS = 20
"""With fewer passes or model calls than this, the steps are large rather than many."""


class Retention(Follower):
    """Drops the oldest passes of a recording, for ``record(keep=...)``."""

    def __init__(
        self,
        session: Session,
        keep: int | None,
        is_idle: Callable[[], bool],
        on_drop: Callable[[int], None],
        on_renumber: Callable[[Numbers], None],
    ) -> None:
        self.trace, self.keep, self.notes = session.trace, keep, session.notes
        self._is_idle, self._on_drop, self._on_renumber = is_idle, on_drop, on_renumber
        self._note: Note | None = None
        self._dropped_count = 0
        self._pass_numbers: list[int] = []
        """The numbers of the outermost passes in the trace; only these count."""
        self._call_count = 0
        """How many outermost module calls have ended."""
        self._warned = False

    def pass_opened(self, pass_id: int) -> None:
        """Count a pass. A pass inside another is dropped with that one."""
        if is_outermost():
            self._pass_numbers.append(pass_id)

    def call_ended(self, depth: int) -> None:
        """Count an outermost module call that has ended."""
        if not depth:
            self._call_count += 1

    def rows_may_move(self, is_last: bool) -> None:
        """Trim the trace if it holds twice as many passes as ``keep``, or the last time any more than ``keep``.

        Each trimming costs time, so it waits for twice as many. It also waits while a pass or a module call is running
        in any thread, because its numbers are in use.
        """
        if len(self.trace.rows) >= MANY_STEPS and not (self._warned or is_last):
            self._warn_of_growth()
        if self.keep is None:
            return
        excess = len(self._pass_numbers) - self.keep
        if excess > (0 if is_last else self.keep) and self._is_idle():
            self._trim(excess)

    def _warn_of_growth(self) -> None:
        """Warn once of a recording that keeps growing. ``keep`` bounds passes, but not calls without passes."""
        is_bounded = self.keep is not None and self._pass_numbers
        if max(len(self._pass_numbers), self._call_count) >= MIN_REPEATS and not is_bounded:
            self._warned = True
            note = Note.of("trace.grows", steps=f"{len(self.trace.rows):,}")
            if not warn_user(note.text):  # if the warning fails, the notes hold it
                self.notes.add(note)

    def _trim(self, excess: int) -> None:
        with Uninterrupted():
            count = self._pass_numbers[excess]
            self._on_drop(count)
            renumbered = drop_passes(self.trace, count)
            self._pass_numbers = [number - count for number in self._pass_numbers[excess:]]
            self._dropped_count += excess
            self._on_renumber(renumbered)
        note = Note.of("dropped", dropped=self._dropped_count, kept=len(self._pass_numbers))
        self.trace.remarks = [remark for remark in self.trace.remarks if remark != self._note] + [note]
        self._note = note
