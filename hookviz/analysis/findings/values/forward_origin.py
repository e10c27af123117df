"""Find the op of a forward that made NaN or Inf, in a graph with or without modules."""

from collections.abc import Iterator

from hookviz.analysis.findings.finding import name_of_kind
from hookviz.analysis.findings.values.op_causes import (
    Cause,
    ForwardOps,
    explain_by_statistics,
    find_op_causes,
    holds_inf,
)
from hookviz.analysis.findings.values.pass_statistics import PassFinding, PassStatistics
from hookviz.support.messages import _, join_list, join_sentences
from hookviz.trace import NodeOutput
from hookviz.trace.values import Value

_BINARY_OPS = ("Mul", "Div", "Add", "Sub", "Pow")
_SUSPECTS = (
    "Log", "Log2", "Log10", "Log1P", "Sqrt", "Rsqrt", "Div", "Reciprocal", "Pow", "Softmax", "LogSoftmax", "Acos",
    "Asin", "Std", "Var", "NllLoss",
)  # fmt: skip
"""The ops that make NaN or Inf of ordinary numbers, such as 0."""
MAX_SUSPECTS = 3
"""A sentence names at most so many ops."""
_UNARY_OPS = ("Log", "Log2", "Log10", "Log1P", "Abs", "Sin", "Cos")
"""The ops that save their inputs as ``self`` and ``other``, in this order."""


def find_forward_origin(statistics: PassStatistics, kind: str) -> PassFinding | None:
    """Find the first op that made ``kind``, ``nan`` or ``inf``, in the forward of a pass.

    An op made it if its inputs and results show that, or if the result is known to contain it and no known input is.
    The finding leads to the step in which the backward of the op computes.
    """
    nodes = sorted(node for node in statistics.compute_steps if statistics.trace.ops[node] != "AccumulateGrad")
    known = _collect_known_tensors(statistics, nodes)
    ops = ForwardOps(statistics, nodes, known)
    causes = [*find_op_causes(ops)]
    by_cause = next((node for node, cause in causes if cause.kind == kind), None)
    by_value = next(_list_origins(statistics, nodes, known, kind), None)
    node = min((node for node in (by_cause, by_value) if node is not None), default=None)
    if node is None:
        return None
    cause = next((cause for place, cause in causes if place == node and cause.kind == kind), None)
    if cause is None:
        cause = explain_by_statistics(ops, node, kind)
    sentence, origin = _describe(statistics, node, kind, cause, causes), _find_inf(cause, causes)
    suspects = [] if cause is not None else list_suspects(statistics, statistics.trace.owners.get(node), node)
    places = (node, *([] if origin is None else [origin[0]]), *(suspects if len(suspects) == 1 else ()))
    step, sentences = statistics.compute_steps[node], [sentence, *describe_suspects(statistics, suspects, kind)]
    return PassFinding(step, kind, join_sentences(sentences), seen=cause is not None, nodes=places)


def list_suspects(statistics: PassStatistics, call: int | None, until: int) -> list[int]:
    """List the ops of a call, or outside of all, before a node that can make NaN and whose result is not known."""
    owners, ops = statistics.trace.owners, statistics.trace.ops
    known = {row.node for row in statistics.trace.saved if row.name == "result" and isinstance(row.value, int)}
    nodes = sorted(node for node in statistics.compute_steps if node < until and owners.get(node) == call)
    return [node for node in nodes if node not in known and ops[node].partition("Backward")[0] in _SUSPECTS]


def describe_suspects(statistics: PassStatistics, nodes: list[int], kind: str) -> list[str]:
    """Return the sentence on ops that may have made NaN or Inf; none if there are no such ops."""
    if not nodes:
        return []
    names = join_list([statistics.describe_node(node) for node in nodes[:MAX_SUSPECTS]])
    text = _("What these made was not kept, and it can be {what}: {ops}.")
    return [text.format(what=name_of_kind(kind), ops=names)]


def _find_inf(cause: Cause | None, causes: list[tuple[int, Cause]]) -> tuple[int, Cause] | None:
    """Return the op that made the Inf that a cause needs, if it is known."""
    needs_inf = cause is not None and cause.needs_inf
    return next(((place, other) for place, other in causes if other.kind == "inf"), None) if needs_inf else None


def _describe(
    statistics: PassStatistics, node: int, kind: str, cause: Cause | None, causes: list[tuple[int, Cause]]
) -> str:
    """The sentence on the op that made NaN or Inf; if that came from another Inf, also on the op that made this."""
    names = {"what": name_of_kind(kind), "on": statistics.describe_node(node)}
    if cause is None:
        return _("{what} is first seen in the forward, at {on}: none of its known inputs held it.").format(**names)
    sentences = [_("{what} begins in the forward, at {on}: it {cause}.").format(cause=cause.text, **names)]
    origin = _find_inf(cause, causes)
    if origin is not None:
        sentences.append(
            _("The Inf begins at {on}, which {cause}.").format(
                on=statistics.describe_node(origin[0]), cause=origin[1].text
            )
        )
    return join_sentences(sentences)


def _collect_known_tensors(statistics: PassStatistics, nodes: list[int]) -> dict[NodeOutput, Value]:
    """Place → the value of its tensor in the forward: a named tensor, a leaf, or what a node saved."""
    known: dict[NodeOutput, Value] = {}
    inside, edges, trace = set(nodes), statistics.trace.edges, statistics.trace
    for row in trace.saved:
        if row.pass_id != statistics.pass_id or row.node not in inside or not isinstance(row.value, int):
            continue
        op = trace.ops[row.node].partition("Backward")[0]
        place = (row.node, 0) if row.name == "result" else None
        if row.name == "self" and op in (*_UNARY_OPS, *_BINARY_OPS):
            place = edges.get((row.node, 0))
        elif row.name == "other" and op in _BINARY_OPS:
            place = edges.get((row.node, 1))
        if place is not None:
            known.setdefault(place, statistics.value(row.value))
    named = {(row.node, row.output): statistics.value(row.data) for row in statistics.tensors if row.data is not None}
    return {place: value for place, value in (known | named).items() if value.note is None}


def _list_origins(
    statistics: PassStatistics, nodes: list[int], known: dict[NodeOutput, Value], kind: str
) -> Iterator[int]:
    """Yield the nodes whose result is known to contain NaN or Inf, and no known input does, in order of the forward."""
    for node in nodes:
        value = known.get((node, 0))
        if value is None or not _contains(value, kind):
            continue
        inputs = (
            statistics.trace.edges[node, slot] for slot, _ignored in statistics.trace.lookup.next_nodes.get(node, ())
        )
        if not any(place in known and _contains(known[place], kind) for place in inputs):
            yield node


def _contains(value: Value, kind: str) -> bool:
    return bool(value.nan or value.norm != value.norm) if kind == "nan" else holds_inf(value)
