"""Measurements in words, and tables into the pages that show them."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

END = "<!-- end -->"
"""Stands behind every table that is written by a program."""


def ratio(number: float) -> str:
    """Two places after the point."""
    return f"{number:.2f}"


def spread(found: Sequence[float], words: Callable[[float], str] = ratio) -> str:
    """The median, and the smallest and the largest.

    >>> spread([3, 1, 2])
    '**2.00** (1.00 to 3.00)'
    """
    return f"**{words(statistics.median(found))}** ({words(min(found))} to {words(max(found))})"


def line(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table.

    >>> print(grid(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    return "\n".join([line(*head), line(*["---"] * len(head)), *(line(*row) for row in rows)])


def between(page: str, start: str) -> str:
    """What stands in ``page`` between the mark ``start`` and the next end."""
    return page.partition(start)[2].partition(END)[0]


def put(path: Path, start: str, text: str) -> None:
    """Write ``text`` into the page at ``path``, between the mark ``start`` and the next end.

    Raises:
        ValueError: the page has no such mark, or no end behind it.
    """
    page = path.read_text(encoding="utf-8")
    before, mark, rest = page.partition(start)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise ValueError(f"{path.name} has no {start.strip()} with an {END} behind it")
    path.write_text(f"{before}{start}{text}{END}{after}", encoding="utf-8")
