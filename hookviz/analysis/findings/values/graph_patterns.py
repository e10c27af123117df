"""Find ops in the graph of a pass that make no sense in this order, whatever their numbers are."""

from collections.abc import Collection
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding, describe_passes
from hookviz.analysis.findings.values.op_lines import find_op_line
from hookviz.support.messages import _
from hookviz.trace import NodeOutput, TraceData

VIEWS = frozenset({"Permute", "Reshape", "T", "Transpose", "UnsafeView", "Unsqueeze", "View"})
"""Ops whose result has the numbers of their input, each once."""


def follow_views(trace: TraceData, node: int, slot: int, more: Collection[str]) -> NodeOutput | None:
    """Return the tensor that an op takes in a slot, behind all views; ``more`` are ops that count as views, too."""
    place = trace.edges.get((node, slot))
    while place is not None and trace.ops[place[0]].partition("Backward")[0] in (*VIEWS, *more):
        place = trace.edges.get((place[0], 0))
    return place


_SOFTMAX, _LOG_SOFTMAX = "SoftmaxBackward0", "LogSoftmaxBackward0"


_PARTS = ("ReshapeAlias", "Slice", "Squeeze")
"""Ops that take a part of a softmax, or only change its shape."""


def _find_softmax_before(trace: TraceData, node: int) -> int | None:
    """Return the softmax whose result, or a view of it, another one takes; None if there is none."""
    place = follow_views(trace, node, 0, _PARTS)
    return place[0] if place is not None and trace.ops[place[0]] == _SOFTMAX else None


def list_patterns(trace: TraceData) -> list[Finding]:
    """List the softmaxes whose input is already the result of a softmax; one finding for all of them."""
    if _SOFTMAX not in trace.ops:
        return []
    starts = [node for node, op in enumerate(trace.ops) if op in (_SOFTMAX, _LOG_SOFTMAX)]
    doubled = {start: end for start in starts if (end := _find_softmax_before(trace, start)) is not None}
    if not doubled:
        return []
    steps = {row.node: index for index, row in reversed([*enumerate(trace.rows)]) if row.node in doubled}
    if not steps:
        return []
    passes = tuple(sorted({trace.rows[step].pass_id for step in steps.values()}))
    first = min(steps.values())
    node = trace.rows[first].own_node
    again = doubled[node]
    sentence = _(
        "{on} takes the softmax of the result of a softmax, {first}: the second one flattens the "
        "probabilities, and the gradients become small. cross_entropy expects logits, without a "
        "softmax before it."
    ).format(on=trace.name(node), first=trace.name(again))
    finding = Finding(first, "softmax_twice", sentence, "warning", passes, describe_passes(passes, trace))
    place = find_op_line(trace, (again, node))
    return [finding if place is None else replace(finding, file=place[0], line=place[1])]
