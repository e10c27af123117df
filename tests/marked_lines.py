"""Lines of a test file: that with a program's text, or that which is marked as its fault."""

from pathlib import Path


def find_line(file: str, text: str) -> int:
    """Return the first line of a file that begins with a text."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))


def find_fault(file: str, start: str) -> int:
    """Return the first line of a file that is marked as a fault, from the line on that begins with ``start``."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines, 1) if line.startswith(start))
    return next(number for number, line in enumerate(lines, 1) if number >= first and line.endswith("# fault"))
