"""The file that ``record(on_trouble=...)`` writes when the recording stops or an exception leaves its block."""

import sys
from contextlib import suppress
from pathlib import Path

from hookviz.api.trace import Trace
from hookviz.autograd.tensor_statistics import hidden_from_tools
from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.recorder.notes import Notes, warn_user
from hookviz.support.messages import _
from hookviz.trace import Note, TraceData


class TroubleFile:
    """Writes a trace to a file once. It never raises, except if Ctrl-C interrupts it."""

    def __init__(self, trace: TraceData, notes: Notes, path: Path) -> None:
        self.trace, self.notes, self.path = Trace(trace), notes, path
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
                self.write(_("The with block raised {error}.").format(error=text))

    def _save(self) -> None:
        """Write the page or the saved trace."""
        write = self.trace.to_html if self.path.suffix.lower() == ".html" else self.trace.save
        with (
            DisableTorchFunction(),
            hidden_from_tools(),
        ):  # torch computes formulas, which the user's tools must not see
            write(self.path)
