"""The place where ops of the user's code cut parameters off, if the recording followed ops."""

from hookviz.analysis.missing_gradients.places import Place
from hookviz.support.messages import join, say
from hookviz.trace import CutKind, CutRow, TraceData

MAX_NAMED = 3
"""How many cuts a sentence names; a parameter may be cut off on several paths."""
_WITHOUT_GRAPH: tuple[CutKind, ...] = ("no_grad", "inference", "checkpoint")
"""The kinds of cuts that are places of their own: nothing in them has a graph."""


def place_of_cuts(trace: TraceData, indexes: tuple[int, ...]) -> Place:
    """Return the place of the cuts with these indexes: one sentence for each line, the first step."""
    rows = [trace.cut_rows[index] for index in indexes]
    sentences = list(dict.fromkeys(_explain_cut(row) for row in rows))
    more = [say("missing.op.more", count=len(sentences) - MAX_NAMED)] if len(sentences) > MAX_NAMED else []
    steps = [row.step for row in rows if row.step is not None]
    lines = {(row.file, row.line) for row in rows}
    file, line = lines.pop() if len(lines) == 1 else (None, None)
    text = join("join.sentences", [*sentences[:MAX_NAMED], *more])
    return Place(_find_key({row.kind for row in rows}), text, min(steps, default=None), file, line)


def _find_key(kinds: set[CutKind]) -> str:
    for kind in _WITHOUT_GRAPH:
        if kinds == {kind}:
            return kind
    return "op"


def _explain_cut(row: CutRow) -> str:
    code = row.text or row.op
    where = None if row.file is None or row.line is None else say("hook.where", file=row.file, line=row.line)
    op = code if where is None else say("missing.op.at", code=code, where=where)
    return say(f"missing.op.{row.kind}", op=op)
