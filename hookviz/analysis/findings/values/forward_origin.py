"""Find the op of a forward that made NaN or Inf, in a graph with or without modules."""

from collections.abc import Iterator

from hookviz.analysis.findings.finding import name_of_kind
from hookviz.analysis.findings.values.known_tensors import collect_known_tensors
from hookviz.analysis.findings.values.op_causes import (
    Cause,
    ForwardOps,
    explain_by_statistics,
    find_op_causes,
    holds_inf,
)
from hookviz.analysis.findings.values.pass_statistics import PassFinding, PassStatistics
from hookviz.analysis.findings.values.suspects import Suspects, describe_inf, find_inf, find_suspects
from hookviz.support.messages import _, join_sentences
from hookviz.trace import NodeOutput
from hookviz.trace.values import Value


def find_forward_origin(statistics: PassStatistics, kind: str) -> PassFinding | None:
    """Find the first op that made ``kind``, ``nan`` or ``inf``, in the forward of a pass.

    An op made it if its inputs and results show that, or if the result is known to contain it and no known input is.
    The finding leads to the step in which the backward of the op computes.
    """
    nodes = sorted(node for node in statistics.compute_steps if statistics.trace.ops[node] != "AccumulateGrad")
    known = collect_known_tensors(statistics, nodes)
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
    sentence, origin = _describe(statistics, node, kind, cause, causes), find_inf(cause, causes)
    owner = statistics.trace.owners.get(node)
    suspects = Suspects() if cause is not None else find_suspects(statistics, owner, node, kind)
    places = (*suspects.places, node, *([] if origin is None else [origin[0]]))
    sentences = [sentence, *suspects.sentences]
    seen = cause is not None or suspects.are_explained
    return PassFinding(statistics.compute_steps[node], kind, join_sentences(sentences), seen=seen, nodes=places)


def _describe(
    statistics: PassStatistics, node: int, kind: str, cause: Cause | None, causes: list[tuple[int, Cause]]
) -> str:
    """The sentence on the op that made NaN or Inf; if that came from another Inf, also on the op that made this."""
    names = {"what": name_of_kind(kind), "on": statistics.describe_node(node)}
    if cause is None:
        return _("{what} is first seen in the forward, at {on}: none of its known inputs held it.").format(**names)
    sentences = [_("{what} begins in the forward, at {on}: it {cause}.").format(cause=cause.text, **names)]
    origin = find_inf(cause, causes)
    if origin is not None:
        sentences.append(describe_inf(statistics, *origin))
    return join_sentences(sentences)


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
