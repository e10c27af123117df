"""Write text to consoles: in colours where rich is installed, and on consoles that lack characters such as →."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from hookviz.analysis.text_timeline import Role, TextLine

if TYPE_CHECKING:
    from rich.console import Console

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


def _open_console() -> "Console | None":
    """Return a console of rich; None without rich, or if standard output is not a terminal for all characters."""
    if not sys.stdout.isatty() or (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(highlight=False)
