"""Decides after each pass whether the recording stops: on NaN or Inf, or when a function of the user's says so.

Then, or when an exception leaves the block, the file of ``record(on_trouble=...)`` is written.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hookviz.api.trace import Trace
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.tensor_statistics import hidden_from_tools
from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.recorder.follower import Follower
from hookviz.recorder.nonfinite_values import any_nonfinite
from hookviz.recorder.notes import Notes, warn_user
from hookviz.recorder.options import RecordOptions
from hookviz.recorder.session import Session
from hookviz.support.messages import _
from hookviz.trace import Note, StepRow, TraceData
from hookviz.trace.sentences import format_pass_number
from hookviz.trace.value_rows import get_stored_rows


class StopCondition(Follower):
    """The condition of ``record(until=...)``."""

    def __init__(self, session: Session, options: RecordOptions) -> None:
        self.session, self.trace = session, session.trace
        self._until = options.until
        self._found: Note | None = None
        """Where the passes of ``pass_ended`` have NaN or Inf."""
        self._number = ""
        """The number of the last pass."""
        self._is_met = False
        self._is_asking = False

    def pass_ended(self, snapshot: GraphSnapshot) -> None:
        """Look at a pass that has ended, before older passes are dropped and its rows move."""
        if self._until is None or self._is_met:
            return
        self._number = format_pass_number(self.trace, snapshot.pass_id)
        if self._until == "nan" and self._found is None:
            self._found = describe_nonfinite(self.trace, snapshot.pass_id, snapshot.first_row)

    def find_reason(self) -> Note | None:
        """Return why the recording stops after the outermost pass that has just ended; None if it goes on."""
        if self._until is None or self._is_met or self._is_asking:
            return None
        reason = self._found if self._until == "nan" else self._ask()
        self._is_met = reason is not None
        return reason

    def _ask(self) -> Note | None:
        """Call the user's function. It may run passes of its own, which do not call it again."""
        assert callable(self._until)
        self._is_asking = True
        try:
            with self.session.lock:  # other threads may write into the trace
                is_met = bool(self._until(Trace(self.trace)))
        except Exception as error:
            self.session.notes.warn(Note.of("until.error", error=f"{type(error).__name__}: {error}"))
            return None
        finally:
            self._is_asking = False
        return Note.of("until.function", number=self._number) if is_met else None


def describe_nonfinite(trace: TraceData, pass_id: int, first_row: int) -> Note | None:
    """Return where a pass first shows NaN or Inf, as a note; None if it does not.

    It reads values of the trace: the outputs of modules, the tensors where the pass begins, and the gradients that the
    pass left in leaves or returned. The rows of the pass lie from ``first_row`` on.
    """
    # Compact rows are arrivals and computations, which do not matter here; to expand them would cost time.
    stored = get_stored_rows(trace.rows, first_row)
    rows = [row for row in stored if type(row) is StepRow and row.pass_id == pass_id]
    for row in rows:
        if row.kind == "forward" and any_nonfinite(trace, row.after):
            return _make_note(trace, pass_id, trace.plain_call(row.own_call))
    for node, output, value in _iter_root_values(trace, pass_id):
        if any_nonfinite(trace, value):
            return _make_note(trace, pass_id, trace.plain_name(node, output))
    for row in rows:
        if row.kind in ("accumulate", "returned") and any_nonfinite(trace, row.after):
            return _make_note(trace, pass_id, f"{trace.plain_name(row.own_node, row.own_output)}.grad")
    return None


def _make_note(trace: TraceData, pass_id: int, on: str) -> Note:
    return Note.of("until.nan", number=format_pass_number(trace, pass_id), on=on)


def _iter_root_values(trace: TraceData, pass_id: int) -> Iterator[tuple[int, int, int | None]]:
    """Yield (node, output, value) of each known tensor at which a pass begins."""
    roots = set(trace.roots[pass_id])
    for row in reversed(trace.tensors):  # the rows of the last passes are at the end
        if row.pass_id < pass_id:
            return
        if row.pass_id == pass_id and (row.node, row.output) in roots:
            yield row.node, row.output, row.data


class TroubleFile:
    """Writes a trace to a file once. It never raises, except if Ctrl-C interrupts it."""

    def __init__(self, trace: TraceData, notes: Notes, path: Path, title: str | None = None) -> None:
        self.trace, self.notes, self.path, self.title = Trace(trace), notes, path, title
        self._is_done = False

    def write(self, reason: str) -> None:
        """Write the file because of ``reason``, a sentence, and say so in one line on stderr."""
        if self._is_done:
            return
        self._is_done = True
        try:
            self._save()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            note = Note.of("trouble.file.failed", path=self.path.name, error=text)
            if not warn_user(note.text):
                self.notes.add(note)
            return
        with suppress(Exception):  # stderr may be missing or closed
            print(_("hookviz: {reason} Wrote {path}.").format(reason=reason, path=str(self.path)), file=sys.stderr)

    def write_exception(self, error: Exception) -> None:
        """Write the file because ``error`` left the block."""
        if not self._is_done:
            with suppress(Exception):  # the text of an exception is the user's code
                text = f"{type(error).__name__}: {error}".partition("\n")[0]
                self.write(_("{error} ended the recording.").format(error=text))

    def _save(self) -> None:
        """Write the page or the saved trace; torch computes formulas for it, which the user's tools must not see."""
        with DisableTorchFunction(), hidden_from_tools():
            if self.path.suffix.lower() == ".html":
                self.trace.to_html(self.path, self.title)
            else:
                self.trace.save(self.path)
