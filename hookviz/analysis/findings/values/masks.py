"""Explain NaN that an attention returns because a mask leaves a query no key."""

from hookviz.analysis.findings.values.hidden_rows import format_rows, list_hidden_rows
from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.support.messages import _

_ATTENTION = "MultiheadAttention"
_MASKS = ("key_padding_mask", "attn_mask")


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
        hidden = list_hidden_rows(statistics.value(value).tolist()) if name in _MASKS and value is not None else []
        if hidden:
            text = _("its {mask} hides every key in row {rows}, counted from 0: a softmax over -Inf alone is NaN.")
            return text.format(mask=name, rows=format_rows(hidden))
    return ""
