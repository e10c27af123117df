"""The extension of IPython: ``%%hookviz`` records a cell and shows the player; ``%hookviz off`` ignores these lines.

The line becomes a comment before IPython runs the cell, and IPython's events begin and end the recording. So the cell
runs as it would without the line: no frame of hookviz stands between IPython and the cell.
"""

import argparse
import keyword
from functools import partial
from typing import Any, NamedTuple

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from hookviz.api.trace import Trace
from hookviz.recorder.open_recordings import give_way
from hookviz.recorder.options import RecordOptions
from hookviz.recorder.record_entry import RecordBlock
from hookviz.recorder.recording import Recording
from hookviz.support.messages import _
from hookviz.support.program_variables import call_among

_MAGIC = "hookviz"
_LINE = f"%%{_MAGIC}"


class _RecordedCell(NamedTuple):
    """A cell that runs and is recorded."""

    text: str
    name: str
    """The variable that gets its trace."""
    block: RecordBlock
    recording: Recording
    trace: Trace


class CellRecorder:
    """Records the cells of one shell that begin with ``%%hookviz``."""

    has_side_effects = True
    """IPython then does not call it to find out whether a cell is complete: a blank line ends it, as of each magic."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._is_on = True
        self._running: str | None = None
        """The text of the cell that runs."""
        self._recorded: _RecordedCell | None = None

    def connect(self) -> None:
        """Begin to listen to the shell."""
        self._shell.input_transformers_cleanup.insert(0, self)
        self._shell.events.register("pre_run_cell", self._cell_begins)
        self._shell.events.register("post_run_cell", self._cell_ended)
        self._shell.register_magic_function(self.run_magic, "line_cell", _MAGIC)

    def disconnect(self) -> None:
        """Undo ``connect``."""
        self._shell.input_transformers_cleanup.remove(self)
        self._shell.events.unregister("pre_run_cell", self._cell_begins)
        self._shell.events.unregister("post_run_cell", self._cell_ended)
        for kind in ("line", "cell"):
            self._shell.magics_manager.magics[kind].pop(_MAGIC, None)

    def __call__(self, lines: list[str]) -> list[str]:
        """Make a comment of the line ``%%hookviz``; it stays, as a magic that raises, if it cannot be followed."""
        at = _find_line(lines)
        if at is None or (self._is_on and (self._is_inside_cell(lines) or not _is_valid(lines[at]))):
            return lines
        rest = lines[at + 1 :]
        if next((line for line in rest if line.strip()), "").lstrip().startswith("%%"):
            return rest  # another magic, such as %%time, has to stand on the first line
        return [*lines[:at], lines[at].replace(_LINE, f"# {_LINE}", 1), *rest]

    def _is_inside_cell(self, lines: list[str]) -> bool:
        """Whether ``lines`` are a part of the cell that runs: what another magic was given."""
        return self._running is not None and "".join(lines).strip() != self._running.strip()

    def run_magic(self, line: str, cell: str | None = None) -> None:
        """Record a cell and show the player: %%hookviz [name] [--every N] [--keep N] [--until nan] [--cuts]

        The trace is bound to the name, trace without one. The options are those of hookviz.record.
        %hookviz off: cells run as if they had no such line, until %hookviz on.
        """
        if cell is not None:
            read_options(line)
            raise UsageError(_("%%hookviz stands on the first line of a cell, before any other %% magic."))
        if line.strip() not in ("on", "off"):
            raise UsageError(_("Write %hookviz off or %hookviz on, or begin a cell with %%hookviz to record it."))
        self._is_on = line.strip() == "on"

    def _cell_begins(self, info: Any) -> None:
        self._running = info.raw_cell
        lines = info.raw_cell.splitlines(keepends=True)
        at = _find_line(lines)
        if self._recorded is not None or at is None or not self._is_on or not _is_valid(lines[at]):
            return
        name, options = read_options(_arguments(lines[at]))
        block = RecordBlock(options)
        trace = call_among(self._shell.user_ns, block.__enter__)
        self._recorded = _RecordedCell(info.raw_cell, name, block, give_way(), trace)

    def _cell_ended(self, result: Any = None) -> None:
        self._running = None
        cell = self._recorded
        if cell is None or (result is not None and result.info.raw_cell != cell.text):
            return  # a cell that the recorded one has run
        self._recorded = None
        error = None if result is None else result.error_in_exec
        call_among(self._shell.user_ns, partial(cell.block.end, error))
        if result is not None and result.error_before_exec is not None:
            return  # it did not run: the syntax is wrong
        if cell.recording.has_given_way:
            print(
                _("The cell records itself with hookviz, and one recording is open at a time: %%hookviz ended its own.")
            )
            return
        self._shell.user_ns[cell.name] = cell.trace
        display(cell.trace)  # type: ignore[no-untyped-call]


def read_options(line: str) -> tuple[str, RecordOptions]:
    """Read what stands behind ``%%hookviz``: the name of the trace, and the options of the recording.

    Raises:
        UsageError: an option is unknown or has a wrong value, or the name is not that of a variable.

    >>> read_options("first --keep 2")
    ('first', RecordOptions(..., keep=2, ...))
    """
    parser = MagicArgumentParser(prog=_LINE)  # type: ignore[no-untyped-call]
    parser.add_argument("name", nargs="?", default="trace")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--keep", type=int)
    parser.add_argument("--until", choices=("nan",))
    parser.add_argument("--cuts", action="store_true")
    try:
        found: argparse.Namespace = parser.parse_argstring(line)  # type: ignore[no-untyped-call]
        options = RecordOptions(every=found.every, keep=found.keep, until=found.until, cuts=found.cuts)
        options.check()
    except ValueError as error:  # a quote that is not closed, or a number that is too small
        raise UsageError(f"{_LINE}: {error}") from None
    if not found.name.isidentifier() or keyword.iskeyword(found.name):
        raise UsageError(
            _("%%hookviz is followed by the name of a variable for the trace; {name} cannot be one.").format(
                name=found.name
            )
        )
    return found.name, options


def _find_line(lines: list[str]) -> int | None:
    """Return the place of the line ``%%hookviz``, if a cell begins with it."""
    at = next((number for number, line in enumerate(lines) if line.strip()), None)
    return at if at is not None and lines[at].split()[0] == _LINE else None


def _arguments(line: str) -> str:
    return line.strip().removeprefix(_LINE)


def _is_valid(line: str) -> bool:
    try:
        read_options(_arguments(line))
    except UsageError:
        return False
    return True


_RECORDERS: dict[int, CellRecorder] = {}
"""``id`` of a shell → its recorder, while the extension is loaded."""


def load_extension(shell: Any) -> None:
    """Load the extension into a shell, as ``%load_ext hookviz`` does."""
    recorder = _RECORDERS[id(shell)] = CellRecorder(shell)
    recorder.connect()


def unload_extension(shell: Any) -> None:
    """Take it out again, as ``%unload_ext hookviz`` does."""
    _RECORDERS.pop(id(shell)).disconnect()
