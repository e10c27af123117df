"""What all commands share: how they are added to the parser, their exit statuses, and how they write to a console.

They write in colours where rich is installed, and also on consoles that lack characters such as →.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

from hookviz.analysis.text_timeline import Role, TextLine

if TYPE_CHECKING:
    from rich.console import Console

AddParser = Callable[..., argparse.ArgumentParser]
"""The method of argparse that adds a command."""
Command = Callable[[argparse.Namespace], int]
"""A function that runs a command and returns its exit status."""


class ExitStatus(IntEnum):
    """What a command returns to the shell."""

    GOOD = 0
    FOUND = 1
    """``findings`` or ``doctor`` lists an error or a warning, ``check`` or ``diff`` a difference."""
    FAILED = 2
    """The arguments are wrong, or a file cannot be read or written; also the status of ``argparse``."""


_STYLES: dict[Role, str] = {
    "title": "bold",
    "head": "dim",
    "pass": "bold",
    "hook": "yellow",
    "fault": "red",
    "hint": "dim",
}
"""The styles of rich for lines that are coloured."""


def write_line(text: str, stream: TextIO | None = None) -> None:
    """Write a line to ``stream`` (standard output if None); what its encoding lacks becomes ``?``."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), file=stream)


def write_timeline(lines: Sequence[TextLine]) -> None:
    """Write a timeline to standard output; to a terminal in colours, if rich is installed."""
    console = _open_console()
    if console is None:
        write_line("\n".join(line.text for line in lines))
        return
    from rich.text import Text

    for line in lines:
        console.print(Text(line.text, style=_STYLES.get(line.role, "")), soft_wrap=True)


def is_utf8(stream: TextIO) -> bool:
    """Return whether a stream can write every character."""
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def _open_console() -> "Console | None":
    """Return a console of rich; None without rich, or if standard output is not a terminal for all characters."""
    if not sys.stdout.isatty() or not is_utf8(sys.stdout):
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(highlight=False)


def choose_status(severities: Iterable[str]) -> ExitStatus:
    """Return the exit status for findings of these severities.

    A remark alone is no reason to fail: it is worth knowing, and perhaps intended.
    """
    return ExitStatus.FOUND if any(severity != "remark" for severity in severities) else ExitStatus.GOOD
