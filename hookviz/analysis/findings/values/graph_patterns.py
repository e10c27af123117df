"""Find ops in the graph of a pass that make no sense in this order, whatever their numbers are."""

from collections.abc import Callable
from typing import NamedTuple

from hookviz.analysis.findings.finding import Certainty, Finding, put_line
from hookviz.analysis.findings.ops import get_op, iter_reached, list_ops, skip_views
from hookviz.analysis.findings.values.op_lines import find_op_line
from hookviz.support.messages import N_, _
from hookviz.support.source_code import CodePlace
from hookviz.trace import TraceData
from hookviz.trace.values import as_tuple


class _Pattern(NamedTuple):
    """Ops that make no sense right after others."""

    kind: str
    outer: tuple[str, ...]
    inner: tuple[str, ...]
    sentence: str
    advice: str = ""
    certainty: Certainty = "proven"
    is_inner_wrong: bool = True
    """Whether the line to mend is that of the first op, not that of the second."""
    holds: Callable[[TraceData, int, int], bool] = lambda _trace, _outer, _inner: True
    """Whether both ops make no sense together, as the recorded facts tell."""


_REDUCING = frozenset({"Add", "Div", "Mean", "Mul", "Sum"})
"""Ops behind a loss that leave it one: they average it, scale it or add another one."""


def _run_along_the_same(trace: TraceData, outer: int, inner: int) -> bool:
    """Whether two softmaxes run over the same numbers: along the same dimension, and if a view is between, the last."""
    axis = _find_axis(trace, outer)
    place, between = trace.edges.get((outer, 0)), set[str]()
    while place is not None and place[0] != inner:
        between.add(get_op(trace, place[0]))
        place = trace.edges.get((place[0], 0))
    is_turned = not between.isdisjoint(("Permute", "T", "Transpose"))
    is_same = axis is not None and axis == _find_axis(trace, inner) and not is_turned
    return is_same and (not between or (axis is not None and axis[0] == -1))


def _find_axis(trace: TraceData, node: int) -> tuple[int, int] | None:
    """Return the dimension along which a softmax runs, counted from the last one, -1, and its size."""
    step = next((step for (_pass, other), step in trace.lookup.compute_steps.items() if other == node), None)
    row = None if step is None else trace.rows[step]
    sent = None if row is None else next((one for one in as_tuple(row.after) if one is not None), None)
    saved = [] if row is None else trace.lookup.saved(row.pass_id, node)
    dim = next((one.plain for one in saved if one.name == "dim"), None)
    if sent is None or not isinstance(dim, int):
        return None
    shape = trace.values[sent][0]
    is_inside = -len(shape) <= dim < len(shape)
    return (dim % len(shape) - len(shape), shape[dim]) if is_inside else None


def _is_a_loss(trace: TraceData, node: int, _inner: int) -> bool:
    """Whether a pass begins at what an op makes, or at its mean or sum, perhaps with other terms."""
    users: dict[int, list[int]] = {}
    for (user, _slot), (end, _output) in trace.edges.items():
        users.setdefault(end, []).append(user)
    reached = iter_reached(node, lambda one: users.get(one, ()))
    return all(one == node or get_op(trace, one) in _REDUCING for one in reached)


_TWICE = N_(
    "{on} takes the softmax of the result of a softmax, {first}: the second one flattens the probabilities, and the "
    "gradients become small."
)
_PATTERNS = (
    _Pattern(
        "softmax_twice",
        ("LogSoftmax",),
        ("Softmax",),
        _TWICE,
        N_("cross_entropy expects logits, without a softmax before it."),
        holds=_run_along_the_same,
    ),
    _Pattern("softmax_twice", ("Softmax",), ("Softmax",), _TWICE, holds=_run_along_the_same),
    _Pattern(
        "sigmoid_twice",
        ("BinaryCrossEntropyWithLogits",),
        ("Sigmoid",),
        N_(
            "{on} applies a sigmoid to the result of a sigmoid, {first}: the second one leaves probabilities between "
            "0.5 and 0.73."
        ),
        N_("The loss expects logits, without a sigmoid before it."),
    ),
    _Pattern(
        "raw_scores",
        ("NllLoss", "NllLoss2D"),
        ("Addmm", "Bmm", "Convolution", "Mm"),
        N_("{on} takes the result of {first}, which is not a log-probability, as nll_loss expects it."),
        N_("Use cross_entropy, or put log_softmax before it."),
        "likely",
        is_inner_wrong=False,
        holds=_is_a_loss,
    ),
)


def list_patterns(trace: TraceData) -> list[Finding]:
    """List the ops that take what they should not: one finding for each pattern."""
    names = list_ops(trace)
    present, found = {*names}, []
    for pattern in _PATTERNS:
        if not present.isdisjoint(pattern.outer) and not present.isdisjoint(pattern.inner):
            starts = [node for node, name in enumerate(names) if name in pattern.outer]
            pairs = {node: end for node in starts if (end := _find_inner(trace, node, pattern)) is not None}
            found += _describe_pattern(trace, pattern, pairs) if pairs else []
    return found


def _find_inner(trace: TraceData, node: int, pattern: _Pattern) -> int | None:
    """Return the op whose result, or a view of it, another one takes, if they make a pattern."""
    place = skip_views(trace, trace.edges.get((node, 0)), "Slice")
    if place is None or get_op(trace, place[0]) not in pattern.inner:
        return None
    return place[0] if pattern.holds(trace, node, place[0]) else None


def _describe_pattern(trace: TraceData, pattern: _Pattern, pairs: dict[int, int]) -> list[Finding]:
    steps = {row.node: index for index, row in reversed([*enumerate(trace.rows)]) if row.node in pairs}
    if not steps:
        return []
    passes = tuple(sorted({trace.rows[step].pass_id for step in steps.values()}))
    first = min(steps.values())
    node = trace.rows[first].own_node
    inner = pairs[node]
    sentence = _(pattern.sentence).format(on=trace.name(node), first=trace.name(inner))
    advice = _(pattern.advice) if pattern.advice else ""
    finding = Finding(first, pattern.kind, sentence, "warning", passes, advice=advice, certainty=pattern.certainty)
    chain = (inner, node) if pattern.is_inner_wrong else (node,)
    place = find_op_line(trace, chain) or _find_call_line(trace, node)
    return [put_line(finding, place)]


def _find_call_line(trace: TraceData, node: int) -> CodePlace | None:
    """Return the line of the call of the module that made a node, such as that of a loss."""
    call = trace.owners.get(node)
    row = next((row for row in trace.lines if row.call == call), None) if call is not None else None
    return None if row is None else CodePlace(trace.sources[row.source].file, row.line)
