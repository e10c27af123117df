"""Reads the numbers of large parameters, which a recording leaves unread unless a pass has NaN or Inf."""

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.graph_tensors import has_no_memory
from hookviz.autograd.tensor_statistics import measure_or_defer
from hookviz.trace import StepRow, TraceData
from hookviz.trace.value_rows import get_stored_rows
from hookviz.trace.values import get_norm_nan_inf


def measure_unread_leaves(trace: TraceData, snapshot: GraphSnapshot) -> None:
    """Measure the unread leaves of a pass that has ended, if it has NaN or Inf.

    The NaN or Inf may be in the output of a model, or in the gradient of such a leaf. A leaf that was written to since
    the pass began stays unread.
    """
    if not snapshot.tensors.unread_leaves or not _shows_nonfinite(trace, snapshot):
        return
    leaf_rows = _leaf_rows(trace, snapshot)
    for node, (reference, version) in snapshot.tensors.unread_leaves.items():
        leaf = reference()
        if leaf is not None and leaf._version == version and not has_no_memory(leaf):
            trace.values.append(measure_or_defer(leaf, wait=True))
            trace.tensors[leaf_rows[node]] = trace.tensors[leaf_rows[node]]._replace(data=len(trace.values) - 1)


def _leaf_rows(trace: TraceData, snapshot: GraphSnapshot) -> dict[int, int]:
    """Map the node of each leaf of a pass to its index in ``trace.tensors``.

    Rows of the enclosing pass may stand between them, since a hook may call ``retain_grad()`` on one of its tensors.
    """
    indices = range(snapshot.tensors.first_row, len(trace.tensors))
    rows = ((index, trace.tensors[index]) for index in indices)
    return {row.node: index for index, row in rows if row.pass_id == snapshot.pass_id and row.leaf}


def _shows_nonfinite(trace: TraceData, snapshot: GraphSnapshot) -> bool:
    """Return whether a model returned NaN or Inf before this pass, or an unread leaf got such a gradient in it."""
    for row in reversed(get_stored_rows(trace.rows, snapshot.first_row)):
        if type(row) is not StepRow or row.pass_id != snapshot.pass_id:
            continue
        is_model_output = row.kind == "forward" and row.call is not None and trace.calls[row.call].parent is None
        got_gradient = row.kind in ("accumulate", "returned") and row.node in snapshot.tensors.unread_leaves
        if (is_model_output or got_gradient) and any(_is_nonfinite(trace, index) for index in _as_tuple(row.after)):
            return True
    return False


def _as_tuple(values: object) -> tuple[object, ...]:
    return values if isinstance(values, tuple) else (values,)


def _is_nonfinite(trace: TraceData, index: object) -> bool:
    if not isinstance(index, int):
        return False
    _, nan, inf = get_norm_nan_inf(trace.values[index])
    return nan > 0 or inf > 0
