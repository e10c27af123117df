"""Texts in columns of a terminal, where a Chinese character is two columns wide and may end a line."""

import re
import shutil
import textwrap
import unicodedata
from collections.abc import Callable

DEFAULT_WIDTH = 100
"""The width, in columns, where there is no terminal: in files, pipes and notebooks."""
_WIDE = re.compile(r"[\u1100-\uffff\U0001f000-\U0003ffff]")
"""Characters that may be wide; a text without any needs no closer look."""
_PIECE = re.compile(r"\s+|[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60]|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60]+")
"""What stays on one line: a word, or a Chinese character."""
_NEVER_FIRST = frozenset("，。；：？！、）》”’…")
"""Signs that do not begin a line."""


def find_terminal_width() -> int:
    """Return the width of the terminal in columns; the variable ``COLUMNS`` of the environment overrides it."""
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns


def measure_width(text: str) -> int:
    """Return how many columns ``text`` takes in a terminal.

    >>> measure_width("hook"), measure_width("钩子")
    (4, 4)
    """
    if text.isascii() or not _WIDE.search(text):
        return len(text)
    return len(text) + sum(unicodedata.east_asian_width(char) in "WF" for char in text)


def pad(text: str, width: int) -> str:
    """Return ``text`` with spaces behind it, ``width`` columns wide.

    >>> pad("钩子", 6) + "|", pad("hook", 6) + "|"
    ('钩子  |', 'hook  |')
    """
    return text + " " * (width - measure_width(text))


def truncate(text: str, room: int) -> str:
    """Shorten ``text`` to at most ``room`` columns; an ellipsis marks the cut.

    >>> truncate("a_very_long_name", 8), truncate("short", 8), truncate("张量钩子", 6)
    ('a_very_…', 'short', '张量…')
    """
    if measure_width(text) <= room:
        return text
    kept = text[: room - 1]
    while measure_width(kept) > room - 1:
        kept = kept[:-1]
    return f"{kept}…"


def wrap(
    text: str, width: int, measure: Callable[[str], int] = measure_width, *, break_words: bool = True
) -> list[str]:
    """Break ``text`` into lines of at most ``width``: between words, and anywhere in Chinese but before a full stop.

    Args:
        text: the text; each run of spaces and line ends becomes one space.
        width: the width of a line.
        measure: how wide a text is; in columns by default.
        break_words: whether a word that is wider than a line is broken, or sticks out.

    >>> wrap("one two three", 8), wrap("反向传播到达 c。", 8)
    (['one two', 'three'], ['反向传播', '到达 c。'])
    >>> wrap("abcdef g", 4), wrap("abcdef g", 4, break_words=False)
    (['abcd', 'ef g'], ['abcdef', 'g'])
    """
    if measure is measure_width and not _WIDE.search(text):
        return textwrap.wrap(text, width, break_long_words=break_words)
    lines = [""]
    for piece in _PIECE.findall(" ".join(text.split())):
        if lines[-1] and piece not in _NEVER_FIRST and measure((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        rest = piece if lines[-1] else piece.lstrip()
        while break_words and not lines[-1] and len(rest) > 1 and measure(rest.rstrip()) > width:
            cut = next(count for count in range(len(rest) - 1, 0, -1) if count == 1 or measure(rest[:count]) <= width)
            lines[-1:] = [rest[:cut], ""]
            rest = rest[cut:]
        lines[-1] += rest
    return [line.rstrip() for line in lines if line.strip()]
