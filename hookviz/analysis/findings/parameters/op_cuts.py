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
    "no_grad": N_("{op} runs while PyTorch records no graph, as in torch.no_grad(): no gradient goes back through it."),
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
    """Return the place of the cuts with these indexes: one sentence for each line, the first step.

    What ran without a graph counts only if nothing else cuts: a rollout, a target or an evaluation runs so on purpose.
    """
    all_rows = [trace.cut_rows[index] for index in indexes]
    rows = [row for row in all_rows if not _is_without_graph(row)] or all_rows
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
    kinds = {row.kind for row in rows if _is_without_graph(row)}
    return Place(kinds.pop() if len(kinds) == 1 else "op", text, min(steps, default=None), file, line)


def _is_without_graph(row: CutRow) -> bool:
    """Return whether an op ran where nothing gets a graph; the ``sample`` of a distribution sees to that itself."""
    return row.kind in _WITHOUT_GRAPH and ".sample(" not in (row.text or "")


def _explain_cut(row: CutRow) -> str:
    code = row.text or row.op
    where = describe_place(row.file, row.line)
    op = _("{code} in {where},").format(code=code, where=where) if where else code
    return _(_CUTS[row.kind]).format(op=op)
