"""The place where ops of the user's code cut parameters off, if the recording followed ops."""

from hookviz.analysis.findings.parameters.places import Place
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.source_code import describe_place
from hookviz.trace import CutKind, CutRow, TraceData

_CUTS = {
    "graph": N_("{op} returns a tensor without a graph: no gradient goes back through it."),
    "numbers": N_("{op} returns plain numbers, which have no graph: no gradient goes back through them."),
    "frozen": N_("{op} switches requires_grad off: what is computed afterwards has no graph that leads back."),
    "function": N_(
        "{op} runs in the forward of an autograd.Function, and its result has no graph: no gradient "
        "goes back through it."
    ),
    "no_grad": N_("{op} runs in torch.no_grad(), where PyTorch records no graph: no gradient goes back through it."),
    "inference": N_(
        "{op} runs in torch.inference_mode(), where PyTorch records no graph: no gradient goes back through it."
    ),
    "checkpoint": N_(
        "{op} runs in a reentrant checkpoint none of whose inputs requires grad, so PyTorch records "
        "no graph: no gradient goes back through it."
    ),
}


MAX_NAMED = 3
"""How many cuts a sentence names; a parameter may be cut off on several paths."""
_WITHOUT_GRAPH: tuple[CutKind, ...] = ("no_grad", "inference", "checkpoint")
"""The kinds of cuts that are places of their own: nothing in them has a graph."""


def place_of_cuts(trace: TraceData, indexes: tuple[int, ...]) -> Place:
    """Return the place of the cuts with these indexes: one sentence for each line, the first step."""
    rows = [trace.cut_rows[index] for index in indexes]
    sentences = list(dict.fromkeys(_explain_cut(row) for row in rows))
    more = (
        [_("{count} more ops cut the graph.").format(count=len(sentences) - MAX_NAMED)]
        if len(sentences) > MAX_NAMED
        else []
    )
    steps = [row.step for row in rows if row.step is not None]
    lines = {(row.file, row.line) for row in rows}
    file, line = lines.pop() if len(lines) == 1 else (None, None)
    text = join_sentences([*sentences[:MAX_NAMED], *more])
    return Place(_find_key({row.kind for row in rows}), text, min(steps, default=None), file, line)


def _find_key(kinds: set[CutKind]) -> str:
    for kind in _WITHOUT_GRAPH:
        if kinds == {kind}:
            return kind
    return "op"


def _explain_cut(row: CutRow) -> str:
    code = row.text or row.op
    where = describe_place(row.file, row.line)
    op = _("{code} in {where},").format(code=code, where=where) if where else code
    return _(_CUTS[row.kind]).format(op=op)
