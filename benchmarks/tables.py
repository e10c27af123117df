"""Format measurements, and write tables into the pages that show them."""

import importlib.metadata
import platform
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

END = "<!-- end -->"
"""The mark after every table that a program writes."""


def format_ratio(number: float) -> str:
    """Format a number with two decimal places."""
    return f"{number:.2f}"


def format_spread(measurements: Sequence[float], format_number: Callable[[float], str] = format_ratio) -> str:
    """Format the median, the smallest and the largest of some measurements.

    >>> format_spread([3, 1, 2])
    '**2.00** (1.00 to 3.00)'
    """
    median, low, high = (format_number(choose(measurements)) for choose in (statistics.median, min, max))
    return f"**{median}** ({low} to {high})"


def table_row(*cells: str) -> str:
    """Format a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def make_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table in Markdown.

    >>> print(make_table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    return "\n".join([table_row(*head), table_row(*["---"] * len(head)), *(table_row(*row) for row in rows)])


def read_section(page: str, start: str) -> str:
    """Return the text in ``page`` between the mark ``start`` and the next ``END``."""
    return page.partition(start)[2].partition(END)[0]


def replace_section(path: Path, start: str, text: str) -> None:
    """Write ``text`` into the page at ``path``, between the mark ``start`` and the next ``END``.

    Raises:
        ValueError: the page has no such mark, or no ``END`` after it.
    """
    page = path.read_text(encoding="utf-8")
    before, mark, rest = page.partition(start)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise ValueError(f"{path.name} has no {start.strip()} with an {END} behind it")
    path.write_text(f"{before}{start}{text}{END}{after}", encoding="utf-8")


def report(table: str, repetition: str, page: Path | None, start: str) -> None:
    """Print ``table`` with its setting; if ``page`` is given, write both into its section beginning with ``start``."""
    setting = f"torch {importlib.metadata.version('torch')}, Python {platform.python_version()}, {repetition}."
    section = f"{table}\n\n{setting}\n"
    print(section)
    if page is not None:
        replace_section(page, start, section)
