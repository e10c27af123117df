"""Explain NaN that an attention returns because a mask leaves a query no key."""

import math
from typing import Any

from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.support.messages import _, join_list
from hookviz.trace.values import flatten_numbers

_ATTENTION = "MultiheadAttention"
_MASKS = ("key_padding_mask", "attn_mask")
MAX_NAMED = 4
"""A sentence names at most this many rows."""


def explain_mask(statistics: PassStatistics, index: int) -> str:
    """Explain that a mask of an attention hides all keys in some of its rows; empty if the numbers show none.

    ``index`` is the step at which the forward returned. True hides a key, and so does -Inf in a mask of numbers.
    """
    rows, call = statistics.trace.rows, statistics.trace.rows[index].own_call
    if statistics.trace.modules[statistics.trace.calls[call].module].kind != _ATTENTION:
        return ""
    begin = next((step for step in range(index, -1, -1) if rows[step].kind == "call" and rows[step].call == call), None)
    given = None if begin is None else rows[begin].after
    if begin is None or not isinstance(given, tuple):
        return ""
    for name, value in zip(rows[begin].labels[1], given, strict=False):
        hidden = _list_hidden(statistics.value(value).tolist()) if name in _MASKS and value is not None else []
        if hidden:
            more = [_("{count} more").format(count=len(hidden) - MAX_NAMED)] if len(hidden) > MAX_NAMED else []
            where = join_list([*map(str, hidden[:MAX_NAMED]), *more])
            text = _("its {mask} hides every key in row {rows}, counted from 0: a softmax over -Inf alone is NaN.")
            return text.format(mask=name, rows=where)
    return ""


def _list_hidden(numbers: Any) -> list[int]:
    """List the rows, along the first dimension, that hold one with nothing but True or -Inf."""
    return [index for index, row in enumerate(numbers) if _has_hidden(row)] if isinstance(numbers, list) else []


def _has_hidden(row: Any) -> bool:
    if isinstance(row, list) and row and isinstance(row[0], list):
        return any(map(_has_hidden, row))
    return isinstance(row, list) and bool(row) and all(one is True or one == -math.inf for one in flatten_numbers(row))
