"""The rows of a mask that hide everything: True hides a number, and so does -Inf in a mask of numbers."""

import math
from collections.abc import Sequence
from typing import Any

from hookviz.support.messages import join_first
from hookviz.trace.values import flatten_numbers

MAX_NAMED = 4
"""A sentence names at most this many rows."""


def list_hidden_rows(numbers: Any) -> list[int]:
    """List the rows, along the first dimension, that hold one with nothing but True or -Inf.

    >>> list_hidden_rows([[True, False], [True, True]])
    [1]
    """
    return [index for index, row in enumerate(numbers) if _has_hidden(row)] if isinstance(numbers, list) else []


def _has_hidden(row: Any) -> bool:
    if isinstance(row, list) and row and isinstance(row[0], list):
        return any(map(_has_hidden, row))
    return isinstance(row, list) and bool(row) and all(one is True or one == -math.inf for one in flatten_numbers(row))


def format_rows(rows: Sequence[int]) -> str:
    """Name some rows, the first of many."""
    return join_first(list(map(str, rows)), MAX_NAMED)
