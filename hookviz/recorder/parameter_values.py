"""Large parameters, whose numbers a recording leaves unread unless a pass shows NaN or Inf."""

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.graph_tensors import has_no_memory
from hookviz.autograd.tensor_statistics import measure_or_defer
from hookviz.trace import StepRow, TraceData
from hookviz.trace.value_rows import as_stored
from hookviz.trace.values import size_of


def read_where_sick(trace: TraceData, snapshot: GraphSnapshot) -> None:
    """Measure the leaves of a pass that were too large to be read, if the pass that is over shows NaN or Inf.

    It shows in what a model returned, or in the gradient of such a leaf. A leaf that was written to since the pass
    began is not what it was, and stays unread.
    """
    if not snapshot.tensors.unread_leaves or not _sick(trace, snapshot):
        return
    places = _leaves_of(trace, snapshot)
    for node, (reference, version) in snapshot.tensors.unread_leaves.items():
        leaf = reference()
        if leaf is not None and leaf._version == version and not has_no_memory(leaf):
            trace.values.append(measure_or_defer(leaf, wait=True))
            trace.tensors[places[node]] = trace.tensors[places[node]]._replace(data=len(trace.values) - 1)


def _leaves_of(trace: TraceData, snapshot: GraphSnapshot) -> dict[int, int]:
    """Node → the place among ``trace.tensors`` of each leaf of a pass.

    Rows of the pass around this one can stand between them: a hook may call ``retain_grad()`` on one of its tensors.
    """
    places = range(snapshot.tensors.first_row, len(trace.tensors))
    rows = ((place, trace.tensors[place]) for place in places)
    return {row.node: place for place, row in rows if row.pass_id == snapshot.pass_id and row.leaf}


def _sick(trace: TraceData, snapshot: GraphSnapshot) -> bool:
    """Whether a model returned NaN or Inf before this pass, or an unread leaf got such a gradient in it."""
    for row in reversed(as_stored(trace.rows, snapshot.first_row)):
        if type(row) is not StepRow or row.pass_id != snapshot.pass_id:
            continue
        returned = row.kind == "forward" and row.call >= 0 and trace.calls[row.call].parent is None
        written = row.kind in ("accumulate", "returned") and row.node in snapshot.tensors.unread_leaves
        if (returned or written) and any(_bad(trace, index) for index in _several(row.after)):
            return True
    return False


def _several(kept: object) -> tuple[object, ...]:
    return kept if isinstance(kept, tuple) else (kept,)


def _bad(trace: TraceData, index: object) -> bool:
    if not isinstance(index, int):
        return False
    _, nan, inf = size_of(trace.values[index])
    return nan > 0 or inf > 0
