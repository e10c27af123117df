"""Find ops in the graph of a pass that make no sense in this order, whatever their numbers are."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from hookviz.analysis.findings.finding import Certainty, Finding, describe_passes, put_line
from hookviz.analysis.findings.values.op_lines import find_op_line
from hookviz.support.messages import N_, _
from hookviz.support.source_code import CodePlace
from hookviz.trace import NodeOutput, TraceData

VIEWS = frozenset({"Permute", "Reshape", "T", "Transpose", "UnsafeView", "Unsqueeze", "View"})
"""Ops whose result has the numbers of their input, each once."""


def follow_views(trace: TraceData, node: int, slot: int, more: Collection[str]) -> NodeOutput | None:
    """Return the tensor that an op takes in a slot, behind all views; ``more`` are ops that count as views, too."""
    return skip_views(trace, trace.edges.get((node, slot)), more)


def skip_views(trace: TraceData, place: NodeOutput | None, more: Collection[str]) -> NodeOutput | None:
    """Return the tensor of which another one is a view; ``more`` are ops that count as views, too."""
    while place is not None and trace.ops[place[0]].partition("Backward")[0] in (*VIEWS, *more):
        place = trace.edges.get((place[0], 0))
    return place


_PARTS = ("ReshapeAlias", "Slice", "Squeeze")
"""Ops that take a part of a tensor, or only change its shape."""


class _Pattern(NamedTuple):
    """Ops that make no sense right after others."""

    kind: str
    outer: tuple[str, ...]
    inner: tuple[str, ...]
    sentence: str
    certainty: Certainty = "proven"
    is_inner_wrong: bool = True
    """Whether the line to mend is that of the first op, not that of the second."""


_PATTERNS = (
    _Pattern(
        "softmax_twice",
        ("Softmax", "LogSoftmax"),
        ("Softmax",),
        N_(
            "{on} takes the softmax of the result of a softmax, {first}: the second one flattens the "
            "probabilities, and the gradients become small. cross_entropy expects logits, without a "
            "softmax before it."
        ),
    ),
    _Pattern(
        "sigmoid_twice",
        ("BinaryCrossEntropyWithLogits",),
        ("Sigmoid",),
        N_(
            "{on} applies a sigmoid to the result of a sigmoid, {first}: the second one leaves probabilities between "
            "0.5 and 0.73. The loss expects logits, without a sigmoid before it."
        ),
    ),
    _Pattern(
        "raw_scores",
        ("NllLoss", "NllLoss2D"),
        ("Addmm", "Bmm", "Convolution", "Mm"),
        N_(
            "{on} takes the result of {first}, which is not a log-probability: the loss has no lower bound. Use "
            "cross_entropy, or put log_softmax before it."
        ),
        "likely",
        is_inner_wrong=False,
    ),
)


def list_patterns(trace: TraceData) -> list[Finding]:
    """List the ops that take what they should not: one finding for each pattern."""
    names = {op: op.partition("Backward")[0] for op in set(trace.ops)}
    found = []
    for pattern in _PATTERNS:
        outer = {op for op, name in names.items() if name in pattern.outer}
        if outer and not {*names.values()}.isdisjoint(pattern.inner):
            starts = [node for node, op in enumerate(trace.ops) if op in outer]
            pairs = {node: end for node in starts if (end := _find_inner(trace, node, pattern)) is not None}
            found += _describe_pattern(trace, pattern, pairs) if pairs else []
    return found


def _find_inner(trace: TraceData, node: int, pattern: _Pattern) -> int | None:
    """Return the op whose result, or a view of it, another one takes, if they make a pattern."""
    place = follow_views(trace, node, 0, _PARTS)
    if place is None or trace.ops[place[0]].partition("Backward")[0] not in pattern.inner:
        return None
    return place[0]


def _describe_pattern(trace: TraceData, pattern: _Pattern, pairs: dict[int, int]) -> list[Finding]:
    steps = {row.node: index for index, row in reversed([*enumerate(trace.rows)]) if row.node in pairs}
    if not steps:
        return []
    passes = tuple(sorted({trace.rows[step].pass_id for step in steps.values()}))
    first = min(steps.values())
    node = trace.rows[first].own_node
    inner = pairs[node]
    sentence = _(pattern.sentence).format(on=trace.name(node), first=trace.name(inner))
    finding = Finding(first, pattern.kind, sentence, "warning", passes, describe_passes(passes, trace))
    finding = replace(finding, certainty=pattern.certainty)
    chain = (inner, node) if pattern.is_inner_wrong else (node,)
    place = find_op_line(trace, chain) or _find_call_line(trace, node)
    return [put_line(finding, place)]


def _find_call_line(trace: TraceData, node: int) -> CodePlace | None:
    """Return the line of the call of the module that made a node, such as that of a loss."""
    call = trace.owners.get(node)
    row = next((row for row in trace.lines if row.call == call), None) if call is not None else None
    return None if row is None else CodePlace(trace.sources[row.source].file, row.line)
